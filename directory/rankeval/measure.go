package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// set is a catalog and the queries on it.
type set struct {
	name    string
	tools   []*upstreams.Tool
	servers []upstreams.ServerInfo
	queries []labelled
}

// labelled is a query with the tools that are right for it.
type labelled struct {
	Query    string             `json:"query"`
	Relevant []string           `json:"relevant"`
	Grades   map[string]float64 `json:"grades"`
}

type catalogLine struct {
	ID                string          `json:"id"`
	Server            string          `json:"server"`
	Name              string          `json:"name"`
	Description       string          `json:"description"`
	InputSchema       json.RawMessage `json:"inputSchema"`
	ServerDescription string          `json:"serverDescription"`
}

func readSet(catalog, queries string) (*set, error) {
	s := &set{name: setName(catalog)}
	seen := make(map[string]bool)
	err := readLines(catalog, func(line []byte) error {
		var l catalogLine
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if l.ID == "" || l.Name == "" {
			return fmt.Errorf("a tool needs id and name")
		}
		s.tools = append(s.tools, &upstreams.Tool{
			Server: l.Server, Safe: l.Server, Name: l.Name, ID: l.ID, FullName: strings.TrimPrefix(l.Server+"__"+l.Name, "__"),
			Description: l.Description, InputSchema: l.InputSchema, Trust: upstreams.TrustSchema,
		})
		if !seen[l.Server] {
			seen[l.Server] = true
			s.servers = append(s.servers, upstreams.ServerInfo{
				Name: l.Server, Safe: l.Server, Instructions: l.ServerDescription, Live: true, Known: true})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(s.tools) == 0 {
		return nil, fmt.Errorf("%s holds no tools", catalog)
	}
	err = readLines(queries, func(line []byte) error {
		var q labelled
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if len(q.Relevant) == 0 {
			return fmt.Errorf("a query needs relevant tools")
		}
		for id, grade := range q.Grades {
			if grade < 0 || grade > maxGrade {
				return fmt.Errorf("the grade of %q is %v, not from 0 to %d", id, grade, maxGrade)
			}
		}
		s.queries = append(s.queries, q)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(s.queries) == 0 {
		return nil, fmt.Errorf("%s holds no queries", queries)
	}
	return s, nil
}

const maxGrade = 100 // 2 to its power is a gain

const maxLine = 16 << 20 // bytes

// readLines calls f with each line of a file that is not blank.
func readLines(path string, f func([]byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF")) // as some editors on Windows begin a file
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: the line is longer than %d MiB", path, n, maxLine>>20)
	}
	return lines.Err()
}

// everything lets every caller see every tool.
type everything struct{}

func (everything) Filter(_ string, tools []*upstreams.Tool) []*upstreams.Tool { return tools }
func (everything) SeesServer(_, _ string) bool                                { return true }

// measure asks the queries of each set in the index of its own catalog, or
// with union in one index of all catalogs.
func measure(ctx context.Context, sets []*set, limit int, union bool) ([]*result, error) {
	var results []*result
	if union {
		all := joined(sets)
		d := open(all)
		defer d.Close()
		for _, s := range sets {
			r, err := ask(ctx, d, s, s.name+"/", limit)
			if err != nil {
				return nil, err
			}
			results = append(results, r)
		}
		return results, nil
	}
	for _, s := range sets {
		d := open(s)
		r, err := ask(ctx, d, s, "", limit)
		d.Close()
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

func open(s *set) *directory.Directory {
	tools := slices.Clone(s.tools)
	slices.SortFunc(tools, func(a, b *upstreams.Tool) int { return cmp.Compare(a.ID, b.ID) })
	tools = slices.CompactFunc(tools, func(a, b *upstreams.Tool) bool { return a.ID == b.ID })
	servers := slices.Clone(s.servers)
	slices.SortFunc(servers, func(a, b upstreams.ServerInfo) int { return cmp.Compare(a.Name, b.Name) })
	snapshot := &upstreams.Snapshot{Tools: tools, Servers: servers}
	return directory.New(directory.Options{
		Source: func() *upstreams.Snapshot { return snapshot },
		Rules:  everything{},
	})
}

// joined puts the tools of all sets together, their ids behind the set's name.
func joined(sets []*set) *set {
	all := &set{name: "union"}
	seen := make(map[string]bool)
	for _, s := range sets {
		for _, t := range s.tools {
			c := *t
			c.ID = s.name + "/" + t.ID
			all.tools = append(all.tools, &c)
		}
		for _, info := range s.servers {
			if !seen[info.Name] {
				seen[info.Name] = true
				all.servers = append(all.servers, info)
			}
		}
	}
	return all
}

func ask(ctx context.Context, d *directory.Directory, s *set, prefix string, limit int) (*result, error) {
	view := d.View("")
	if _, err := view.Search(ctx, "the first search waits for the index", 1); err != nil {
		return nil, err
	}
	r := &result{Set: s.name}
	var times []time.Duration
	for _, q := range s.queries {
		start := time.Now()
		hits, err := view.Search(ctx, q.Query, limit)
		times = append(times, time.Since(start))
		if err != nil {
			return nil, fmt.Errorf("%s: query %q: %w", s.name, q.Query, err)
		}
		a := answer{query: q.Query, relevant: q.Relevant}
		for _, h := range hits {
			// Other sets' tools are wrong answers, whatever their ids.
			id, _ := strings.CutPrefix(h.ID, prefix)
			a.ids = append(a.ids, id)
		}
		r.add(a, q.Grades)
	}
	slices.Sort(times)
	r.P50, r.P99 = times[len(times)/2].Microseconds(), times[(len(times)*99)/100].Microseconds()
	r.divide(float64(r.N))
	return r, nil
}

// result is the figures of one set; the times are for the whole search, wall
// clock.
type result struct {
	Set string `json:"set"`
	N   int    `json:"n"`
	figures
	P50 int64 `json:"p50_us"`
	P99 int64 `json:"p99_us"`

	answers []answer
}

// figures are sums over the queries, then means.
type figures struct {
	Hit1    float64 `json:"hit@1"` // a right tool is first
	Hit5    float64 `json:"hit@5"`
	Recall1 float64 `json:"recall@1"` // share of the right tools that were found
	Recall3 float64 `json:"recall@3"`
	Recall5 float64 `json:"recall@5"`
	Recall8 float64 `json:"recall@8"`
	MRR     float64 `json:"mrr"`     // of the first right tool, within 10
	NDCG10  float64 `json:"ndcg@10"` // gain 2^grade - 1, grade 1 where none is given
}

// answer is what search said to one query.
type answer struct {
	query    string
	relevant []string
	ids      []string
	first    int // place of the first right tool, from 1; 0 for none
	ndcg     float64
}

func (f *figures) each(do func(*float64)) {
	for _, x := range []*float64{&f.Hit1, &f.Hit5, &f.Recall1, &f.Recall3, &f.Recall5, &f.Recall8, &f.MRR, &f.NDCG10} {
		do(x)
	}
}

func (f *figures) divide(n float64) { f.each(func(x *float64) { *x /= n }) }

// add counts one answer.
func (r *result) add(a answer, grades map[string]float64) {
	gain := make(map[string]float64)
	for _, id := range a.relevant {
		grade, ok := grades[id]
		if !ok {
			grade = 1
		}
		gain[id] = math.Exp2(grade) - 1
	}
	var found, dcg float64
	var recall [11]float64 // by place, from 1
	for i := range 10 {
		if i < len(a.ids) {
			if g, ok := gain[a.ids[i]]; ok {
				found++
				dcg += g / math.Log2(float64(i+2))
				if a.first == 0 {
					a.first = i + 1
				}
			}
		}
		recall[i+1] = found / float64(len(gain))
	}
	ideal := 0.0
	gains := make([]float64, 0, len(gain))
	for _, g := range gain {
		gains = append(gains, g)
	}
	slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
	for i, g := range gains[:min(10, len(gains))] {
		ideal += g / math.Log2(float64(i+2))
	}
	if ideal > 0 {
		a.ndcg = dcg / ideal
	}

	r.N++
	r.NDCG10 += a.ndcg
	if a.first > 0 {
		r.MRR += 1 / float64(a.first)
	}
	if a.first == 1 {
		r.Hit1++
	}
	if 1 <= a.first && a.first <= 5 {
		r.Hit5++
	}
	r.Recall1 += recall[1]
	r.Recall3 += recall[3]
	r.Recall5 += recall[5]
	r.Recall8 += recall[8]
	r.answers = append(r.answers, a)
}

// worst returns the n answers that were most wrong.
func (r *result) worst(n int) []answer {
	sorted := slices.Clone(r.answers)
	slices.SortStableFunc(sorted, func(a, b answer) int { return cmp.Compare(a.ndcg, b.ndcg) })
	return sorted[:min(n, len(sorted))]
}

// withMean adds the plain mean over several sets.
func withMean(results []*result) []*result {
	if len(results) < 2 {
		return results
	}
	mean := &result{Set: "mean"}
	for _, r := range results {
		mean.N += r.N
		mean.P50 += r.P50 / int64(len(results))
		mean.P99 += r.P99 / int64(len(results))
		parts := r.figures
		parts.divide(float64(len(results)))
		mean.plus(parts)
	}
	return append(slices.Clone(results), mean)
}

func (f *figures) plus(g figures) {
	var values []float64
	g.each(func(x *float64) { values = append(values, *x) })
	i := 0
	f.each(func(x *float64) { *x += values[i]; i++ })
}
