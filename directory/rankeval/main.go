// Command rankeval measures how well tool search finds the right tool. It
// indexes catalogs and asks labelled queries through the same path as the
// tool_search tool, and prints the usual figures of merit.
//
// It does not choose or change any weight of the ranking.
//
// Usage:
//
//	go run ./directory/rankeval -catalog FILE.jsonl -queries FILE.jsonl [-limit 10] [-json]
//
// A catalog has a line a tool: {id, server, name, description, inputSchema,
// serverDescription?}. Queries have a line each: {query, relevant: [ids],
// grades?: {id: grade}}. The flags may be given several times, in pairs.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(v string) error { *l = append(*l, v); return nil }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var (
		catalogs, queries list
		flags             = flag.NewFlagSet("rankeval", flag.ContinueOnError)
		limit             = flags.Int("limit", 10, "hits to ask for")
		asJSON            = flags.Bool("json", false, "print JSON, an object a set")
		union             = flags.Bool("union", false, "put all catalogs in one index")
		failures          = flags.Int("failures", 0, "list the `N` worst queries of each set, with what ranked above")
	)
	flags.SetOutput(stderr)
	flags.Var(&catalogs, "catalog", "`FILE` with a tool a line; may be repeated")
	flags.Var(&queries, "queries", "`FILE` with a query a line, for the catalog of the same place; may be repeated")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	switch {
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "rankeval: unknown argument %q; see rankeval -h\n", flags.Arg(0))
		return 2
	case len(catalogs) == 0 || len(catalogs) != len(queries):
		fmt.Fprintln(stderr, "rankeval: give as many -catalog as -queries, at least one of each")
		return 2
	case *limit < 1:
		fmt.Fprintln(stderr, "rankeval: -limit must be at least 1")
		return 2
	}

	sets := make([]*set, len(catalogs))
	for i := range catalogs {
		s, err := readSet(catalogs[i], queries[i])
		if err != nil {
			fmt.Fprintf(stderr, "rankeval: %v\n", err)
			return 1
		}
		sets[i] = s
	}
	results, err := measure(ctx, sets, *limit, *union)
	if err != nil {
		fmt.Fprintf(stderr, "rankeval: %v\n", err)
		return 1
	}
	if *asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(withMean(results)); err != nil {
			fmt.Fprintf(stderr, "rankeval: %v\n", err)
			return 1
		}
		return 0
	}
	printTable(stdout, withMean(results))
	for i, r := range results {
		if *failures > 0 {
			printFailures(stdout, sets[i].name, r.worst(*failures))
		}
	}
	return 0
}

// setName names a set after its folder, or its file where that says more.
func setName(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if base != "catalog" {
		return base
	}
	return cmp.Or(strings.Trim(filepath.Base(filepath.Dir(path)), "."), base)
}

func printTable(w io.Writer, results []*result) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "set\tn\thit@1\thit@5\trecall@1\trecall@3\trecall@5\trecall@8\tmrr\tndcg@10\tp50 µs\tp99 µs\t")
	for _, r := range results {
		fmt.Fprintf(tw, "%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%d\t%d\t\n", r.Set, r.N,
			r.Hit1, r.Hit5, r.Recall1, r.Recall3, r.Recall5, r.Recall8, r.MRR, r.NDCG10, r.P50, r.P99)
	}
	tw.Flush()
}

func printFailures(w io.Writer, name string, failures []answer) {
	fmt.Fprintf(w, "\n%s: the worst queries\n", name)
	for _, a := range failures {
		fmt.Fprintf(w, "%q\n  wanted %s, found at %s\n", a.query, strings.Join(a.relevant, ", "), place(a.first))
		for i, id := range a.ids[:min(5, len(a.ids))] {
			fmt.Fprintf(w, "  %2d %s\n", i+1, id)
		}
	}
}

func place(first int) string {
	if first == 0 {
		return "no place"
	}
	return fmt.Sprint(first)
}
