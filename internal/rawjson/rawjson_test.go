package rawjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestParse_KeepsBytesAndOrder(t *testing.T) {
	in := ` { "z" : 10000000000000001 , "a":[1, {"b":"}\""}],"n":null,"t":true, "s":"\u0061" } `
	o, err := Parse([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"z":10000000000000001,"a":[1, {"b":"}\""}],"n":null,"t":true,"s":"\u0061"}`
	if got := string(o.Bytes()); got != want {
		t.Errorf("Bytes() = %s, want %s", got, want)
	}
	if s, ok := o.Text("s"); s != "a" || !ok {
		t.Errorf(`Text("s") = %q, %v`, s, ok)
	}
	if got := string(o.With("n", json.RawMessage("1")).Without("a").With("q", json.RawMessage("2")).Bytes()); got != `{"z":10000000000000001,"n":1,"t":true,"s":"\u0061","q":2}` {
		t.Errorf("edited = %s", got)
	}
	if !o.Has("n") || o.Has("Z") {
		t.Error("Has must see null members and keep case")
	}
}

func TestParse_Refuses(t *testing.T) {
	for _, in := range []string{``, `{`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":1}x`} {
		if _, err := Parse([]byte(in)); err == nil {
			t.Errorf("Parse(%s) = nil error", in)
		}
	}
	if _, err := Parse([]byte(`[1]`)); !errors.Is(err, ErrNotObject) {
		t.Errorf("Parse([1]) error = %v, want ErrNotObject", err)
	}
}

func TestCheckDuplicates(t *testing.T) {
	if err := CheckDuplicates([]byte(`{"a":[{"b":1,"b":2}]}`)); err == nil {
		t.Error("nested duplicate accepted")
	}
	if err, want := CheckDuplicates([]byte(`{"a":[0, {"b":1,"b":2}]}`)), `duplicate key "b" in /a/1`; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	for _, in := range []string{`{"a":[{"b":1,"B":2}, {"b":2}],"c":"x", "d":{}}`, ` [ ] `, `"x"`, `-1.5e3`} {
		if err := CheckDuplicates([]byte(in)); err != nil {
			t.Errorf("CheckDuplicates(%s) = %v", in, err)
		}
	}
	if err := CheckDuplicates([]byte(`{"a":`)); err == nil {
		t.Error("invalid JSON accepted")
	}
}

// A value of n levels costs n steps, not n².
func TestCheckDuplicates_Deep(t *testing.T) {
	const depth = 9000 // encoding/json gives up at 10,000
	deep := strings.Repeat(`{"a":[`, depth/2) + `1` + strings.Repeat(`]}`, depth/2)
	if n := testing.AllocsPerRun(1, func() {
		if err := CheckDuplicates([]byte(deep)); err != nil {
			t.Error(err)
		}
	}); n > 10*depth {
		t.Errorf("%v allocations for %d levels", n, depth)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[{"c":"\"}"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		o, err := Parse(in)
		if err != nil {
			return
		}
		again, err := Parse(o.Bytes())
		if err != nil {
			t.Fatalf("Parse(Bytes()) of %q: %v", in, err)
		}
		if string(again.Bytes()) != string(o.Bytes()) {
			t.Fatalf("round trip of %q: %s != %s", in, again.Bytes(), o.Bytes())
		}
	})
}

func TestList(t *testing.T) {
	for _, c := range []struct {
		items []json.RawMessage
		want  string
	}{
		{nil, `[]`},
		{[]json.RawMessage{json.RawMessage(`1.0`)}, `[1.0]`},
		{[]json.RawMessage{json.RawMessage(`{"a": 1}`), json.RawMessage(`"b"`)}, `[{"a": 1},"b"]`},
	} {
		if got := string(List(c.items...)); got != c.want {
			t.Errorf("List(%s) = %s, want %s", c.items, got, c.want)
		}
	}
}

func TestKind(t *testing.T) {
	for v, want := range map[string]string{
		"": "nothing", " \n": "nothing", " {}": "an object", "[1]": "an array", `""`: "a string",
		"true": "a boolean", "false": "a boolean", "null": "null", "-1": "a number",
	} {
		if got := Kind(json.RawMessage(v)); got != want {
			t.Errorf("Kind(%q) = %q, want %q", v, got, want)
		}
	}
}
