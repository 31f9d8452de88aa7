package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/toolsearch-mcp/toolsearch-mcp"

// mayImport is who may import whom, as ARCHITECTURE.md draws it. A key is a
// package of this module; project names packages of this module, modules the
// others, each with the reason why it is needed. The table changes in the same
// commit as the import.
var mayImport = map[string]struct {
	project []string
	modules map[string]string
}{
	"internal/rawjson":   {},
	"internal/secret":    {},
	"internal/telemetry": {},
	"internal/guardian":  {},
	"internal/wire": {
		project: []string{"internal/rawjson"},
		modules: map[string]string{sdk: "its transports are the seam"},
	},
	"upstreams": {
		project: []string{"internal/guardian", "internal/rawjson", "internal/secret", "internal/telemetry", "internal/wire"},
		modules: map[string]string{
			sdk: "client sessions and HTTP transports",
			"github.com/santhosh-tekuri/jsonschema/v6": "arguments and results against their schemas, draft-04 to 2020-12",
			"golang.org/x/sys":                         "process groups on Windows",
		},
	},
	"policy": {project: []string{"upstreams"}},
	"directory": {
		project: []string{"upstreams"},
		modules: map[string]string{
			"github.com/blugelabs/bluge":             "the inverted index",
			"github.com/blugelabs/bluge_segment_api": "bluge's types for postings",
			"github.com/blevesearch/snowballstem":    "stems of English words",
		},
	},
	"directory/rankeval": {project: []string{"directory", "upstreams"}},
	"codebridge": {
		modules: map[string]string{
			"github.com/fastschema/qjs":           "QuickJS in WebAssembly",
			"github.com/tetratelabs/wazero":       "the WebAssembly runtime below qjs",
			"github.com/evanw/esbuild":            "strips TypeScript annotations",
			"github.com/elastic/go-seccomp-bpf":   "the child gives up system calls",
			"github.com/landlock-lsm/go-landlock": "the child gives up the file system",
		},
	},
	"aggregator": {
		project: []string{"codebridge", "directory", "internal/rawjson", "internal/telemetry", "internal/wire", "policy", "upstreams"},
		modules: map[string]string{sdk: "the MCP server"},
	},
	"internal/config": {
		project: []string{"aggregator", "codebridge", "internal/secret", "policy", "upstreams"}, // their Config structs
		modules: map[string]string{"gopkg.in/yaml.v3": "the file"},
	},
	"internal/demo": {
		project: []string{"upstreams"},
		modules: map[string]string{sdk: "the sample servers"},
	},
	"internal/mcptest": {modules: map[string]string{sdk: "mcp.Transport"}},
	"e2e":              {},
	"cmd/toolsearch-mcp": {
		project: []string{
			"aggregator", "codebridge", "directory", "internal/config", "internal/demo",
			"internal/telemetry", "internal/wire", "policy", "upstreams",
		},
		modules: map[string]string{
			"github.com/spf13/cobra":       "the command line",
			"github.com/fsnotify/fsnotify": "the configuration file is watched",
		},
	},
}

const sdk = "github.com/modelcontextprotocol/go-sdk"

// inTests may be imported by tests of any package, beside what the package
// itself may import.
var inTests = []string{
	module,
	sdk,
	"github.com/google/go-cmp",
	"github.com/rogpeppe/go-internal",
	"github.com/santhosh-tekuri/jsonschema/v6",
	"gopkg.in/yaml.v3",
	"golang.org/x/sys",
}

type goPackage struct {
	ImportPath, Name, Doc              string
	Imports, TestImports, XTestImports []string
}

func listPackages(t *testing.T, goos string) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Doc,Imports,TestImports,XTestImports", module+"/...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// within tells whether a package belongs to a module or folder.
func within(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

func isStandard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return !strings.Contains(first, ".")
}

func TestImports(t *testing.T) {
	unused := map[string]bool{} // "package imports other", as the table allows it
	for name, may := range mayImport {
		for _, other := range slices.Concat(may.project, keys(may.modules)) {
			unused[name+" imports "+other] = true
		}
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, p := range listPackages(t, goos) {
			name := strings.TrimPrefix(p.ImportPath, module+"/")
			may, known := mayImport[name]
			if !known {
				t.Errorf("package %s is not in the table of imports", name)
			}
			for _, i := range p.Imports {
				maps.DeleteFunc(unused, func(line string, _ bool) bool {
					importer, other, _ := strings.Cut(line, " imports ")
					return importer == name && within(strings.TrimPrefix(i, module+"/"), other)
				})
				switch ours, isOurs := strings.CutPrefix(i, module+"/"); {
				case isStandard(i):
				case isOurs && !slices.Contains(may.project, ours):
					t.Errorf("%s: %s imports %s, which the table of imports does not allow", goos, name, ours)
				case !isOurs && !slices.ContainsFunc(keys(may.modules), func(m string) bool { return within(i, m) }):
					t.Errorf("%s: %s imports %s, which the table of imports does not allow", goos, name, i)
				}
			}
			for _, i := range append(p.TestImports, p.XTestImports...) {
				allowed := append(keys(may.modules), inTests...)
				if !isStandard(i) && !slices.ContainsFunc(allowed, func(m string) bool { return within(i, m) }) {
					t.Errorf("%s: tests of %s import %s", goos, name, i)
				}
			}
		}
	}
	for _, line := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("%s in the table alone: remove it there", line)
	}
}

func keys(m map[string]string) []string { return slices.Collect(maps.Keys(m)) }

// TestPackageDocs: each package says its job at its head.
func TestPackageDocs(t *testing.T) {
	for _, p := range listPackages(t, "linux") {
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command "
		}
		if p.Name != "" && len(p.Imports) > 0 && !strings.HasPrefix(p.Doc, want) {
			t.Errorf("%s: the package's comment is %q, want one that begins with %q", p.ImportPath, p.Doc, want)
		}
	}
}

// TestGoMod: no replaced module, and a reason at every direct requirement.
func TestGoMod(t *testing.T) {
	b, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	inRequire := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "replace") || strings.HasPrefix(line, "exclude"):
			t.Errorf("go.mod: %q: dependencies are used as they are published", line)
		case line == "require (":
			inRequire = true
		case line == ")":
			inRequire = false
		case inRequire && line != "" && !strings.HasPrefix(line, "//") && !strings.Contains(line, "//"):
			t.Errorf("go.mod: %q has no comment that says why it is needed", line)
		}
	}
}
