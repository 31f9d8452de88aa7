package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite rank_stats.txt")

const catalog = `{"id":"a:create_invoice","server":"a","name":"create_invoice","description":"Bill a customer."}
{"id":"a:delete_file","server":"a","name":"delete_file","description":"Remove a file."}

{"id":"b:weather","server":"b","name":"weather","description":"How the sky is.","inputSchema":{"properties":{"city":{"type":"string"}}},"serverDescription":"Meteorology"}
`

const queries = `{"query":"bill a customer","relevant":["a:create_invoice"]}
{"query":"meteorology","relevant":["b:weather"],"grades":{"b:weather":2}}
{"query":"qqqq","relevant":["a:delete_file"]}
`

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func rankeval(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestRun_JSON(t *testing.T) {
	c, q := write(t, "shelf", "catalog.jsonl", catalog), write(t, "shelf", "queries.jsonl", queries)
	code, out, errs := rankeval(t, "-catalog", c, "-queries", q, "-json")
	if code != 0 {
		t.Fatalf("run = %d, %s", code, errs)
	}
	var got []map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 {
		t.Fatalf("output is not an array of one set: %v\n%s", err, out)
	}
	for _, key := range []string{"p50_us", "p99_us"} {
		if v, ok := got[0][key].(float64); !ok || v != math.Trunc(v) {
			t.Errorf("%s = %v, want a whole number", key, got[0][key])
		}
		delete(got[0], key)
	}
	third := 2.0 / 3
	want := map[string]any{"set": "shelf", "n": 3.0, "hit@1": third, "hit@5": third, "recall@1": third, "recall@3": third,
		"recall@5": third, "recall@8": third, "mrr": third, "ndcg@10": third}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

func TestRun_SeveralSetsAndUnion(t *testing.T) {
	c1, q1 := write(t, "one", "catalog.jsonl", catalog), write(t, "one", "queries.jsonl", queries)
	c2, q2 := write(t, "two", "catalog.jsonl", catalog), write(t, "two", "queries.jsonl", queries)
	for _, more := range [][]string{{"-json"}, {"-json", "-union"}} {
		args := append([]string{"-catalog", c1, "-queries", q1, "-catalog", c2, "-queries", q2, "-limit", "5"}, more...)
		code, out, errs := rankeval(t, args...)
		var got []struct {
			Set string
			N   int
			MRR float64
		}
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || len(got) != 3 {
			t.Fatalf("run(%q) = %d %s, %v\n%s", args, code, errs, err, out)
		}
		if got[2].Set != "mean" || got[2].N != 6 || math.Abs(got[2].MRR-(got[0].MRR+got[1].MRR)/2) > 1e-12 {
			t.Errorf("run(%q): mean is %+v of %+v", args, got[2], got[:2])
		}
	}
	code, out, _ := rankeval(t, "-catalog", c1, "-queries", q1, "-failures", "1")
	if code != 0 || !strings.Contains(out, `"qqqq"`) || !strings.Contains(out, "wanted a:delete_file, found at no place") || strings.Contains(out, `"meteorology"`) {
		t.Errorf("-failures 1 = %d\n%s", code, out)
	}
}

func TestRun_Mistakes(t *testing.T) {
	c, q := write(t, "", "catalog.jsonl", catalog), write(t, "", "queries.jsonl", queries)
	for _, m := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "at least one of each"},
		{[]string{"-catalog", c}, 2, "as many -catalog as -queries"},
		{[]string{"-catalog", c, "-queries", q, "more"}, 2, `unknown argument "more"`},
		{[]string{"-catalog", c, "-queries", q, "-limit", "0"}, 2, "-limit must be at least 1"},
		{[]string{"-catalog", c, "-queries", q, "-bogus"}, 2, "bogus"},
		{[]string{"-catalog", c + ".gone", "-queries", q}, 1, "catalog.jsonl.gone"},
		{[]string{"-catalog", write(t, "", "broken.jsonl", catalog+"{"), "-queries", q}, 1, "broken.jsonl:5:"},
		{[]string{"-catalog", write(t, "", "empty.jsonl", ""), "-queries", q}, 1, "holds no tools"},
		{[]string{"-catalog", c, "-queries", write(t, "", "q.jsonl", `{"query":"x"}`)}, 1, "q.jsonl:1: a query needs relevant tools"},
		{[]string{"-catalog", c, "-queries", write(t, "", "q.jsonl", "\n")}, 1, "holds no queries"},
		{[]string{"-catalog", c, "-queries", write(t, "", "long.jsonl", queries+strings.Repeat(" ", maxLine+1))}, 1, "long.jsonl:4: the line is longer than 16 MiB"},
		{[]string{"-catalog", c, "-queries", write(t, "", "q.jsonl", `{"query":"x","relevant":["y"],"grades":{"y":2000}}`)}, 1, `q.jsonl:1: the grade of "y" is 2000, not from 0 to 100`},
	} {
		code, _, errs := rankeval(t, m.args...)
		if code != m.code || !strings.Contains(errs, m.says) {
			t.Errorf("run(%q) = %d, %q; want %d and %q", m.args, code, errs, m.code, m.says)
		}
	}
}

func TestRun_WindowsFiles(t *testing.T) {
	windows := func(text string) string { return "\uFEFF" + strings.ReplaceAll(text, "\n", "\r\n") }
	c, q := write(t, "", "catalog.jsonl", windows(catalog)), write(t, "", "queries.jsonl", windows(queries))
	if code, _, errs := rankeval(t, "-catalog", c, "-queries", q); code != 0 {
		t.Errorf("run = %d, %s", code, errs)
	}
}

func TestResult_Add(t *testing.T) {
	var r result
	// Two of three right tools, at places 2 and 4; the graded one counts more.
	r.add(answer{relevant: []string{"x", "y", "z"}, ids: []string{"a", "x", "b", "y"}}, map[string]float64{"x": 2})
	ideal := 3 + 1/math.Log2(3) + 1/math.Log2(4)
	want := figures{Hit5: 1, Recall3: 1.0 / 3, Recall5: 2.0 / 3, Recall8: 2.0 / 3, MRR: .5, NDCG10: (3/math.Log2(3) + 1/math.Log2(5)) / ideal}
	if diff := cmp.Diff(want, r.figures); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	// What is beyond the tenth place does not count.
	far := make([]string, 10)
	r = result{}
	r.add(answer{relevant: []string{"x"}, ids: append(far, "x")}, nil)
	if diff := cmp.Diff(figures{}, r.figures); diff != "" {
		t.Errorf("figures of a right tool at place 11 (-want +got):\n%s", diff)
	}
}

const stats = "../testdata/rank/rank_stats.txt"

// TestStats holds the figures of every shared set against rank_stats.txt: one
// that falls by more than 0.01 needs a line in CHANGELOG.md that says so.
func TestStats(t *testing.T) {
	data := os.Getenv("TOOLSEARCH_DATA")
	if data == "" {
		t.Skip("set TOOLSEARCH_DATA to a folder with eval/SET/catalog.jsonl and queries.jsonl to check the ranking's figures")
	}
	var sets []*set
	for _, name := range []string{"mcpzero", "livemcp", "mcpproxy", "toollinkos", "bfcl", "sealtools", "metatool"} {
		sets = append(sets, sharedSet(t, data, name, name))
	}
	results, err := measure(t.Context(), sets, 10, false)
	if err != nil {
		t.Fatal(err)
	}
	results = withMean(results)
	if *update {
		writeStats(t, results)
	}
	changelog, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	want := readStats(t)
	for _, r := range results {
		for name, got := range r.byName() {
			key := r.Set + " " + name
			old, ok := want[key]
			if !ok {
				t.Errorf("rank_stats.txt has no %s; run go test ./directory/rankeval -update", key)
			} else if got < old-.01 && !strings.Contains(string(changelog), fmt.Sprintf("%s falls to %.3f", key, got)) {
				t.Errorf("%s falls from %.3f to %.3f; if that is meant, say in CHANGELOG.md: \"%s falls to %.3f\" and why", key, old, got, key, got)
			}
		}
	}
}

func sharedSet(t *testing.T, data, catalog, queries string) *set {
	t.Helper()
	s, err := readSet(filepath.Join(data, "eval", catalog, "catalog.jsonl"), filepath.Join(data, "eval", queries, "queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNothingHere: queries of one set asked of another's catalog, where hardly
// any has a right tool, fill at most half of the lists.
func TestNothingHere(t *testing.T) {
	data := os.Getenv("TOOLSEARCH_DATA")
	if data == "" {
		t.Skip("set TOOLSEARCH_DATA to a folder with eval/SET/catalog.jsonl and queries.jsonl to count what junk finds")
	}
	for _, pair := range [][2]string{{"livemcp", "bfcl"}, {"toollinkos", "metatool"}} {
		results, err := measure(t.Context(), []*set{sharedSet(t, data, pair[0], pair[1])}, 8, false)
		if err != nil {
			t.Fatal(err)
		}
		filled := 0
		for _, a := range results[0].answers {
			if len(a.ids) >= 5 {
				filled++
			}
		}
		share := float64(filled) / float64(len(results[0].answers))
		t.Logf("%s queries in the %s catalog: %.3f have 5 or more hits", pair[1], pair[0], share)
		if share > .5 {
			t.Errorf("%.3f of the %s queries have 5 or more hits in the %s catalog, want at most .5", share, pair[1], pair[0])
		}
	}
}

// statNames is the order of the figures in rank_stats.txt.
var statNames = []string{"hit@1", "hit@5", "recall@1", "recall@3", "recall@5", "recall@8", "mrr", "ndcg@10"}

func (r *result) byName() map[string]float64 {
	named := make(map[string]float64)
	i := 0
	r.each(func(x *float64) { named[statNames[i]] = *x; i++ })
	return named
}

func writeStats(t *testing.T, results []*result) {
	var out strings.Builder
	out.WriteString("# How well search finds the right tool, by set of labelled queries: written by\n# go test ./directory/rankeval -update, with TOOLSEARCH_DATA.\n")
	fmt.Fprintf(&out, "%-12s %5s", "set", "n")
	for _, name := range statNames {
		fmt.Fprintf(&out, " %9s", name)
	}
	out.WriteByte('\n')
	for _, r := range results {
		fmt.Fprintf(&out, "%-12s %5d", r.Set, r.N)
		for _, name := range statNames {
			fmt.Fprintf(&out, " %9.3f", r.byName()[name])
		}
		out.WriteByte('\n')
	}
	if err := os.WriteFile(stats, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readStats(t *testing.T) map[string]float64 {
	file, err := os.Open(stats)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want := make(map[string]float64)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2+len(statNames) || fields[0] == "#" || fields[0] == "set" {
			continue
		}
		for i, name := range statNames {
			v, err := strconv.ParseFloat(fields[2+i], 64)
			if err != nil {
				t.Fatalf("rank_stats.txt: %v", err)
			}
			want[fields[0]+" "+name] = v
		}
	}
	return want
}
