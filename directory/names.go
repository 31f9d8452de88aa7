package directory

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// nameIndex finds tools by any form of their names: sorted by hash, immutable.
type nameIndex struct {
	keys []nameKey
}

// nameKey joins a name, by its hash, to the slot of a tool that has it.
type nameKey struct {
	hash uint64
	slot uint32
}

func compareNames(a, b nameKey) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.slot, b.slot))
}

var nameSeed = maphash.MakeSeed()

// plainName is what is left of a name when case, accents and separators do
// not count: all that people and models get wrong in names.
func plainName(dst []byte, name string) []byte {
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			continue
		}
		dst = appendFolded(dst, r)
	}
	return dst
}

// nameForm is a name of a tool, maybe with its server's in front.
type nameForm struct{ server, name string }

func (f nameForm) plain(dst []byte) []byte { return plainName(plainName(dst, f.server), f.name) }

// nameForms are the names that a tool goes by, the more exact ones first.
func nameForms(t *upstreams.Tool) [6]nameForm {
	return [6]nameForm{{"", t.ID}, {"", t.FullName}, {t.Safe, t.Name}, {t.Server, t.Name}, {"", t.Name}, {"", t.Title}}
}

// appendNames appends the keys of every form of t's name: alone, and with the
// server in front, as configured and as in ids.
func appendNames(keys []nameKey, t *upstreams.Tool, slot uint32) []nameKey {
	first := len(keys)
	var buf [128]byte
	for _, form := range nameForms(t) {
		plain := form.plain(buf[:0])
		if len(plain) == 0 {
			continue
		}
		k := nameKey{maphash.Bytes(nameSeed, plain), slot}
		if !slices.Contains(keys[first:], k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// apply returns the index after a change.
func (x *nameIndex) apply(gone, added []nameKey) *nameIndex {
	slices.SortFunc(gone, compareNames)
	slices.SortFunc(added, compareNames)
	keys := make([]nameKey, 0, len(x.keys)+len(added))
	for _, k := range x.keys {
		if len(gone) > 0 && gone[0] == k {
			gone = gone[1:]
			continue
		}
		for len(added) > 0 && compareNames(added[0], k) < 0 {
			keys, added = append(keys, added[0]), added[1:]
		}
		keys = append(keys, k)
	}
	return &nameIndex{keys: append(keys, added...)}
}

// find calls f with every slot whose tool may have this plain name.
func (x *nameIndex) find(plain []byte, f func(slot uint32)) {
	hash := maphash.Bytes(nameSeed, plain)
	i, _ := slices.BinarySearchFunc(x.keys, nameKey{hash: hash}, compareNames)
	for ; i < len(x.keys) && x.keys[i].hash == hash; i++ {
		f(x.keys[i].slot)
	}
}

// named is a tool that a query names.
type named struct {
	slot uint32
	form int // which form of its name, the more exact the lower
}

// asWritten is the form of a name that the query spells letter by letter.
const asWritten = -1

// lookup returns the tools that go by name, in any case and with any
// separators.
func (r *ranker) lookup(name string) []named {
	plain := plainName(nil, name)
	if len(plain) == 0 {
		return nil
	}
	var found []named
	name = strings.TrimSpace(name)
	r.names.find(plain, func(slot uint32) {
		t := r.docs[slot].tool
		if name == t.Name || name == t.ID || name == t.FullName {
			found = append(found, named{slot, asWritten})
			return
		}
		for form, have := range nameForms(t) {
			if string(have.plain(nil)) == string(plain) {
				found = append(found, named{slot, form})
				return
			}
		}
	})
	return found
}

// namedIn returns the tools that a query names, a list for each name: the
// query as a whole is a name, or each of its parts is, or some of its words
// are and look like names.
func (r *ranker) namedIn(query string) [][]named {
	if whole := r.lookup(query); whole != nil {
		return [][]named{whole}
	}
	for _, separators := range []string{",;|\n", ",;|\n\t "} {
		parts := strings.FieldsFunc(query, func(c rune) bool { return strings.ContainsRune(separators, c) })
		if lists := r.allNamed(parts); lists != nil {
			return lists
		}
	}
	var lists [][]named
	for _, w := range strings.FieldsFunc(query, betweenNames) {
		if looksLikeName(w) {
			if found := r.lookup(w); found != nil {
				lists = append(lists, found)
			}
		}
	}
	return lists
}

// allNamed returns the tools that parts name, nil if one of them names none.
func (r *ranker) allNamed(parts []string) [][]named {
	if len(parts) < 2 || len(parts) > maxQueryWords {
		return nil
	}
	var lists [][]named
	for _, part := range parts {
		if len(plainName(nil, part)) == 0 {
			continue
		}
		found := r.lookup(part)
		if found == nil {
			return nil
		}
		lists = append(lists, found)
	}
	return lists
}

// betweenNames tells whether c cannot be in the name of a tool as one writes it.
func betweenNames(c rune) bool {
	return unicode.IsSpace(c) || strings.ContainsRune(",;|\"'`()[]{}<>", c)
}

// looksLikeName tells whether a word of a sentence is written like the name
// of a tool, not like plain English.
func looksLikeName(w string) bool {
	w = strings.TrimFunc(w, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	var before rune
	for _, c := range w {
		if strings.ContainsRune("_-.:/", c) || unicode.IsDigit(c) || unicode.IsLower(before) && unicode.IsUpper(c) {
			return true
		}
		before = c
	}
	return false
}

// serverNamed returns the server if a query names one and asks for nothing
// else, "" if it does not.
func (r *ranker) serverNamed(query string) string {
	var plain []byte
	for w := range strings.FieldsSeq(query) {
		word := plainName(nil, w)
		if !serverWords[string(word)] {
			plain = append(plain, word...)
		}
	}
	if len(plain) == 0 {
		return ""
	}
	return r.servers[string(plain)]
}

// serversLike returns the servers that a word of the query may be a slip of.
func (r *ranker) serversLike(query string) []string {
	var found []string
	for w := range strings.FieldsSeq(query) {
		plain := string(plainName(nil, w))
		if len(plain) < slipLetters || len(plain) > maxWord {
			continue
		}
		for name, server := range r.servers {
			if len(name) <= maxWord && distance(plain, name) <= 1+len(plain)/8 && !slices.Contains(found, server) {
				found = append(found, server)
			}
		}
	}
	slices.Sort(found)
	return found
}

// serverNames gives the configured name for each plain name of the servers.
func serverNames(servers []upstreams.ServerInfo) map[string]string {
	names := make(map[string]string)
	for _, nameOf := range []func(upstreams.ServerInfo) string{
		func(s upstreams.ServerInfo) string { return s.Name },
		func(s upstreams.ServerInfo) string { return s.Safe },
		func(s upstreams.ServerInfo) string { return s.Title }, // its own word: it takes no name from another
	} {
		for _, s := range servers {
			plain := string(plainName(nil, nameOf(s)))
			if _, taken := names[plain]; plain != "" && !taken {
				names[plain] = s.Name
			}
		}
	}
	return names
}

// serverWords are what people write beside the name of a server when they
// want to know what it can do.
var serverWords = wordSet(`a all available can commands do does for from functions give have i in is list mcp me my of on
please server show the tool tools what which with you`)
