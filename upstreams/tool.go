package upstreams

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
)

// Why a tool is known but no caller sees it.
const (
	hiddenApp      = "app-only tool"           // _meta.ui.visibility is ["app"]
	hiddenTask     = "requires task execution" // execution.taskSupport is "required"
	hiddenFiltered = "excluded by toolFilter"
)

// maxToolName is far above the 128 characters that MCP 2025-11-25 recommends
// for a tool's name; what is longer is an accident or an attack.
const maxToolName = 1024

// maxToolWarnings bounds what is said of one listing.
const maxToolWarnings = 50

// toolParser turns what one server lists into Tools.
type toolParser struct {
	cfg       *Config
	safe      string
	nameLimit int
}

// parse reads the items of a listing in order. Broken items are left out and
// told in the warnings; of two with one name the first stays. A definition
// that did not change stays the *Tool that it was before, and equal schemas
// are compiled once.
func (p *toolParser) parse(items []json.RawMessage, before []*Tool) (tools []*Tool, warnings []string) {
	old := make(map[string]*Tool, len(before))
	schemas := map[[sha256.Size]byte]*schema{}
	for _, t := range before {
		old[t.Name] = t
		for _, s := range []*schema{t.checker.in, t.checker.out} {
			if s != nil {
				schemas[sha256.Sum256(s.raw)] = s
			}
		}
	}
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		o, name, err := readTool(item)
		switch {
		case err != nil:
			warnings = append(warnings, fmt.Sprintf("tool %d of the list is left out: %v", i+1, err))
		case seen[name]:
			warnings = append(warnings, fmt.Sprintf("tool %q is listed twice: the first definition stays", name))
		default:
			seen[name] = true
			t := old[name]
			if t == nil || !bytes.Equal(t.Raw, item) {
				t = p.tool(name, o, item, schemas)
			}
			tools = append(tools, t)
		}
	}
	if more := len(warnings) - maxToolWarnings; more > 0 {
		warnings = append(warnings[:maxToolWarnings], fmt.Sprintf("and %d more tools are left out or listed twice", more))
	}
	return tools, warnings
}

// readTool parses one item of a listing as far as its name.
func readTool(item json.RawMessage) (rawjson.Object, string, error) {
	o, err := rawjson.Parse(item)
	if err != nil {
		return nil, "", err
	}
	name, ok := o.Text("name")
	switch {
	case !o.Has("name"):
		return nil, "", errors.New("it has no name")
	case !ok:
		return nil, "", errors.New("its name is not a string")
	case strings.TrimSpace(name) == "":
		return nil, "", errors.New("its name is empty")
	case len(name) > maxToolName:
		return nil, "", fmt.Errorf("its name has %d bytes, more than %d", len(name), maxToolName)
	case strings.ContainsFunc(name, invisible):
		// Shown neutralised it could not be called by the name that was shown.
		return nil, "", fmt.Errorf("its name %q holds line breaks or invisible characters", name)
	}
	return o, name, nil
}

func invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func (p *toolParser) tool(name string, o rawjson.Object, raw json.RawMessage, schemas map[[sha256.Size]byte]*schema) *Tool {
	t := &Tool{
		Server:        p.cfg.Name,
		Safe:          p.safe,
		Name:          name,
		ID:            ToolID(p.safe, name),
		FullName:      FullName(p.safe, name, p.nameLimit),
		InputSchema:   present(o.Get("inputSchema")),
		OutputSchema:  present(o.Get("outputSchema")),
		Raw:           raw,
		Trust:         p.cfg.trust(),
		DirectOnly:    p.cfg.catalogMode(name) == catalogDirectOnly,
		Hidden:        p.hidden(name, o),
		ParallelCalls: p.cfg.SupportsParallelToolCalls,
		Validate:      p.cfg.validateMode(),
	}
	t.Title, _ = o.Text("title")
	t.Description, _ = o.Text("description")
	if a := child(o, "annotations"); a != nil {
		if t.Title == "" {
			t.Title, _ = a.Text("title")
		}
		t.Annotations = Annotations{
			ReadOnly:    boolean(a.Get("readOnlyHint")),
			Destructive: boolean(a.Get("destructiveHint")),
			Idempotent:  boolean(a.Get("idempotentHint")),
			OpenWorld:   boolean(a.Get("openWorldHint")),
		}
	}
	share := func(raw json.RawMessage) *schema {
		if raw == nil {
			return nil
		}
		key := sha256.Sum256(raw)
		if schemas[key] == nil {
			schemas[key] = &schema{raw: raw}
		}
		return schemas[key]
	}
	t.checker = &checker{in: share(t.InputSchema), out: share(t.OutputSchema)}
	return t
}

func (p *toolParser) hidden(name string, o rawjson.Object) string {
	if onlyForApps(child(child(o, "_meta"), "ui").Get("visibility")) {
		return hiddenApp
	}
	if s, _ := child(o, "execution").Text("taskSupport"); s == "required" {
		return hiddenTask
	}
	if !p.cfg.ToolFilter.admits(name) {
		return hiddenFiltered
	}
	return ""
}

func onlyForApps(visibility json.RawMessage) bool {
	var who []string
	if len(visibility) == 0 || json.Unmarshal(visibility, &who) != nil {
		return false
	}
	for _, w := range who {
		if w != "app" {
			return false
		}
	}
	return len(who) > 0
}

// child returns a member that is an object, else nil.
func child(o rawjson.Object, name string) rawjson.Object {
	v := o.Get(name)
	if len(v) == 0 || v[0] != '{' {
		return nil
	}
	c, err := rawjson.Parse(v)
	if err != nil {
		return nil
	}
	return c
}

func present(v json.RawMessage) json.RawMessage {
	if rawjson.IsNull(v) {
		return nil
	}
	return v
}

// boolean returns nil for anything but true and false.
func boolean(v json.RawMessage) *bool {
	switch string(v) {
	case "true":
		return new(true)
	case "false":
		return new(false)
	}
	return nil
}
