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
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// candidate is a tool that is looked at closer.
type candidate struct {
	doc   *doc
	got   *score
	score float64
}

// refine looks closer at the best tools: how much of a tool's name the query
// says, how well the other tools of its server fit, and how near the meaning
// of all its words is. It returns them best first, the best about 1, without
// those that are not worth showing.
func (r *ranker) refine(s *scores, q *query) []scored {
	slots := s.best(tuning.candidates, r.docs)
	if len(slots) == 0 {
		return nil
	}
	list := make([]candidate, len(slots))
	top := 0.0
	for i, slot := range slots {
		c := candidate{doc: r.docs[slot], got: &s.at[slot]}
		c.score = c.got.total * (1 + tuning.name*c.got.named/float64(max(1, c.doc.names)))
		list[i] = c
		top = max(top, c.score)
	}
	for i := range list {
		list[i].score /= top
	}
	addServers(list)
	r.addMeaning(list, &q.mean)
	if !q.destroys {
		holdBack(list)
	}
	sortCandidates(list)
	list = q.worthShowing(spread(list))
	hits := make([]scored, len(list))
	for i, c := range list {
		hits[i] = scored{c.doc.tool, c.score}
	}
	return hits
}

// addServers favours the tools of servers of which several tools fit.
func addServers(list []candidate) {
	sums := make(map[string]float64)
	seen := make(map[string]int)
	best := 0.0
	for _, c := range list {
		if server := c.doc.tool.Server; seen[server] < tuning.serverTools {
			seen[server]++
			sums[server] += c.score
			best = max(best, sums[server])
		}
	}
	if len(sums) < 3 {
		return // too few to tell servers apart
	}
	for i := range list {
		list[i].score += tuning.server * sums[list[i].doc.tool.Server] / best
	}
}

// addMeaning favours tools whose words as a whole mean what the query means.
// What all tools have in common tells nothing and is taken out first.
func (r *ranker) addMeaning(list []candidate, mean *vector) {
	q := *mean
	q.add(&r.common, -q.dot(&r.common))
	q.normalize()
	cos := make([]float64, len(list))
	best, sum := 0.0, 0.0
	for i, c := range list {
		along := float64(r.common.dotSmall(&c.doc.mean))
		if rest := 1 - along*along; rest > 1e-6 {
			cos[i] = max(0, float64(q.dotSmall(&c.doc.mean))/math.Sqrt(rest))
		}
		best = max(best, cos[i])
		sum += cos[i]
	}
	average := sum / float64(len(list))
	if best-average < 1e-6 {
		return
	}
	for i := range list {
		list[i].score += tuning.mean * max(0, cos[i]-average) / (best - average)
	}
}

// holdBack lets other tools go before destructive ones on a near tie.
func holdBack(list []candidate) {
	for i := range list {
		if list[i].doc.destroys {
			list[i].score -= tuning.destroys
		}
	}
}

// spread keeps the same tool of many servers from filling the list: two of
// them stay where they are, the others go to the end.
func spread(list []candidate) []candidate {
	type tool struct{ name, description string }
	seen := make(map[tool]int, len(list))
	kept := make([]candidate, 0, len(list))
	var more []candidate
	for _, c := range list {
		t := tool{c.doc.plain, c.doc.tool.Description}
		if seen[t]++; seen[t] <= 2 {
			kept = append(kept, c)
		} else {
			more = append(more, c)
		}
	}
	return append(kept, more...)
}

// worthShowing drops what a query that fits nothing finds by chance: all, if
// not even the best tools have anything of it, else all but the first few.
// How many of the query's words a tool's own words say is the measure; a list
// that is nearly as good at its end as at its beginning needs more of it.
func (q *query) worthShowing(list []candidate) []candidate {
	if len(q.groups) == 0 {
		return list
	}
	worth := 0.0
	for _, g := range q.groups {
		worth += g.weight * g.idf / float64(len(q.groups))
	}
	says := func(i int) float64 {
		if i >= len(list) {
			return 0
		}
		return list[i].got.told / worth
	}
	if len(q.groups) >= 3 && max(says(0), says(1), says(2)) < tuning.leastTold &&
		list[0].got.total < tuning.leastScore*worth*float64(len(q.groups)) {
		return nil
	}
	if len(list) <= surelyShown || len(q.groups) < tuning.evidenceWords {
		return list
	}
	top := 0.0
	for _, c := range list {
		top = max(top, c.got.total)
	}
	evidence := says(3) + says(4) + .45*says(5) + .2*says(7) - .2*says(0) - .15*says(1) -
		1.5*list[surelyShown].got.total/top - .1*math.Log(float64(len(q.groups)+1))
	// Among more tools more fit by chance.
	if evidence >= tuning.evidence+tuning.evidenceGrows*math.Log(float64(min(q.tools, 1000))) {
		return list
	}
	// Tools that are called like one of the first are as right as that one.
	kept := list[:surelyShown:surelyShown]
	for _, c := range list[surelyShown:] {
		if slices.ContainsFunc(list[:surelyShown], func(first candidate) bool { return first.doc.plain == c.doc.plain }) {
			kept = append(kept, c)
		}
	}
	return kept
}

// surelyShown is how many hits are shown even if little speaks for them.
const surelyShown = 4

// sortCandidates sorts best first; what ranks alike is sorted by id, so that
// the same query has the same answer on every run.
func sortCandidates(list []candidate) {
	for i := range list {
		list[i].score = math.Round(list[i].score*1e9) / 1e9
	}
	slices.SortFunc(list, func(a, b candidate) int {
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return cmp.Compare(a.doc.tool.ID, b.doc.tool.ID)
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
	told  float64 // how much of the query its name, description and server say

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
	for _, slot := range s.best(tuning.candidates, r.docs) {
		if name := r.docs[slot].tool.Server; !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found[:min(len(found), 3)]
}
