package directory

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// weights say what a word counts in each field, in tenths.
var weights = [fields]int{inName: 30, inServer: 15, inText: 10, inParam: 5, inNotes: 3, inAbout: 10, inEnum: 6}

// The constants of BM25; k1 is in tenths of a word, like the weights.
const (
	bm25K1 = 12.0
	bm25B  = .75
)

// maxCandidates is how many tools are looked at closer.
const maxCandidates = 100

// maxNotes is how often a word counts in the descriptions of parameters: a
// tool with many parameters is not about what all of them mention.
const maxNotes = 4

// weigh is the weighted frequency of a word in a tool.
func weigh(n counts) int {
	sum := 0
	for f := range fields {
		times := n.in(f)
		if f == inNotes {
			times = min(times, maxNotes)
		}
		sum += weights[f] * times
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
	servers  map[string]string // configured name of a server by its plain names
	common   vector            // the direction that all tools share
	postings *postings         // nil: nothing is indexed
}

// setLengths computes what BM25 needs of each tool's length.
func (r *ranker) setLengths(average float64) {
	average = max(average, 1)
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
	query = cutText(query, maxQueryBytes)
	if r.postings == nil || limit <= 0 {
		return nil, nil
	}
	q := r.parse(query)
	s := newScores(len(r.docs))
	defer s.free()
	for i := range q.groups {
		if err := r.score(s, &q.groups[i]); err != nil {
			return nil, err
		}
	}
	hits := r.refine(s, &q)
	if lists := r.namedIn(query); lists != nil {
		hits = r.putFirst(lists, hits, s)
		limit = max(limit, len(lists)) // who lists names gets them all
	} else if server := r.serverNamed(query); server != "" {
		if tools := r.toolsOf(server); len(tools) > 0 {
			hits = tools
		}
	}
	return hits[:min(limit, len(hits))], nil
}

// putFirst puts the tools that a query names before those it only describes:
// first the best for each name, then further ones of the same names.
func (r *ranker) putFirst(lists [][]named, hits []scored, s *scores) []scored {
	var first, more []scored
	taken := make(map[*upstreams.Tool]bool)
	for _, list := range lists {
		slices.SortFunc(list, func(a, b named) int {
			return cmp.Or(cmp.Compare(a.form, b.form), cmp.Compare(s.at[b.slot].total, s.at[a.slot].total),
				cmp.Compare(r.docs[a.slot].tool.ID, r.docs[b.slot].tool.ID))
		})
		for i, n := range list {
			t := r.docs[n.slot].tool
			switch {
			case taken[t]:
				continue
			case i == 0:
				first = append(first, scored{t, namedScore})
			default:
				more = append(more, scored{t, namedScore})
			}
			taken[t] = true
		}
	}
	first = append(first, more...)
	for _, h := range hits {
		if !taken[h.tool] {
			first = append(first, h)
		}
	}
	return first
}

// namedScore is the score of a tool that the query names: above all others.
const namedScore = 2

// toolsOf returns all tools of a server, by id.
func (r *ranker) toolsOf(server string) []scored {
	var hits []scored
	for _, d := range r.docs {
		if d != nil && d.tool.Server == server {
			hits = append(hits, scored{d.tool, 1})
		}
	}
	slices.SortFunc(hits, func(a, b scored) int { return cmp.Compare(a.tool.ID, b.tool.ID) })
	return hits
}

// score adds what the tools get for one word of a query.
func (r *ranker) score(s *scores, g *group) error {
	s.group++
	for _, a := range g.alts {
		worth := g.weight * a.share * a.idf
		told := g.weight * a.share * min(a.idf, g.idf)
		err := r.postings.each(a.term, func(slot uint32, n counts) {
			tf := float64(weigh(n))
			at := s.of(slot)
			at.raise(worth * tf / (tf + r.norms[slot]))
			if n.in(inName) > 0 {
				at.raiseNamed(a.share)
			}
			if n.in(inName)+n.in(inText)+n.in(inServer) > 0 {
				at.raiseTold(told)
			}
			if a.share >= saidShare {
				at.said |= 1 << (s.group - 1)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scores adds up what tools get for a query.
type scores struct {
	at      []score  // by slot
	touched []uint32 // slots with a score
	group   int32    // which word of the query is being scored
}

// score is what one tool has got.
type score struct {
	total float64
	named float64 // how many words of its name the query says
	told  float64 // how much of the query its name, description and server say
	said  uint64  // which words of the query it has, a bit each; one that stands for another counts from saidShare

	// of the group that is being scored
	group                     int32
	best, bestNamed, bestTold float64
}

var scorePool sync.Pool

func newScores(slots int) *scores {
	s, _ := scorePool.Get().(*scores)
	if s == nil {
		s = &scores{}
	}
	if len(s.at) < slots {
		s.at = make([]score, slots)
	}
	return s
}

func (s *scores) free() {
	for _, slot := range s.touched {
		s.at[slot] = score{}
	}
	s.touched, s.group = s.touched[:0], 0
	scorePool.Put(s)
}

// of returns what a tool has got, ready for the current group.
func (s *scores) of(slot uint32) *score {
	at := &s.at[slot]
	if at.group != s.group {
		if at.group == 0 {
			s.touched = append(s.touched, slot)
		}
		at.group, at.best, at.bestNamed, at.bestTold = s.group, 0, 0, 0
	}
	return at
}

// raise, raiseNamed and raiseTold give a tool the best of a group.

func (at *score) raise(x float64) {
	if x > at.best {
		at.total += x - at.best
		at.best = x
	}
}

func (at *score) raiseNamed(x float64) {
	if x > at.bestNamed {
		at.named += x - at.bestNamed
		at.bestNamed = x
	}
}

func (at *score) raiseTold(x float64) {
	if x > at.bestTold {
		at.told += x - at.bestTold
		at.bestTold = x
	}
}

// best returns the slots of the n best tools, best first.
func (s *scores) best(n int, docs []*doc) []uint32 {
	better := func(a, b uint32) int {
		if c := cmp.Compare(s.at[b].total, s.at[a].total); c != 0 {
			return c
		}
		return cmp.Compare(docs[a].tool.ID, docs[b].tool.ID)
	}
	kept := make([]uint32, 0, 4*n)
	floor := 0.0
	for _, slot := range s.touched {
		if s.at[slot].total < floor {
			continue
		}
		kept = append(kept, slot)
		if len(kept) == cap(kept) {
			slices.SortFunc(kept, better)
			kept = kept[:n]
			floor = s.at[kept[n-1]].total
		}
	}
	slices.SortFunc(kept, better)
	return kept[:min(n, len(kept))]
}

// idf tells how much a word says that df of the tools have.
func (r *ranker) idf(df int) float64 {
	return math.Log(1 + (float64(r.n-df)+0.5)/(float64(df)+0.5))
}

// nearServers names the servers whose words come nearest to a query that
// found nothing, at most 3, best first.
func (r *ranker) nearServers(text string) []string {
	if r.postings == nil {
		return nil
	}
	text = cutText(text, maxQueryBytes)
	q := r.parse(text)
	s := newScores(len(r.docs))
	defer s.free()
	for i := range q.groups {
		if r.score(s, &q.groups[i]) != nil {
			return nil
		}
	}
	found := r.serversLike(text)
	for _, slot := range s.best(maxCandidates, r.docs) {
		if name := r.docs[slot].tool.Server; !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found[:min(len(found), 3)]
}
