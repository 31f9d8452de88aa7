package codebridge

import "strings"

// token is a piece of JavaScript. The lexer knows just enough of the language
// to tell code from strings, comments and regular expressions; what it finds
// is only ever a hint, which the engine's own parser then confirms.
type token struct {
	kind       tokenKind
	start, end int
	depth      int  // of brackets around it; a bracket has the depth outside of it
	newline    bool // a line break lies between it and the token before
}

type tokenKind byte

const (
	tokenWord tokenKind = iota
	tokenNumber
	tokenString // also a template, whole or in parts
	tokenRegexp
	tokenPunct
)

// beforeExpression are words after which an expression is expected, so that
// a slash begins a regular expression and a line break ends nothing.
var beforeExpression = wordSet("return typeof case in of void delete instanceof new throw do else await yield extends as satisfies const let var if for while switch import export async function class default")

func wordSet(s string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c == '#' || c == '@' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// lex splits src. closed is the offset of the first bracket that closes none
// of src's own, or -1.
func lex(src string) (tokens []token, closed int) {
	l := lexer{src: src, closed: -1}
	for l.next() {
	}
	return l.tokens, l.closed
}

type lexer struct {
	src     string
	pos     int
	newline bool
	open    []byte // the brackets around pos; '`' is a ${ inside a template
	closed  int
	tokens  []token
}

func (l *lexer) next() bool {
	l.skipSpace()
	if l.pos >= len(l.src) {
		return false
	}
	switch c := l.src[l.pos]; {
	case c == '"' || c == '\'':
		l.add(tokenString, l.endOfString(c))
	case c == '`':
		l.addTemplate()
	case c >= '0' && c <= '9' || c == '.' && l.pos+1 < len(l.src) && l.src[l.pos+1] >= '0' && l.src[l.pos+1] <= '9':
		end := l.pos + 1
		for end < len(l.src) && (isWordByte(l.src[end]) || l.src[end] == '.') {
			end++
		}
		l.add(tokenNumber, end)
	case isWordByte(c):
		end := l.pos + 1
		for end < len(l.src) && isWordByte(l.src[end]) {
			end++
		}
		l.add(tokenWord, end)
	case c == '/' && l.regexpMayStart():
		if end := l.endOfRegexp(); end > 0 {
			l.add(tokenRegexp, end)
		} else {
			l.add(tokenPunct, l.pos+1)
		}
	default:
		l.punct(c)
	}
	return true
}

func (l *lexer) add(kind tokenKind, end int) {
	l.tokens = append(l.tokens, token{kind, l.pos, end, len(l.open), l.newline})
	l.pos, l.newline = end, false
}

// addTemplate adds the piece of a template that begins here.
func (l *lexer) addTemplate() {
	depth := len(l.open)
	l.add(tokenString, l.endOfTemplate(l.pos+1))
	l.tokens[len(l.tokens)-1].depth = depth
}

func (l *lexer) punct(c byte) {
	switch c {
	case '(', '[', '{':
		l.add(tokenPunct, l.pos+1)
		l.open = append(l.open, c)
	case ')', ']', '}':
		if n := len(l.open); n > 0 {
			inTemplate := l.open[n-1] == '`'
			l.open = l.open[:n-1]
			if inTemplate {
				l.addTemplate()
				return
			}
		} else if l.closed < 0 {
			l.closed = l.pos
		}
		l.add(tokenPunct, l.pos+1)
	default:
		end := l.pos + 1
		for _, long := range [...]string{"=>", "++", "--", "?."} {
			if strings.HasPrefix(l.src[l.pos:], long) {
				end = l.pos + 2
			}
		}
		l.add(tokenPunct, end)
	}
}

func (l *lexer) skipSpace() {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case rest[0] == '\n' || rest[0] == '\r':
			l.newline = true
			l.pos++
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\v' || rest[0] == '\f':
			l.pos++
		case strings.HasPrefix(rest, "\u00a0"):
			l.pos += 2
		case strings.HasPrefix(rest, "\ufeff"):
			l.pos += 3
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			l.pos += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				l.pos = len(l.src)
				return
			}
			l.newline = l.newline || strings.Contains(rest[:end+2], "\n")
			l.pos += end + 4
		default:
			return
		}
	}
}

func (l *lexer) endOfString(quote byte) int {
	for i := l.pos + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case '\n':
			return i
		case quote:
			return i + 1
		}
	}
	return len(l.src)
}

// endOfTemplate returns the end of the piece of a template that starts at i:
// behind its backquote, or behind a ${, which it opens.
func (l *lexer) endOfTemplate(i int) int {
	for ; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case '`':
			return i + 1
		case '$':
			if i+1 < len(l.src) && l.src[i+1] == '{' {
				l.open = append(l.open, '`')
				return i + 2
			}
		}
	}
	return len(l.src)
}

func (l *lexer) regexpMayStart() bool {
	if len(l.tokens) == 0 {
		return true
	}
	t := l.tokens[len(l.tokens)-1]
	switch t.kind {
	case tokenWord:
		return beforeExpression[l.src[t.start:t.end]]
	case tokenPunct:
		switch l.src[t.start:t.end] {
		case ")", "]", "++", "--":
			return false
		}
		return true
	}
	return false
}

func (l *lexer) endOfRegexp() int {
	inClass := false
	for i := l.pos + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case '\n':
			return 0
		case '[':
			inClass = true
		case ']':
			inClass = false
		case '/':
			if inClass {
				continue
			}
			for i++; i < len(l.src) && isWordByte(l.src[i]); i++ {
			}
			return i
		}
	}
	return 0
}
