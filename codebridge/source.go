package codebridge

import (
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"
)

// source is a program on its way to the engine: the text as the model wrote
// it, cleaned of what is not code, and what the lexer found in it.
type source struct {
	text   string
	line   int // lines that were cut off before the text
	tokens []token
	closed int // see lex

	imports,
	asyncs int // words of that kind in code
	last  int   // offset of a last statement that may be an expression, or -1
	marks []int // offsets of statements that get a mark
}

// edit is an insertion into a line, in columns of the line as it then was.
type edit struct {
	line, column, length int // from 1
}

var fenceLine = regexp.MustCompile("^(```+|~~~+)[ \\t]*[\\w+.-]*[ \\t]*$")

// parseSource cleans and examines the text of a program.
func parseSource(text string) *source {
	s := &source{text: strings.TrimPrefix(text, "\ufeff")}
	s.unwrapJSON()
	s.stripFence()
	s.tokens, s.closed = lex(s.text)
	s.blankExports()
	s.findWords()
	s.last = s.findLast()
	s.findMarks()
	return s
}

// unwrapJSON takes the program out of a whole argument object.
func (s *source) unwrapJSON() {
	if !strings.HasPrefix(strings.TrimSpace(s.text), "{") {
		return
	}
	var o struct {
		Code *string `json:"code"`
	}
	if json.Unmarshal([]byte(s.text), &o) == nil && o.Code != nil {
		s.text = *o.Code
	}
}

// stripFence takes a program out of a Markdown code block.
func (s *source) stripFence() {
	lines := strings.Split(s.text, "\n")
	open := -1
	for i, l := range lines {
		l = strings.TrimSpace(l)
		if !fenceLine.MatchString(l) {
			if open < 0 && l != "" && i > 3 {
				return // a fence far down is no wrapping
			}
			continue
		}
		if open < 0 {
			open = i
			continue
		}
		s.text, s.line = strings.Join(lines[open+1:i], "\n"), open+1
		return
	}
	if open >= 0 && strings.TrimSpace(strings.Join(lines[:open], "")) == "" {
		s.text, s.line = strings.Join(lines[open+1:], "\n"), open+1
	}
}

func (s *source) word(i int) string {
	if i < 0 || i >= len(s.tokens) {
		return ""
	}
	return s.text[s.tokens[i].start:s.tokens[i].end]
}

// hasWord tells whether a word stands somewhere in the code.
func (s *source) hasWord(w string) bool {
	for i, t := range s.tokens {
		if t.kind == tokenWord && s.word(i) == w {
			return true
		}
	}
	return false
}

// blankExports makes "export default x" and "export const x" plain statements
// of the same length.
func (s *source) blankExports() {
	blank := func(t token) {
		s.text = s.text[:t.start] + strings.Repeat(" ", t.end-t.start) + s.text[t.end:]
	}
	for i := 0; i < len(s.tokens); i++ {
		if t := s.tokens[i]; t.depth != 0 || s.word(i) != "export" || !s.startsStatement(i) {
			continue
		}
		n := 1
		switch s.word(i + 1) {
		case "default":
			n = 2
		case "const", "let", "var", "function", "async", "class":
		default:
			continue
		}
		for _, t := range s.tokens[i : i+n] {
			blank(t)
		}
		s.tokens = append(s.tokens[:i], s.tokens[i+n:]...)
	}
}

// findWords counts async functions and gives import(…) its other name.
func (s *source) findWords() {
	for i, t := range s.tokens {
		if t.kind != tokenWord || s.word(i-1) == "." || s.word(i-1) == "?." {
			continue
		}
		switch next := s.word(i + 1); s.word(i) {
		case "async":
			if next != ":" && next != "," && next != "=" {
				s.asyncs++
			}
		case "import":
			switch {
			case next == "(":
				s.text = s.text[:t.start] + importName + s.text[t.end:]
			case next != ":" && next != ",":
				s.imports++
			}
		}
	}
}

// startsStatement tells whether a statement can begin with token i, going by
// the token before it.
func (s *source) startsStatement(i int) bool {
	if i == 0 {
		return true
	}
	prev := s.tokens[i-1]
	w := s.word(i - 1)
	if w == ";" || w == "}" && prev.depth == s.tokens[i].depth {
		return true
	}
	if !s.tokens[i].newline {
		return false
	}
	switch prev.kind {
	case tokenWord:
		return !beforeExpression[w]
	case tokenPunct:
		return w == ")" || w == "]" || w == "}" || w == "++" || w == "--"
	}
	return true
}

var (
	continues  = wordSet("instanceof in of as satisfies else catch finally")
	statements = wordSet("return throw if for while do switch try const let var break continue import export with debugger type interface enum declare namespace")
)

// findLast finds the last statement at the top level, if it may be an
// expression whose value the model meant to return.
func (s *source) findLast() int {
	n := len(s.tokens)
	for n > 0 && s.word(n-1) == ";" {
		n--
	}
	for i := n - 1; i >= 0; i-- {
		t := s.tokens[i]
		if t.depth != 0 || !s.startsStatement(i) {
			continue
		}
		w := s.word(i)
		if t.kind == tokenWord {
			if continues[w] {
				continue
			}
			if statements[w] {
				return -1
			}
		}
		if t.kind == tokenPunct {
			clear := i == 0 || s.word(i-1) == ";"
			switch {
			case w == "(" || w == "[" || w == "+" || w == "-" || w == "/":
				if !clear {
					continue
				}
			case w != "!" && w != "~" && w != "{" && w != "++" && w != "--":
				continue
			}
		}
		return t.start
	}
	return -1
}

var marked = wordSet("const let var return throw for if switch while")

// findMarks finds the statements that the engine would give no place.
func (s *source) findMarks() {
	for i, t := range s.tokens {
		if t.kind != tokenWord || !marked[s.word(i)] || s.word(i+1) == ":" {
			continue
		}
		prev := s.word(i - 1)
		ok := i == 0 || prev == ";" || prev == "{"
		if !ok && t.newline && prev != ")" {
			ok = s.startsStatement(i)
		}
		if ok && (prev != "}" || s.word(i) != "while") {
			s.marks = append(s.marks, t.start)
		}
	}
}

const (
	bodyOpen  = "(async () => {"
	bodyClose = "\n})"
)

// body is the program as a function expression for the engine, on the same
// lines as the source.
type body struct {
	text     string
	implicit bool // the last expression is returned though the source does not say so
	edits    []edit
}

// form is how a body is made of a source.
type form struct {
	implicit bool // a return goes before the last expression
	marked   bool // statements are marked, see mark
}

// forms lists the ways to make a body, the one to try first first.
func (s *source) forms() []form {
	fs := []form{{}}
	if len(s.marks) > 0 {
		fs = []form{{marked: true}, {}}
	}
	if s.last >= 0 {
		fs = append([]form{{implicit: true, marked: true}}, fs...)
	}
	return fs
}

// mark is an expression that does nothing. The engine notes the places of
// expression statements and of calls alone: a mark before another statement
// gives that one a place too.
const mark = "0;"

// headBody wraps what comes before the last statement, if that must be looked
// at: after "for (…)" and a line break the statement is not one of its own.
func (s *source) headBody() (text string, needed bool) {
	for i, t := range s.tokens {
		if t.start == s.last {
			return bodyOpen + s.text[:s.last] + bodyClose, s.word(i-1) == ")"
		}
	}
	return "", false
}

// body wraps the source.
func (s *source) body(f form) body {
	b := body{implicit: f.implicit}
	var text strings.Builder
	line, column := 1, 1
	write := func(part string) {
		text.WriteString(part)
		if i := strings.LastIndexByte(part, '\n'); i >= 0 {
			line += strings.Count(part, "\n")
			column = len(part) - i
		} else {
			column += len(part)
		}
	}
	insert := func(part string) {
		b.edits = append(b.edits, edit{line, column, len(part)})
		write(part)
	}
	insert(bodyOpen)
	done := 0
	at := func(offset int, part string) {
		write(s.text[done:offset])
		insert(part)
		done = offset
	}
	marks := s.marks
	if !f.marked {
		marks = nil
	}
	for _, m := range marks {
		if f.implicit && m >= s.last {
			break // there is none behind the last statement's start but inside of it
		}
		at(m, mark)
	}
	if f.implicit {
		at(s.last, mark+"return ")
		for _, m := range marks {
			if m > s.last {
				at(m, mark)
			}
		}
	}
	write(s.text[done:])
	text.WriteString(bodyClose)
	b.text = text.String()
	return b
}

// bracketBody wraps the source in another kind of bracket: a source that
// closes the wrapper fits only one of them.
func (s *source) bracketBody() string { return "[async () => {" + s.text + "\n}][0]" }

// position puts a place in the body back to a place in what the model wrote.
func (s *source) position(b body, line, column int) (int, int) {
	for _, e := range slices.Backward(b.edits) {
		if e.line == line && column >= e.column {
			column = max(e.column, column-e.length)
		}
	}
	// The closing line of the body is not the model's.
	if last := 1 + strings.Count(s.text, "\n"); line > last {
		line = last
		column = len(s.text) - strings.LastIndexByte(s.text, '\n')
	}
	return line + s.line, max(column, 1)
}

// unescapeHTML returns the source with &gt; and the like resolved.
func (s *source) unescapeHTML() (*source, bool) {
	t := html.UnescapeString(s.text)
	if t == s.text {
		return nil, false
	}
	u := parseSource(t)
	u.line += s.line
	return u, true
}

var shellLine = regexp.MustCompile(`^(#!|\$ |(ls|cat|cd|curl|wget|grep|git|npm|npx|pip|python3?|node|echo|mkdir|rm|cp|mv|sudo|bash|sh|export|docker|find|which|head|tail|sed|awk)(\s+[-\w./"'~$:|{\\]|$))`)

// looksLikeShell tells whether text that is no JavaScript is a command line.
func looksLikeShell(text string) bool {
	return shellLine.MatchString(strings.TrimSpace(text))
}
