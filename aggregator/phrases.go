package aggregator

import "fmt"

// phrases are the ways to our tools in the words of whoever reads: a client
// sees other tools in each mode, and a script sees functions. Most clients
// refuse names that were not listed, so no text tells to call a tool by name.
type phrases struct {
	call    string                            // what calls a tool
	search  func(words string) string         // a ready search; nil: there is none
	example func(id, signature string) string // a ready call
	own     map[string]string                 // control tools that have other names there
}

var phrasesTools = phrases{
	call: nameCall,
	search: func(words string) string {
		return fmt.Sprintf(`%s {"query":%s}`, nameSearch, quote(words))
	},
	example: func(id, signature string) string {
		return fmt.Sprintf(`%s {"id":%s,"args":…}, args being %s`, nameCall, quote(id), signature)
	},
}

var phrasesScript = phrases{
	call: "openclaw.tools.call",
	search: func(words string) string {
		return fmt.Sprintf(`await openclaw.tools.search(%s)`, quote(words))
	},
	example: func(id, signature string) string {
		return fmt.Sprintf(`await openclaw.tools.call(%s, args), args being %s`, quote(id), signature)
	},
	own: map[string]string{nameSearch: "openclaw.tools.search", nameDescribe: "openclaw.tools.describe", nameCall: "openclaw.tools.call"},
}

var phrasesCode = phrases{
	call: "openclaw.tools.call in " + nameCode,
	search: func(words string) string {
		return codeSnippet(phrasesScript.search(words))
	},
	example: func(id, signature string) string {
		return codeSnippet(fmt.Sprintf(`await openclaw.tools.call(%s, args)`, quote(id))) + ", args being " + signature
	},
}

var phrasesOff = phrases{
	call:    "its listed name",
	example: func(_, signature string) string { return "arguments that fit " + signature },
}

// phrasesShell are for a person who uses the commands of the program.
var phrasesShell = phrases{
	call: "toolsearch-mcp call",
	search: func(words string) string {
		return fmt.Sprintf("toolsearch-mcp search %s", quote(words))
	},
	example: func(id, signature string) string {
		return fmt.Sprintf("toolsearch-mcp call %s with a JSON object: %s", id, signature)
	},
	own: map[string]string{
		nameSearch: "toolsearch-mcp search", nameDescribe: "toolsearch-mcp describe",
		nameCall: "toolsearch-mcp call", nameCode: "toolsearch-mcp code",
	},
}

func codeSnippet(expression string) string {
	return fmt.Sprintf(`%s {"code":%s}`, nameCode, quote("return "+expression))
}

func phrasesFor(c *session) phrases {
	if c.local {
		return phrasesShell
	}
	switch c.face().mode {
	case ModeCode:
		return phrasesCode
	case ModeOff:
		return phrasesOff
	}
	return phrasesTools
}

// next says what to do when no tool is found.
func (p phrases) next(words string) string {
	if p.search == nil {
		return "call one of the listed tools"
	}
	return "find it first: " + p.search(words)
}

// instead says what to use in place of a control tool that is not there.
func (p phrases) instead() string {
	if p.search == nil {
		return "call one of the listed tools"
	}
	return "use " + p.search("what the tool should do")
}

// name returns what a control tool is called there.
func (p phrases) name(control string) string {
	if own := p.own[control]; own != "" {
		return own
	}
	return control
}
