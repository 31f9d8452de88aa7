package directory

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// vocabulary is the words of an index and how many tools have each, sorted,
// immutable.
type vocabulary struct {
	terms   []string
	df      []int32
	letters []uint32 // which letters a word has, to pass over most in repair
	row     []int32  // its row in the table of word vectors, -1 for none
}

// apply returns the vocabulary after a change: how many more tools have a word.
func (v *vocabulary) apply(words map[string]int) *vocabulary {
	changed := slices.Sorted(maps.Keys(words))
	size := len(v.terms) + len(changed)
	next := &vocabulary{
		terms:   make([]string, 0, size),
		df:      make([]int32, 0, size),
		letters: make([]uint32, 0, size),
		row:     make([]int32, 0, size),
	}
	i := 0
	keep := func(n int) {
		next.terms = append(next.terms, v.terms[i:i+n]...)
		next.df = append(next.df, v.df[i:i+n]...)
		next.letters = append(next.letters, v.letters[i:i+n]...)
		next.row = append(next.row, v.row[i:i+n]...)
		i += n
	}
	for _, term := range changed {
		at, known := slices.BinarySearch(v.terms[i:], term)
		keep(at)
		df, row := int32(words[term]), int32(0)
		if known {
			df += v.df[i]
			row = v.row[i]
			i++
		} else {
			row = vectors().row(term)
		}
		if df > 0 {
			next.terms = append(next.terms, term)
			next.df = append(next.df, df)
			next.letters = append(next.letters, lettersOf(term))
			next.row = append(next.row, row)
		}
	}
	keep(len(v.terms) - i)
	return next
}

// count returns how many tools have term.
func (v *vocabulary) count(term string) int {
	if i, ok := slices.BinarySearch(v.terms, term); ok {
		return int(v.df[i])
	}
	return 0
}

// longer returns at most n words that begin with prefix, shorter ones first.
func (v *vocabulary) longer(prefix string, n int) []string {
	i, _ := slices.BinarySearch(v.terms, prefix)
	end := i
	for end < len(v.terms) && end-i < 64 && strings.HasPrefix(v.terms[end], prefix) {
		end++
	}
	if i < end && v.terms[i] == prefix {
		i++
	}
	found := slices.Clone(v.terms[i:end])
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return found[:min(n, len(found))]
}

// repair returns at most n words that an unknown word may be a slip of: with
// the same first letter, and one letter wrong, missing, too many or changed
// over, two in a long word. The nearest alone are returned.
func (v *vocabulary) repair(term string, n int) []string {
	most := 1
	if len(term) >= 8 {
		most = 2
	}
	first, _ := slices.BinarySearch(v.terms, term[:1])
	letters := lettersOf(term)
	var found []string
	for i := first; i < len(v.terms) && v.terms[i][0] == term[0]; i++ {
		w := v.terms[i]
		if len(w) < 3 || len(w) > maxWord || len(w)-len(term) > most || len(term)-len(w) > most ||
			bits.OnesCount32(letters^v.letters[i]) > 2*most {
			continue
		}
		d := distance(term, w)
		if d < most {
			most, found = d, found[:0]
		}
		if d == most {
			found = append(found, w)
		}
	}
	return found[:min(n, len(found))]
}

// lettersOf tells which letters a word has, one bit each; letters beyond
// ASCII share bits, which is right for a filter.
func lettersOf(term string) uint32 {
	var set uint32
	for i := range len(term) {
		set |= 1 << (term[i] % 32)
	}
	return set
}

// distance counts the letters to be changed, added, dropped or swapped with
// their neighbour to make b of a.
func distance(a, b string) int {
	var rows [3][maxWord + 1]uint8
	last, row, next := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		row[j] = uint8(j)
	}
	for i := range len(a) {
		next[0] = uint8(i + 1)
		for j := range len(b) {
			d := row[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, last[j-1]+1)
			}
			next[j+1] = d
		}
		last, row, next = row, next, last
	}
	return int(row[len(b)])
}

// neighbour is a word near another in meaning.
type neighbour struct {
	term string
	cos  float64
}

// near returns at most n words of the index that are nearest in meaning to
// term, no farther than least.
func (v *vocabulary) near(term string, n int, least float32) []neighbour {
	table := vectors()
	row := table.row(term)
	if row < 0 {
		return nil
	}
	own := &table.rows[row]
	var found []neighbour
	for i, r := range v.row {
		if r < 0 || r == row {
			continue
		}
		if c := own.cosine(&table.rows[r]); c >= least {
			found = append(found, neighbour{v.terms[i], float64(c)})
		}
	}
	slices.SortFunc(found, func(a, b neighbour) int {
		return cmp.Or(cmp.Compare(b.cos, a.cos), cmp.Compare(a.term, b.term))
	})
	return found[:min(n, len(found))]
}
