package codebridge

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/fastschema/qjs"
)

// unit is a program and what was made of it for the engine.
type unit struct {
	src   *source
	guest *guest

	body body
	made *transpiled // nil: the body went to the engine as it is
	fn   *qjs.Value
}

// scriptName is the file of the program in the engine's stacks.
const scriptName = "script.js"

// prepare compiles the program: as it is if that is JavaScript, else without
// its types, else with HTML's escapes resolved.
func (u *unit) prepare() (*Error, error) {
	if len(u.src.tokens) == 0 {
		return &Error{Kind: Syntax, Message: "the program is empty; write JavaScript such as: return await openclaw.tools.search(\"what you need\")"}, nil
	}
	if strings.IndexByte(u.src.text, 0) >= 0 {
		return &Error{Kind: Syntax, Message: "the program contains a NUL character"}, nil
	}
	original := u.src
	ok, err := u.compile()
	if !ok && err == nil {
		if plain, changed := u.src.unescapeHTML(); changed {
			u.src = plain
			ok, err = u.compile()
		}
	}
	if ok || err != nil {
		return nil, err
	}
	u.src = original
	return u.syntaxError(), nil
}

// compile tries the ways to read the program as JavaScript or TypeScript. err
// is a failure of the engine, not of the program.
func (u *unit) compile() (ok bool, err error) {
	var bodies []body
	head, doubtful := u.src.headBody()
	for _, f := range u.src.forms() {
		if f.implicit && doubtful {
			ok, err := u.evaluate(head)
			if err != nil {
				return false, err
			}
			if !ok {
				if _, problem := transpile(head, api.LoaderTS); problem != nil {
					continue
				}
			}
		}
		bodies = append(bodies, u.src.body(f))
	}
	for _, b := range bodies {
		u.body, u.made = b, nil
		if ok, err := u.evaluate(b.text); err != nil {
			return false, err
		} else if !ok {
			continue
		}
		if u.src.closed >= 0 {
			fn := u.fn
			if ok, err := u.evaluate(u.src.bracketBody()); err != nil || !ok {
				return false, err
			}
			u.fn = fn
		}
		if u.needsLowering() {
			if err := u.lower(b, api.LoaderJS); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	for _, b := range bodies {
		u.body, u.fn = b, nil
		if err := u.lower(b, api.LoaderTS); err != nil {
			return false, err
		}
		if u.fn != nil {
			return u.src.closed < 0, nil
		}
	}
	return false, nil
}

// needsLowering tells whether the program has async functions beside one that
// is its whole last statement, whose promise the prelude awaits anyway.
func (u *unit) needsLowering() bool {
	n := u.src.asyncs
	if last := u.src.last; last >= 0 {
		rest := strings.TrimPrefix(u.src.text[last:], "(")
		if strings.HasPrefix(rest, "async") {
			n--
		}
	}
	return n > 0
}

// lower compiles the body as esbuild rewrites it. If that does not work u.fn
// stays what it was.
func (u *unit) lower(b body, loader api.Loader) error {
	made, problem := transpile(b.text, loader)
	if problem != nil {
		return nil
	}
	before := u.fn
	ok, err := u.evaluate(made.text)
	if err != nil {
		return err
	}
	if !ok {
		u.fn = before
		return nil
	}
	u.made = made
	return nil
}

// evaluate gives a text to the engine and keeps its value, the body as a
// function, in u.fn. ok is false if the text is not JavaScript.
func (u *unit) evaluate(text string) (ok bool, err error) {
	fn, err := u.guest.compile(scriptName, text)
	switch {
	case err == nil:
		u.fn = fn
		return true, nil
	case errors.Is(err, errTrap):
		return false, err
	}
	return false, nil
}

// syntaxError tells why the program is neither JavaScript nor TypeScript.
func (u *unit) syntaxError() *Error {
	e := &Error{Kind: Syntax}
	b := u.src.body(form{})
	if _, p := transpile(b.text, api.LoaderTS); p != nil {
		e.Message = p.message
		if p.line > 1+strings.Count(u.src.text, "\n") {
			e.Message = "Unexpected end of the program: something is not closed"
		}
		if p.line > 0 {
			e.Line, e.Column = u.src.position(b, p.line, p.column)
		}
	} else if u.src.closed >= 0 {
		line := 1 + strings.Count(u.src.text[:u.src.closed], "\n")
		e.Line, e.Column = u.src.position(b, line, u.src.closed-strings.LastIndexByte(u.src.text[:u.src.closed], '\n'))
		if line == 1 {
			e.Column = u.src.closed + 1
		}
		e.Message = fmt.Sprintf("Unexpected %q: it closes nothing", u.src.text[u.src.closed])
	} else {
		_, err := u.guest.compile(scriptName, b.text)
		if err != nil {
			first, stack, _ := strings.Cut(err.Error(), "\n")
			e.Message = strings.TrimPrefix(first, "SyntaxError: ")
			if frames := u.frames(stack); len(frames) > 0 {
				e.Line, e.Column = frames[0].line, frames[0].column
			}
		}
	}
	switch {
	case looksLikeShell(u.src.text):
		e.Message += shellHint
	case u.src.imports > 0:
		e.Message += "; import is not available here: " + useTools
	}
	return e
}

// explain puts an exception into terms of the program's own source.
func (u *unit) explain(g guestError) *Error {
	e := &Error{Kind: Exception, Message: g.Message}
	switch {
	case g.Thrown:
		e.Message = "thrown: " + g.Message
	case g.Name == "ToolError" && g.Code != "":
		e.Message = "ToolError " + g.Code + ": " + g.Message
	case g.Name != "":
		e.Message = g.Name + ": " + g.Message
	}
	e.Message += hint(g, u.src.text)
	var stack []string
	for i, f := range u.frames(g.Stack) {
		if i == 0 {
			e.Line, e.Column = f.line, f.column
		}
		if i < 5 {
			stack = append(stack, fmt.Sprintf("at %s (line %d, column %d)", f.function, f.line, f.column))
		}
	}
	e.Stack = strings.Join(stack, "\n")
	return e
}

const (
	useTools  = "find a tool with openclaw.tools.search(...) and run it with openclaw.tools.call(id, args)"
	shellHint = "; this looks like a shell command, but the program must be JavaScript: " + useTools
)

// hint is one sentence more for exceptions that models run into.
func hint(g guestError, source string) string {
	switch g.Name {
	case "ReferenceError":
		name, rest, _ := strings.Cut(strings.TrimPrefix(g.Message, "'"), " ")
		name = strings.TrimSuffix(name, "'")
		switch {
		case strings.HasPrefix(rest, "is not initialized"):
			return "; a variable cannot be used in its own declaration: give it another name than " + name
		case !strings.HasPrefix(rest, "is not defined"):
			return ""
		}
		if looksLikeShell(source) {
			return shellHint
		}
		switch name {
		case "process", "Deno", "Bun", "fs", "os", "path", "module", "exports", "__dirname", "global", "window", "document", "axios", "XMLHttpRequest", "Buffer", "http", "https", "child_process", "std":
			return "; there is no such object here: " + useTools
		case "tool_search", "tool_describe", "tool_call", "search", "describe", "call", "call_tool", "callTool":
			return "; write openclaw.tools.search(...), openclaw.tools.describe(id) or openclaw.tools.call(id, args)"
		case "URL", "URLSearchParams", "TextEncoder", "TextDecoder", "structuredClone", "crypto", "atob", "btoa", "performance", "Intl":
			return "; this is plain JavaScript without the browser's objects"
		}
		return "; declare it with const or let, or, if it is a tool, write openclaw.tools.call(" + strconv.Quote(name) + ", {...})"
	case "InternalError", "RangeError":
		if strings.Contains(g.Message, "stack overflow") || strings.Contains(g.Message, "call stack") {
			return "; too deep recursion"
		}
	}
	return ""
}

type stackFrame struct {
	function     string
	line, column int
}

// frames reads the engine's stack and keeps the program's own part of it.
func (u *unit) frames(stack string) []stackFrame {
	var out []stackFrame
	for l := range strings.Lines(stack) {
		l = strings.TrimSpace(l)
		at, place, ok := strings.Cut(l, "("+scriptName)
		if !ok {
			if place, ok = strings.CutPrefix(l, "at "+scriptName); !ok {
				continue
			}
			at = ""
		}
		f := stackFrame{function: strings.TrimSpace(strings.TrimPrefix(at, "at "))}
		if f.function == "" || f.function == "<anonymous>" {
			f.function = "program"
		}
		parts := strings.Split(strings.Trim(place, ":)"), ":")
		f.line, _ = strconv.Atoi(parts[0])
		if len(parts) > 1 {
			f.column, _ = strconv.Atoi(parts[1])
		}
		if f.line == 0 || strings.HasPrefix(f.function, "__") { // esbuild's helpers
			continue
		}
		if u.made != nil {
			f.line, f.column = u.made.position(f.line, max(f.column, 1))
		}
		f.line, f.column = u.src.position(u.body, f.line, f.column)
		if len(out) > 0 && out[len(out)-1] == f {
			continue
		}
		out = append(out, f)
	}
	return out
}
