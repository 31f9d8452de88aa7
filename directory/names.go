package directory

import (
	"hash/maphash"
	"slices"
	"unicode"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// nameIndex finds tools by any form of their names: sorted by hash, immutable.
type nameIndex struct {
	keys []nameKey
}

var nameSeed = maphash.MakeSeed()

// plainName is what is left of a name when case, accents and separators do
// not count: all that people and models get wrong in names.
func plainName(dst []byte, name string) []byte {
	for _, r := range name {
		if r < 0x80 && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9') {
			continue
		}
		if r >= 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			continue
		}
		dst = appendFolded(dst, r)
	}
	return dst
}

// appendNames appends the keys of every form of t's name: alone, and with the
// server in front, as configured and as in ids.
func appendNames(keys []nameKey, t *upstreams.Tool, slot uint32) []nameKey {
	first := len(keys)
	for _, name := range nameForms(t) {
		plain := plainName(nil, name)
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

func nameForms(t *upstreams.Tool) [6]string {
	return [6]string{t.Name, t.FullName, t.ID, t.Server + t.Name, t.Safe + t.Name, t.Title}
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
