package directory

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// Queries are read up to these sizes (contract 4: any text is a query).
const (
	maxQueryBytes = 4096
	maxQueryWords = 64 // different ones
)

// weights say what a word counts in each field, in tenths.
var weights = [fields]int{inName: 30, inServer: 15, inText: 10, inParam: 5, inNotes: 3, inAbout: 6, inEnum: 6}

// The constants of BM25; k1 is in tenths like the weights.
var (
	bm25K1 = 9.0
	bm25B  = 0.75
)

// weigh is the weighted frequency of a word in a tool.
func weigh(n counts) int {
	sum := 0
	for f := range fields {
		sum += weights[f] * n.in(f)
	}
	return sum
}

// ranker is a snapshot of an index that can be searched. It is immutable and
// safe for concurrent use.
type ranker struct {
	docs     []*doc // by slot
	norms    []float64
	n        int
	vocab    *vocabulary
	names    *nameIndex
	servers  []upstreams.ServerInfo
	postings *postings // nil: nothing is indexed
}

// setLengths computes what BM25 needs of each tool's length.
func (r *ranker) setLengths(average float64) {
	r.norms = make([]float64, len(r.docs))
	for i, d := range r.docs {
		if d != nil {
			r.norms[i] = bm25K1 * (1 - bm25B + bm25B*float64(d.length)/average)
		}
	}
}

// release frees what the snapshot holds. Nobody may search it any more.
func (r *ranker) release() {
	if r.postings != nil {
		r.postings.release()
	}
}

// search returns at most limit tools for a query, best first. Any text is a
// query; the error is ctx's or the index's.
func (r *ranker) search(ctx context.Context, query string, limit int) ([]scored, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.postings == nil || limit <= 0 {
		return nil, nil
	}
	q := r.plan(query)
	s := newScores(len(r.docs))
	defer s.free()
	for g, group := range q.groups {
		for _, alt := range group {
			if err := r.postings.each(alt.term, func(slot uint32, n counts) {
				tf := float64(weigh(n))
				s.raise(g, slot, alt.weight*tf/(tf+r.norms[slot]))
			}); err != nil {
				return nil, err
			}
		}
	}
	hits := make([]scored, 0, len(s.touched))
	for _, slot := range s.touched {
		hits = append(hits, scored{r.docs[slot].tool, s.total[slot]})
	}
	sortHits(hits)
	return hits[:min(limit, len(hits))], nil
}

// sortHits sorts best first; what ranks alike is sorted by id, so that the
// same query has the same answer on every run.
func sortHits(hits []scored) {
	for i := range hits {
		hits[i].score = math.Round(hits[i].score*1e9) / 1e9
	}
	slices.SortFunc(hits, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.tool.ID, b.tool.ID))
	})
}

// scores adds up what tools get for a query. Of the alternatives of one group
// a tool gets the best alone: they are one word of the query.
type scores struct {
	total   []float64 // by slot
	best    []float64 // of the group that stamp names
	stamp   []int32
	touched []uint32 // slots with a total
}

var scorePool sync.Pool

func newScores(slots int) *scores {
	s, _ := scorePool.Get().(*scores)
	if s == nil || cap(s.total) < slots {
		s = &scores{total: make([]float64, slots), best: make([]float64, slots), stamp: make([]int32, slots)}
	}
	s.total, s.best, s.stamp = s.total[:slots], s.best[:slots], s.stamp[:slots]
	return s
}

func (s *scores) free() {
	for _, slot := range s.touched {
		s.total[slot], s.stamp[slot] = 0, 0
	}
	s.touched = s.touched[:0]
	scorePool.Put(s)
}

func (s *scores) raise(group int, slot uint32, score float64) {
	switch g := int32(group + 1); {
	case s.stamp[slot] != g:
		if s.stamp[slot] == 0 {
			s.touched = append(s.touched, slot)
		}
		s.stamp[slot], s.best[slot] = g, score
		s.total[slot] += score
	case score > s.best[slot]:
		s.total[slot] += score - s.best[slot]
		s.best[slot] = score
	}
}

// plan is a query as the index is asked.
type plan struct {
	groups [][]alternative // one a word of the query
}

// alternative is a word that stands for a word of the query.
type alternative struct {
	term   string
	weight float64 // with the idf
}

func (r *ranker) plan(query string) plan {
	query = cut(query, maxQueryBytes)
	for len(query) > 0 && !utf8.ValidString(query[max(0, len(query)-utf8.UTFMax):]) && len(query) > maxQueryBytes-utf8.UTFMax {
		query = query[:len(query)-1]
	}
	var terms []string
	times := make(map[string]int)
	for _, w := range appendWords(nil, query) {
		if w.stop {
			continue
		}
		if times[w.term]++; times[w.term] == 1 {
			if terms = append(terms, w.term); len(terms) == maxQueryWords {
				break
			}
		}
	}
	var p plan
	for _, t := range terms {
		df := r.vocab.count(t)
		if df == 0 {
			continue
		}
		weight := 1 + math.Log(float64(times[t]))
		p.groups = append(p.groups, []alternative{{t, weight * r.idf(df)}})
	}
	return p
}

// idf tells how much a word says that df of the tools have.
func (r *ranker) idf(df int) float64 {
	return math.Log(1 + (float64(r.n-df)+0.5)/(float64(df)+0.5))
}

// nearServers names servers whose own words match the query, at most 3.
func (r *ranker) nearServers(query string) []string { return nil }
