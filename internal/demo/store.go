package demo

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
)

// store keeps the records of one server: notes, events, contacts, tickets.
type store struct {
	kind     string   // "note": ids are note-1, note-2 …
	searched []string // fields that search looks into

	// mu guards the following.
	mu      sync.Mutex
	last    int
	records []object // in order of creation
}

func newStore(kind string, searched []string, seed ...object) *store {
	s := &store{kind: kind, searched: searched}
	for _, r := range seed {
		s.add(r)
	}
	return s
}

// add keeps a record under a new id.
func (s *store) add(r object) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	r["id"] = fmt.Sprintf("%s-%d", s.kind, s.last)
	s.records = append(s.records, r)
	return clone(r)
}

func (s *store) indexLocked(id string) (int, error) {
	for i, r := range s.records {
		if r["id"] == id {
			return i, nil
		}
	}
	return 0, fmt.Errorf("there is no %s with the id %q; the list and search tools tell the ids", s.kind, id)
}

func (s *store) get(id string) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := s.indexLocked(id)
	if err != nil {
		return nil, err
	}
	return clone(s.records[i]), nil
}

// change lets f alter a record and returns it.
func (s *store) change(id string, f func(object) error) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := s.indexLocked(id)
	if err != nil {
		return nil, err
	}
	if err := f(s.records[i]); err != nil {
		return nil, err
	}
	return clone(s.records[i]), nil
}

func (s *store) remove(id string) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := s.indexLocked(id)
	if err != nil {
		return nil, err
	}
	s.records = slices.Delete(s.records, i, i+1)
	return object{"deleted": id}, nil
}

// list returns the records that keep accepts, in order of creation.
func (s *store) list(keep func(object) bool) []object {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []object{}
	for _, r := range s.records {
		if keep(r) {
			out = append(out, clone(r))
		}
	}
	return out
}

// search returns the records that hold all words of a query.
func (s *store) search(query string, limit int) []object {
	words := strings.Fields(strings.ToLower(query))
	found := s.list(func(r object) bool {
		var text strings.Builder
		for _, f := range s.searched {
			fmt.Fprintf(&text, "%v\n", r[f])
		}
		all := strings.ToLower(text.String())
		for _, w := range words {
			if !strings.Contains(all, w) {
				return false
			}
		}
		return len(words) > 0
	})
	return first(found, limit)
}

// tally counts the values of a field over all records; lists count each item.
func (s *store) tally(field string) object {
	counts := object{}
	for _, r := range s.list(func(object) bool { return true }) {
		values, isList := r[field].([]string)
		if !isList {
			values = []string{fmt.Sprint(r[field])}
		}
		for _, v := range values {
			n, _ := counts[v].(int)
			counts[v] = n + 1
		}
	}
	return counts
}

// The handlers that most servers have alike.

func (s *store) getTool(a arguments) (any, error)    { return s.get(a.text("id")) }
func (s *store) deleteTool(a arguments) (any, error) { return s.remove(a.text("id")) }

func (s *store) searchTool(a arguments) (any, error) {
	return s.search(a.text("query"), a.count("limit", 10)), nil
}

func (s *store) tallyTool(field string) handler {
	return func(arguments) (any, error) { return s.tally(field), nil }
}

// updateTool replaces the text fields that were given.
func (s *store) updateTool(fields ...string) handler {
	return func(a arguments) (any, error) {
		return s.change(a.text("id"), func(r object) error {
			for _, f := range fields {
				if a.has(f) {
					r[f] = a.text(f)
				}
			}
			return nil
		})
	}
}

// setTool sets one field to an argument as it came.
func (s *store) setTool(field, argument string, otherwise any) handler {
	return func(a arguments) (any, error) {
		return s.change(a.text("id"), func(r object) error {
			r[field] = otherwise
			if a.has(argument) {
				r[field] = a[argument]
			}
			return nil
		})
	}
}

// addItemsTool adds to a list field what is not in it yet.
func (s *store) addItemsTool(field string) handler {
	return func(a arguments) (any, error) {
		return s.change(a.text("id"), func(r object) error {
			r[field] = union(r[field].([]string), a.texts(field))
			return nil
		})
	}
}

// removeItemsTool takes items out of a list field.
func (s *store) removeItemsTool(field string) handler {
	return func(a arguments) (any, error) {
		return s.change(a.text("id"), func(r object) error {
			kept := []string{}
			for _, v := range r[field].([]string) {
				if !slices.Contains(a.texts(field), v) {
					kept = append(kept, v)
				}
			}
			r[field] = kept
			return nil
		})
	}
}

func union(a, b []string) []string {
	out := append([]string{}, a...)
	for _, v := range b {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func first[T any](items []T, n int) []T { return items[:min(max(n, 0), len(items))] }

// newestFirst reverses a list in place.
func newestFirst(records []object) []object {
	slices.Reverse(records)
	return records
}

func sortBy(records []object, field string) []object {
	sort.SliceStable(records, func(i, j int) bool {
		return fmt.Sprint(records[i][field]) < fmt.Sprint(records[j][field])
	})
	return records
}

// without returns copies that lack some fields, for short lists.
func without(records []object, fields ...string) []object {
	for _, r := range records {
		for _, f := range fields {
			delete(r, f)
		}
	}
	return records
}

// clone copies a record; its lists are replaced, never changed in place.
func clone(r object) object { return maps.Clone(r) }
