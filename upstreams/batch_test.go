package upstreams

import (
	"strings"
	"testing"
)

func TestBatchLine(t *testing.T) {
	const head = `cmd.exe /e:on /v:off /d /s /c ""C:\Program Files\nodejs\npx.cmd"`
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, head + `"`},
		{[]string{"-y", "mcp-remote", "https://h/mcp?a=1&b=2"}, head + ` "-y" "mcp-remote" "https://h/mcp?a=1&b=2""`},
		{[]string{"", `C:\data\`, `a\b`}, head + ` "" "C:\data\\" "a\b""`},
		{[]string{`say "hi" | more`, `\"`}, head + ` "say ""hi"" | more" "\\""""`},
		{[]string{"100%", "%PATH%", "^!"}, head + ` "100%%cd:~,%" "%%cd:~,%PATH%%cd:~,%" "^!""`},
	} {
		if got, err := batchLine(`C:\Program Files\nodejs\npx.cmd`, c.args); err != nil || got != c.want {
			t.Errorf("batchLine(%q) = %s, %v, want %s", c.args, got, err, c.want)
		}
	}
	if _, err := batchLine(`C:\npx.cmd`, []string{"fine", "s3cr3t\nx"}); err == nil || !strings.Contains(err.Error(), "item 2 of args") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("batchLine with a line break = %v, want an error that names the item and does not show it", err)
	}
	for path, want := range map[string]bool{`C:\a\npx.CMD`: true, "x.bat": true, "x.exe": false, "cmd": false} {
		if got := isBatch(path); got != want {
			t.Errorf("isBatch(%q) = %v, want %v", path, got, want)
		}
	}
}
