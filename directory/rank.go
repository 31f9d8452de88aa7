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
var weights = [fields]int{inName: 30, inServer: 15, inText: 10, inParam: 5, inNotes: 3, inAbout: 6, inEnum: 6}

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
	common   vector    // the direction that all tools share
	postings *postings // nil: nothing is indexed
}

// setLengths computes what BM25 needs of each tool's length.
func (r *ranker) setLengths(average float64) {
	r.norms = make([]float64, len(r.docs))
	for i, d := range r.docs {
		if d != nil {
			r.norms[i] = tuning.k1 * (1 - tuning.b + tuning.b*float64(d.length)/average)
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
	sortHits(hits)
	return hits
}

// score adds what the tools get for one word of a query.
func (r *ranker) score(s *scores, g *group) error {
	s.group++
	for _, a := range g.alts {
		worth := g.weight * a.share * a.idf
		err := r.postings.each(a.term, func(slot uint32, n counts) {
			tf := float64(weigh(n))
			named := 0.0
			if n.in(inName) > 0 {
				named = a.share
			}
			s.raise(slot, worth*tf/(tf+r.norms[slot]), named)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// refine looks closer at the best tools: how much of a tool's name the query
// says, how well the other tools of its server fit, and how near the meaning
// of all its words is.
func (r *ranker) refine(s *scores, q *query) []scored {
	slots := s.best(tuning.candidates, r.docs)
	if len(slots) == 0 {
		return nil
	}
	hits := make([]scored, len(slots))
	for i, slot := range slots {
		d := r.docs[slot]
		score := s.at[slot].total * (1 + tuning.name*s.at[slot].named/float64(max(1, d.names)))
		hits[i] = scored{d.tool, score}
	}
	r.addServers(hits, slots)
	r.addMeaning(hits, slots, &q.mean)
	sortHits(hits)
	return hits
}

// addServers favours the tools of servers with several tools that fit.
func (r *ranker) addServers(hits []scored, slots []uint32) {
	// Hits are best first but for the names' share; near enough to count.
	sums := make(map[string]float64)
	seen := make(map[string]int)
	best, top := 0.0, 0.0
	for _, h := range hits {
		top = max(top, h.score)
		if seen[h.tool.Server]++; seen[h.tool.Server] <= tuning.serverTools {
			sums[h.tool.Server] += h.score
			best = max(best, sums[h.tool.Server])
		}
	}
	for i := range hits {
		hits[i].score /= top
		if len(sums) >= 3 {
			hits[i].score += tuning.server * sums[hits[i].tool.Server] / best
		}
	}
}

// addMeaning favours tools whose words as a whole mean what the query means.
func (r *ranker) addMeaning(hits []scored, slots []uint32, mean *vector) {
	q := *mean
	q.add(&r.common, -q.dot(&r.common))
	q.normalize()
	cos := make([]float64, len(hits))
	best, sum := 0.0, 0.0
	for i, slot := range slots {
		m := &r.docs[slot].mean
		along := float64(r.common.dotSmall(m))
		if rest := 1 - along*along; rest > 1e-6 {
			cos[i] = max(0, float64(q.dotSmall(m))/math.Sqrt(rest))
		}
		best = max(best, cos[i])
		sum += cos[i]
	}
	average := sum / float64(len(hits))
	if best-average < 1e-6 {
		return
	}
	for i := range hits {
		hits[i].score += tuning.mean * max(0, cos[i]-average) / (best - average)
	}
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
	// of the current group
	best, bestNamed float64
	group           int32
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

// raise gives a tool the score for a word of the current group, if that is
// better than what it has of this group.
func (s *scores) raise(slot uint32, score, named float64) {
	at := &s.at[slot]
	if at.group != s.group {
		if at.group == 0 {
			s.touched = append(s.touched, slot)
		}
		at.group, at.best, at.bestNamed = s.group, 0, 0
	}
	if score > at.best {
		at.total += score - at.best
		at.best = score
	}
	if named > at.bestNamed {
		at.named += named - at.bestNamed
		at.bestNamed = named
	}
}

// best returns the slots of the n best tools, best first.
func (s *scores) best(n int, docs []*doc) []uint32 {
	slots := slices.Clone(s.touched)
	slices.SortFunc(slots, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(s.at[b].total, s.at[a].total), cmp.Compare(docs[a].tool.ID, docs[b].tool.ID))
	})
	return slots[:min(n, len(slots))]
}

// idf tells how much a word says that df of the tools have.
func (r *ranker) idf(df int) float64 {
	return math.Log(1 + (float64(r.n-df)+0.5)/(float64(df)+0.5))
}

// nearServers names servers whose own words match the query, at most 3.
func (r *ranker) nearServers(query string) []string { return nil }
