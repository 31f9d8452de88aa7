package directory

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// What is added to a tool, the best of all by its words having about 1.
const (
	nameBonus    = .15 // times the share of its name that the query says
	serverBonus  = .1  // times how well its server's tools fit, the best server's being 1
	serverTools  = 3   // of a server that count
	meaningBonus = .05 // times the meaning, the nearest tool's being 1
	destroysNear = .03 // taken from tools that destroy things
	destroysFar  = .1  // the same, if the query wants something else done
)

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
	slots := s.best(maxCandidates, r.docs)
	if len(slots) == 0 {
		return nil
	}
	list := make([]candidate, len(slots))
	top := 0.0
	for i, slot := range slots {
		c := candidate{doc: r.docs[slot], got: &s.at[slot]}
		c.score = c.got.total * (1 + nameBonus*c.got.named/float64(max(1, c.doc.names)))
		list[i] = c
		top = max(top, c.score)
	}
	for i := range list {
		list[i].score /= top
	}
	addServers(list)
	r.addMeaning(list, &q.mean)
	if !q.destroys {
		holdBack(list, q)
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
		if server := c.doc.tool.Server; seen[server] < serverTools {
			seen[server]++
			sums[server] += c.score
			best = max(best, sums[server])
		}
	}
	if len(sums) < 3 {
		return // too few to tell servers apart
	}
	for i := range list {
		list[i].score += serverBonus * sums[list[i].doc.tool.Server] / best
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
		list[i].score += meaningBonus * max(0, cos[i]-average) / (best - average)
	}
}

// holdBack lets other tools go before destructive ones: on a near tie, or
// farther where the query says that something else is to be done.
func holdBack(list []candidate, q *query) {
	by := destroysNear
	if q.acts {
		by = destroysFar
	}
	for i := range list {
		if list[i].doc.destroys {
			list[i].score -= by
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

// When a list is worth showing; measured on queries that have no right tool.
const (
	surelyShown   = 4  // hits that are shown even if little speaks for them
	usualHits     = 8  // hits that are looked at
	leastTold     = .3 // words that one of the best must say, if …
	leastScore    = .1 // … it has no more than this share of all it could have
	evidenceWords = 4  // queries with fewer words are keywords:
	shortEvidence = .5 // one of the best must say this share of them
	leastEvidence = -4.68
	evidenceTools = 1000 // more of them do not ask for more evidence
)

// worthShowing drops what a query that fits nothing finds by chance: all, if
// not even the best tools have anything of it, else all but the first few.
func (q *query) worthShowing(list []candidate) []candidate {
	if len(q.groups) == 0 || len(list) == 0 {
		return list
	}
	worth := 0.0 // of a word of the query
	for _, g := range q.groups {
		worth += g.weight * g.idf / float64(len(q.groups))
	}
	said := 0.0 // words that one of the best says
	for _, c := range list[:min(3, len(list))] {
		said = max(said, c.got.told/worth)
	}
	if len(q.groups) >= 3 && said < leastTold && list[0].got.total < leastScore*worth*float64(len(q.groups)) {
		return nil
	}
	if len(list) <= surelyShown {
		return list
	}
	if len(q.groups) < evidenceWords {
		if said < shortEvidence*float64(len(q.groups)) {
			return list[:surelyShown]
		}
		return list
	}
	shown := list[:min(usualHits, len(list))]
	if q.evidence(shown, worth) >= leastEvidence {
		return list
	}
	// Tools that are called like one of the first are as right as that one.
	kept := list[:surelyShown:surelyShown]
	for _, c := range shown[surelyShown:] {
		if slices.ContainsFunc(list[:surelyShown], func(first candidate) bool { return first.doc.plain == c.doc.plain }) {
			kept = append(kept, c)
		}
	}
	return kept
}

// evidence tells how much speaks for more hits than the first few: how many
// words of the query the further ones say in their own name, description or
// server, and whether all say the same words as the first. Long queries, many
// tools and a list that is nearly as good at its end as at its beginning need
// more of it: there more fits by chance.
func (q *query) evidence(list []candidate, worth float64) float64 {
	n, top, told, same := float64(len(list)), 0.0, 0.0, 0.0
	for i, c := range list {
		top = max(top, c.got.total)
		if i > 0 {
			same += float64(bits.OnesCount64(c.got.said&list[0].got.said)) / (n - 1)
		}
		if i >= surelyShown {
			told += c.got.told / worth / (n - surelyShown)
		}
	}
	return math.Log(.1+told) + .54*same - .86*list[len(list)-1].got.total/top -
		.55*math.Log(float64(len(q.groups)+1)) - .53*math.Log(float64(min(q.tools, evidenceTools)))
}

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
