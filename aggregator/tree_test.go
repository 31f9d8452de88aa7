package aggregator

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTree_Encode(t *testing.T) {
	for _, v := range []string{`{}`, `[]`, `null`, `1.0`, `"a\"]\\"`, `[1,[2,{}],"}"]`, `{"a\u00e9":{"b":[true,-1e5]},"":0}`} {
		if got := string(parseTree(json.RawMessage(" " + v + " ")).encode(nil)); got != v {
			t.Errorf("parseTree(%s).encode() = %s", v, got)
		}
	}
	if got := string(parseTree(json.RawMessage(" { \"a\" : [ 1 ,\n2 ] } ")).encode(nil)); got != `{"a":[1,2]}` {
		t.Errorf("encode() = %s, want it without blanks", got)
	}
	root := parseTree(json.RawMessage(`{"a":[1,{"b":2}],"c":3}`))
	if got := string(root.encode(map[*tree]bool{root.get("a").items[1]: true})); got != `{"a":[1,{}],"c":3}` {
		t.Errorf("encode with a cut = %s", got)
	}
	for _, v := range []string{``, `{`, `{"a"}`, `[1,]`, strings.Repeat("[", 20_000)} {
		if parseTree(json.RawMessage(v)) != nil {
			t.Errorf("parseTree(%.20s) is not nil", v)
		}
	}
}

func TestTree_At(t *testing.T) {
	root := parseTree(json.RawMessage(`{"a/b":{"m~n":[10,{"x":20}]},"":{"":30}}`))
	for pointer, want := range map[string]string{
		"":                `{"a/b":{"m~n":[10,{"x":20}]},"":{"":30}}`,
		"/a~1b/m~0n/0":    `10`,
		"/a~1b/m~0n/1/x":  `20`,
		"//":              `30`,
		"/a~1b/m~0n/2":    `error: /a~1b/m~0n has no "2"; it has 0, 1`,
		"/a~1b/m~0n/-1":   `error: /a~1b/m~0n has no "-1"; it has 0, 1`,
		"/zz":             `error: the root has no "zz"; it has a/b, `,
		"/a~1b/m~0n/0/no": `error: nothing is below /a~1b/m~0n/0`,
	} {
		got, err := root.at(pointer)
		switch {
		case err != nil && "error: "+err.Error() != want:
			t.Errorf("at(%q) = %v, want %s", pointer, err, want)
		case err == nil && string(got.raw) != want:
			t.Errorf("at(%q) = %s, want %s", pointer, got.raw, want)
		}
	}
}
