package aggregator

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
)

var update = flag.Bool("update", false, "rewrite the conversations in testdata")

// TestConversations plays testdata/*.txtar: lines that begin with ">" are sent,
// lines that begin with "<" are what comes back up to the answer.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var (
				servers  []fakeServer
				settings Settings
				rules    policy.Rules
				talk     *txtar.File
			)
			for i, f := range archive.Files {
				var into any
				switch f.Name {
				case "servers":
					into = &servers
				case "settings":
					into = &settings
				case "rules":
					into = &rules
				case "conversation":
					talk = &archive.Files[i]
					continue
				default:
					t.Fatalf("unknown part %q", f.Name)
				}
				if err := json.Unmarshal(f.Data, into); err != nil {
					t.Fatalf("%s: %v", f.Name, err)
				}
			}
			r := newRig(t, newFakeServers(servers...), rigOptions{settings: settings, rules: rules})
			got := converse(r.client(t), string(talk.Data))
			if d := cmp.Diff(string(talk.Data), got); d != "" {
				if *update {
					talk.Data = []byte(got)
					if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				t.Errorf("conversation (-want +got):\n%s", d)
			}
		})
	}
}

// converse sends the lines of a script and returns it with what came back.
func converse(c *mcptest.Client, script string) string {
	var out strings.Builder
	printed := 0
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "<") {
			continue
		}
		out.WriteString(line)
		sent, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
		if !ok {
			continue
		}
		c.Send(sent)
		var m struct{ ID json.RawMessage }
		if json.Unmarshal([]byte(sent), &m) != nil || m.ID == nil {
			continue
		}
		c.Answer(string(m.ID))
		all := c.Messages()
		for _, m := range all[printed:] {
			out.WriteString("< " + string(m.Raw) + "\n")
		}
		printed = len(all)
	}
	return out.String()
}
