package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readLog returns the records of a file, in order, without their times.
func readLog(t *testing.T, path string) []map[string]any {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var records []map[string]any
	for line := range strings.Lines(string(b)) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		stamp, _ := r["time"].(string)
		if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil {
			t.Errorf("time of %q: %v", line, err)
		}
		delete(r, "time")
		records = append(records, r)
	}
	return records
}

func TestLog_WritesEachKind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	l, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := Origin{Session: "s1", Client: "cursor", Profile: "reviewer"}
	l.Session(o, Session{Mode: "code", CatalogSize: 3, Sources: map[string]int{"mcp": 3}, ToolsListed: 1, ToolsListBytes: 900, InstructionsBytes: 80, DirectBytes: 5000})
	l.Search(Origin{Session: "s1"}, Search{QueryLength: 11, Hits: 2, MS: 1, Bytes: 300})
	l.Describe(o, Describe{ID: "mcp:a:b", MS: 1, Bytes: 200})
	l.Code(o, Code{MS: 20, ErrorKind: "timeout", Calls: 2, Bytes: 100})
	l.Call(o, Call{ID: "mcp:a:b", Source: "mcp", SourceName: "a", Status: "failed", MS: 7, ArgumentBytes: 10, ResultBytes: 20, Via: "code", Parent: "c1"})
	l.Block(o, Block{ID: "mcp:a:<x>", Layer: "policy", Reason: "deny mcp:a:*"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	who := func(r map[string]any) map[string]any {
		r["session"], r["client"], r["profile"] = "s1", "cursor", "reviewer"
		return r
	}
	want := []map[string]any{
		who(map[string]any{"kind": "session", "mode": "code", "catalogSize": 3.0, "sources": map[string]any{"mcp": 3.0}, "toolsListed": 1.0, "toolsListBytes": 900.0, "instructionsBytes": 80.0, "directBytes": 5000.0}),
		{"session": "s1", "kind": "search", "queryLength": 11.0, "hits": 2.0, "ms": 1.0, "bytes": 300.0},
		who(map[string]any{"kind": "describe", "id": "mcp:a:b", "ms": 1.0, "bytes": 200.0}),
		who(map[string]any{"kind": "code", "ms": 20.0, "errorKind": "timeout", "calls": 2.0, "bytes": 100.0}),
		who(map[string]any{"kind": "call", "id": "mcp:a:b", "source": "mcp", "sourceName": "a", "status": "failed", "ms": 7.0, "argumentBytes": 10.0, "resultBytes": 20.0, "via": "code", "parent": "c1"}),
		who(map[string]any{"kind": "block", "id": "mcp:a:<x>", "layer": "policy", "reason": "deny mcp:a:*"}),
	}
	if diff := cmp.Diff(want, readLog(t, path)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// The records can hold what a field can hold: a number, or one of these texts
// that the program itself made.
func TestRecords_CannotHoldWhatCallersSay(t *testing.T) {
	texts := []string{"mode", "sources", "id", "errorKind", "source", "sourceName", "status", "via", "parent", "layer", "reason"}
	for _, record := range []any{Session{}, Search{}, Describe{}, Code{}, Call{}, Block{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(record)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch f.Type.Kind() {
			case reflect.Int, reflect.Int64:
			default:
				if !slices.Contains(texts, name) {
					t.Errorf("%T.%s is a %v named %q, want a number or one of %q", record, f.Name, f.Type, name, texts)
				}
			}
		}
	}
}

func TestOpen_KeepsTheFilePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits on Windows")
	}
	path := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(path, []byte("{\"time\":\"2026-11-29T00:00:00Z\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Search(Origin{}, Search{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode = %o, want 600", got)
	}
	if got := len(readLog(t, path)); got != 2 {
		t.Errorf("records = %d, want the old one and the new one", got)
	}
}

func TestOpen_NamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no such folder", "log.jsonl")
	if _, err := Open(path, nil); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Open(%q) = %v, want an error that names the file", path, err)
	}
}

func TestLog_NilIsOff(t *testing.T) {
	var l *Log
	l.Session(Origin{}, Session{})
	l.Call(Origin{}, Call{})
	if err := l.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
}

func TestLog_TellsOfItsFirstFailureAlone(t *testing.T) {
	var out bytes.Buffer
	l, err := Open(filepath.Join(t.TempDir(), "log.jsonl"), slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil { // writes fail from now on
		t.Fatal(err)
	}
	for range 3 {
		l.Search(Origin{}, Search{})
	}
	if got := strings.Count(out.String(), "telemetry log is not written"); got != 1 {
		t.Errorf("logged %d times, want once:\n%s", got, out.String())
	}
}

func TestLog_WritersDoNotMix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	var wg sync.WaitGroup
	for range 4 { // each its own handle, as processes have
		l, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range 50 {
				l.Block(Origin{Session: "s"}, Block{Reason: strings.Repeat("r", 500)})
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := len(readLog(t, path)); got != 200 {
		t.Errorf("records = %d, want 200", got)
	}
}

func TestNewSession(t *testing.T) {
	a, b := NewSession(), NewSession()
	if len(a) != 32 || strings.Trim(a, "0123456789abcdef") != "" || a == b {
		t.Errorf("NewSession() = %q, then %q, want different ones of 32 hex digits", a, b)
	}
}
