package upstreams

import (
	"path/filepath"
	"strings"
)

// isBatch tells whether a file of Windows is run by cmd.exe, as npx.cmd is.
func isBatch(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".cmd" || ext == ".bat"
}

// batchLine is the command line with which cmd.exe runs a batch file that gets
// these arguments as they are. Left to itself, Windows would put them there
// quoted for other programs: cmd.exe would take the & in a URL for the end of
// the command, and replace what looks like one of its variables.
func batchLine(script string, args []string) (string, error) {
	var b strings.Builder
	// With /s it takes off the outermost quotes and no others.
	b.WriteString(`cmd.exe /e:on /v:off /d /s /c ""`)
	writeLiteral(&b, script)
	b.WriteByte('"')
	for i, arg := range args {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", advised("item %d of args holds a line break, which %s, a batch file, cannot be given: remove it, or write the program that it starts as command", i+1, script)
		}
		b.WriteString(` "`)
		writeLiteral(&b, arg)
		b.WriteByte('"')
	}
	b.WriteByte('"')
	return b.String(), nil
}

// writeLiteral writes what stands between quotes, for cmd.exe and for the
// program behind it, to which quotes and backslashes are special. Of a percent
// sign it makes one that begins no name: what follows it is a variable that is
// always set, cut to nothing.
func writeLiteral(b *strings.Builder, text string) {
	backslashes := 0
	for i := range len(text) {
		switch c := text[i]; c {
		case '\\':
			backslashes++
			b.WriteByte(c)
			continue
		case '"':
			b.WriteString(strings.Repeat(`\`, backslashes) + `""`)
		case '%':
			b.WriteString(`%%cd:~,%`)
		default:
			b.WriteByte(c)
		}
		backslashes = 0
	}
	b.WriteString(strings.Repeat(`\`, backslashes)) // else the last would hide the quote after it
}
