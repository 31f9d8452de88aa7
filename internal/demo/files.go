package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// disk is a file system in memory: absolute clean paths and their content.
type disk struct {
	mu    sync.Mutex
	files map[string]string
}

func (d *disk) read(p string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	content, ok := d.files[clean(p)]
	if !ok {
		return "", fmt.Errorf("there is no file %s; directory_tree tells what there is", clean(p))
	}
	return content, nil
}

func (d *disk) write(p, content string) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if clean(p) == "/" {
		return nil, fmt.Errorf("%q is not the path of a file", p)
	}
	d.files[clean(p)] = content
	return object{"path": clean(p), "bytes": len(content)}, nil
}

// below returns the paths of the files in a directory at any depth, sorted.
func (d *disk) below(dir string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	prefix := strings.TrimSuffix(clean(dir), "/") + "/"
	var found []string
	for _, p := range slices.Sorted(maps.Keys(d.files)) {
		if strings.HasPrefix(p, prefix) {
			found = append(found, p)
		}
	}
	return found
}

// transfer copies a file and removes the source if it is to move.
func (d *disk) transfer(from, to string, move bool) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	content, ok := d.files[clean(from)]
	if !ok {
		return nil, fmt.Errorf("there is no file %s", clean(from))
	}
	if _, taken := d.files[clean(to)]; taken {
		return nil, fmt.Errorf("there is a file %s already", clean(to))
	}
	d.files[clean(to)] = content
	if move {
		delete(d.files, clean(from))
	}
	return object{"path": clean(to), "bytes": len(content)}, nil
}

func clean(p string) string { return path.Clean("/" + p) }

func fileTools() map[string]handler {
	d := &disk{files: map[string]string{
		"/README.md":           "# Sample files\nThey live in memory.\n",
		"/reports/may.md":      "# May\nRevenue: 1204\nCosts: 980\n",
		"/reports/june.md":     "# June\nRevenue: 1310\nCosts: 1002\n",
		"/config/service.yaml": "name: sample\nport: 8080\nlog: warn\n",
	}}
	return map[string]handler{
		"write_file": func(a arguments) (any, error) { return d.write(a.text("path"), a.text("content")) },
		"read_file":  func(a arguments) (any, error) { return d.read(a.text("path")) },
		"read_file_lines": func(a arguments) (any, error) {
			content, err := d.read(a.text("path"))
			if err != nil {
				return nil, err
			}
			out := []string{}
			for i, l := range lines(content) {
				if n := i + 1; n >= a.count("first", 1) && len(out) < a.count("count", 100) {
					out = append(out, fmt.Sprintf("%d: %s", n, l))
				}
			}
			return strings.Join(out, "\n"), nil
		},
		"append_file": func(a arguments) (any, error) {
			content, err := d.read(a.text("path"))
			if err != nil {
				content = ""
			}
			return d.write(a.text("path"), content+a.text("content"))
		},
		"edit_file": func(a arguments) (any, error) {
			content, err := d.read(a.text("path"))
			if err != nil {
				return nil, err
			}
			switch n := strings.Count(content, a.text("old_text")); {
			case n == 0 || a.text("old_text") == "":
				return nil, fmt.Errorf("old_text does not occur in %s", clean(a.text("path")))
			case n > 1 && !a.flag("all", false):
				return nil, fmt.Errorf("old_text occurs %d times in %s; give more of its surroundings, or set all", n, clean(a.text("path")))
			}
			return d.write(a.text("path"), strings.ReplaceAll(content, a.text("old_text"), a.text("new_text")))
		},
		"delete_file": func(a arguments) (any, error) {
			if _, err := d.read(a.text("path")); err != nil {
				return nil, err
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.files, clean(a.text("path")))
			return object{"deleted": clean(a.text("path"))}, nil
		},
		"move_file":      func(a arguments) (any, error) { return d.transfer(a.text("source"), a.text("destination"), true) },
		"copy_file":      func(a arguments) (any, error) { return d.transfer(a.text("source"), a.text("destination"), false) },
		"list_directory": func(a arguments) (any, error) { return d.children(a.or("path", "/")), nil },
		"directory_tree": func(a arguments) (any, error) {
			tree := object{}
			for _, p := range d.below(a.or("path", "/")) {
				content, _ := d.read(p)
				tree[p] = len(content)
			}
			return tree, nil
		},
		"find_files": func(a arguments) (any, error) {
			found := []string{}
			for _, p := range d.below(a.or("path", "/")) {
				ok, err := path.Match(a.text("pattern"), path.Base(p))
				if err != nil {
					return nil, fmt.Errorf("pattern %q: %w", a.text("pattern"), err)
				}
				if ok {
					found = append(found, p)
				}
			}
			return found, nil
		},
		"grep_files": func(a arguments) (any, error) {
			fold := func(s string) string { return s }
			if a.flag("ignore_case", false) {
				fold = strings.ToLower
			}
			found := []object{}
			for _, p := range d.below(a.or("path", "/")) {
				content, _ := d.read(p)
				for i, l := range lines(content) {
					if strings.Contains(fold(l), fold(a.text("text"))) {
						found = append(found, object{"path": p, "line": i + 1, "text": l})
					}
				}
			}
			return found, nil
		},
		"file_info": func(a arguments) (any, error) {
			content, err := d.read(a.text("path"))
			if err != nil {
				return nil, err
			}
			sum := sha256.Sum256([]byte(content))
			return object{"path": clean(a.text("path")), "bytes": len(content), "lines": len(lines(content)), "sha256": hex.EncodeToString(sum[:])}, nil
		},
		"compare_files": func(a arguments) (any, error) {
			left, err := d.read(a.text("left"))
			if err != nil {
				return nil, err
			}
			right, err := d.read(a.text("right"))
			if err != nil {
				return nil, err
			}
			return object{"only_left": missing(lines(left), lines(right)), "only_right": missing(lines(right), lines(left))}, nil
		},
	}
}

// children lists what is directly inside a directory; folders end in a slash.
func (d *disk) children(dir string) []string {
	prefix := strings.TrimSuffix(clean(dir), "/") + "/"
	names := []string{}
	for _, p := range d.below(dir) {
		name, _, deeper := strings.Cut(strings.TrimPrefix(p, prefix), "/")
		if deeper {
			name += "/"
		}
		names = union(names, []string{name})
	}
	return names
}

// missing returns the lines of a that b does not have.
func missing(a, b []string) []string {
	out := []string{}
	for _, l := range a {
		if !slices.Contains(b, l) {
			out = append(out, l)
		}
	}
	return out
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
