package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DefaultMaxLine is the longest message that is read, 64 MiB.
const DefaultMaxLine = 64 << 20

// lineReader cuts a byte stream into texts that should be messages: lines, or
// the bodies of Content-Length frames, as some clients write them.
type lineReader struct {
	r       *bufio.Reader
	max     int
	headers bool // understand Content-Length frames
	framed  bool // the first text came in such a frame
	first   bool // no text was read yet
}

func newLineReader(r io.Reader, max int, headers bool) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: max, headers: headers, first: true}
}

// tooLong is returned in place of a text that was over the limit. The text is
// gone, the next call reads the text after it.
type tooLong struct {
	envelope topLevel
	max      int
}

func (e *tooLong) Error() string {
	return fmt.Sprintf("message is larger than %d bytes", e.max)
}

// badFrame is returned for Content-Length headers that make no sense.
type badFrame struct{ why string }

func (e *badFrame) Error() string { return e.why }

// next returns the next text that is not blank, without byte order mark and
// surrounding blanks, as valid UTF-8: other bytes become U+FFFD. The text is
// the caller's. It returns io.EOF, an error of the stream, or a *tooLong or
// *badFrame, after which reading can go on.
func (l *lineReader) next() ([]byte, error) {
	for {
		text, err := l.line()
		if text = trim(text); len(text) == 0 {
			if err != nil {
				return nil, err
			}
			continue
		}
		framed := false
		if err == nil && l.headers && isFrameHeader(text) {
			text, err = l.frame(text)
			var bad *badFrame
			framed = !errors.As(err, &bad)
			if text = trim(text); len(text) == 0 && err == nil {
				continue
			}
		}
		if l.first {
			l.first, l.framed = false, framed
		}
		if len(text) == 0 {
			return nil, err
		}
		// A last line without line break comes with io.EOF, which the next
		// call returns again.
		if !utf8.Valid(text) {
			text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
		}
		return text, nil
	}
}

func trim(b []byte) []byte {
	b = bytes.TrimPrefix(bytes.TrimSpace(b), []byte("\xEF\xBB\xBF"))
	return bytes.TrimSpace(b)
}

// line reads up to the next line break. The result is a copy.
func (l *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(part) > l.max+2 { // room for CR LF
			long := &tooLong{max: l.max}
			long.envelope.write(line)
			long.envelope.write(part)
			for errors.Is(err, bufio.ErrBufferFull) {
				part, err = l.r.ReadSlice('\n')
				long.envelope.write(part)
			}
			if err != nil {
				return nil, err
			}
			return nil, long
		}
		if len(line)+len(part) > cap(line) {
			line = slices.Grow(line, len(line)+len(part)) // twice, for long lines
		}
		if line = append(line, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func isFrameHeader(line []byte) bool {
	name, _, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) > 20 {
		return false
	}
	s := strings.TrimSpace(string(name))
	return strings.EqualFold(s, "Content-Length") || strings.EqualFold(s, "Content-Type")
}

// frame reads the rest of the headers and the body.
func (l *lineReader) frame(header []byte) ([]byte, error) {
	length := -1
	for len(header) > 0 {
		name, value, _ := bytes.Cut(header, []byte(":"))
		if strings.EqualFold(strings.TrimSpace(string(name)), "Content-Length") {
			n, err := strconv.Atoi(strings.TrimSpace(string(value)))
			if err != nil || n < 0 {
				return nil, &badFrame{"Content-Length is not a number of bytes"}
			}
			length = n
		}
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		header = bytes.TrimSpace(line)
	}
	if length < 0 {
		return nil, &badFrame{"headers without Content-Length"}
	}
	if length > l.max {
		long := &tooLong{max: l.max}
		if _, err := io.CopyN(&long.envelope, l.r, int64(length)); err != nil {
			return nil, err
		}
		return nil, long
	}
	var body bytes.Buffer // grows with what really arrives
	if _, err := io.CopyN(&body, l.r, int64(length)); err != nil {
		if errors.Is(err, io.EOF) && body.Len() > 0 {
			return body.Bytes(), nil // cut short: the parser says what is wrong
		}
		return nil, err
	}
	return body.Bytes(), nil
}

// topLevel reads a JSON object in pieces of any size and keeps only the id
// and whether there is a method: what is needed to answer a message that was
// too long to keep. The id may come after the large part.
type topLevel struct {
	id     []byte // as it is in the text; nil if there is none
	method bool

	depth         int
	inString, esc bool
	token         []byte // the string or value being read at depth 1, at most maxToken bytes
	key           string
	afterColon    bool
}

const maxToken = 256

func (t *topLevel) write(p []byte) {
	for _, c := range p {
		t.step(c)
	}
}

// Write implements [io.Writer].
func (t *topLevel) Write(p []byte) (int, error) { t.write(p); return len(p), nil }

func (t *topLevel) step(c byte) {
	if t.depth == 1 && (t.inString || !bytes.ContainsRune([]byte(" \t\r\n,:{}[]"), rune(c))) && len(t.token) < maxToken {
		t.token = append(t.token, c)
	}
	if t.inString {
		switch {
		case t.esc:
			t.esc = false
		case c == '\\':
			t.esc = true
		case c == '"':
			t.inString = false
		}
		return
	}
	switch c {
	case '"':
		t.inString = true
	case '{', '[':
		t.depth++
	case ':':
		if t.depth == 1 {
			t.key, t.token, t.afterColon = string(t.token), nil, true
		}
	case ',', '}', ']':
		if t.depth == 1 {
			t.member()
		}
		if c != ',' {
			t.depth--
		}
	}
}

// member is called at the end of a member of the outermost object.
func (t *topLevel) member() {
	if t.afterColon {
		switch t.key {
		case `"id"`:
			if usableID(t.token) && len(t.token) < maxToken {
				t.id = t.token
			}
		case `"method"`:
			t.method = true
		}
	}
	t.token, t.afterColon = nil, false
}

// splitObjects cuts a text that begins with an object into the objects it
// holds one after the other, and what follows them.
func splitObjects(b []byte) (objects [][]byte, rest []byte) {
	dec := json.NewDecoder(bytes.NewReader(b))
	end := int64(0)
	for {
		var o json.RawMessage
		if dec.Decode(&o) != nil || o[0] != '{' {
			break
		}
		objects = append(objects, o)
		end = dec.InputOffset()
	}
	return objects, bytes.TrimSpace(b[end:])
}
