package upstreams

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCheckArguments(t *testing.T) {
	const slot = `{"type":"object","properties":{
		"slot":{"type":"object","properties":{"h":{"type":"integer"},"note":{"type":"string"}},"required":["h"]},
		"tags":{"type":"array","items":{"type":"string"}},
		"payload":{"type":"string"},
		"either":{"type":["string","object"]},
		"maxDays":{"type":"integer"},
		"maybe":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"mode":{"enum":["drip","flood"]}},
		"required":["slot"]}`
	const closed = `{"type":"object","properties":{"maxDays":{"type":"integer"},"city":{"type":"string"}},"additionalProperties":false}`
	const openSchema = `{"type":"object","properties":{"maxDays":{"type":"integer"},"maxDepth":{"type":"integer"}}}`
	for _, c := range []struct {
		name, schema, args string
		fixed, note        string
		problems           []string
	}{
		{"absent", `{"type":"object"}`, ``, `{}`, "", nil},
		{"null", `{"type":"object"}`, `null`, `{}`, "", nil},
		{"no schema", ``, `{"a":1}`, `{"a":1}`, "", nil},
		{"whole string", closed, `"{\"city\":\"x\"}"`, `{"city":"x"}`, "", nil},
		{"empty string", closed, `""`, `{}`, "", nil},
		{"bytes stay", `{"type":"object","properties":{"account":{"type":"integer"}}}`, `{"account": 4611700000000000123, "ratio":0.10}`, `{"account": 4611700000000000123, "ratio":0.10}`, "", nil},
		{"optional null dropped", slot, `{"slot":{"h":1},"payload":null,"maybe":null,"unknown_x":null}`, `{"slot":{"h":1},"maybe":null,"unknown_x":null}`, "", nil},
		{"nested null dropped", slot, `{"slot":{"h":1,"note":null}}`, `{"slot":{"h":1}}`, "", nil},
		{"nested JSON string", slot, `{"slot":"{\"h\":3}","tags":"[\"a\"]","payload":"{\"h\":3}","either":"{}"}`, `{"slot":{"h":3},"tags":["a"],"payload":"{\"h\":3}","either":"{}"}`, "", nil},
		{"by reference", `{"type":"object","properties":{"f":{"$ref":"#/$defs/F"}},"$defs":{"F":{"type":"object","properties":{"owner":{"type":"string"}}}}}`, `{"f":"{\"owner\":\"x\"}"}`, `{"f":{"owner":"x"}}`, "", nil},
		{"near name in an open schema", openSchema, `{"days":1}`, `{"days":1}`, `"days" is not declared by the tool and may have been ignored; did you mean "maxDays"?`, nil},
		{"spelling in an open schema", openSchema, `{"max_days":1}`, `{"max_days":1}`, `"max_days" is not declared by the tool and may have been ignored; did you mean "maxDays"?`, nil},
		{"far name in an open schema", openSchema, `{"zebra":1}`, `{"zebra":1}`, "", nil},
		{"free keys", `{"type":"object","properties":{"maxDays":{}},"additionalProperties":{"type":"integer"}}`, `{"days":1}`, `{"days":1}`, "", nil},

		{"not an object", slot, `[1]`, "", "", []string{"the arguments must be one JSON object"}},
		{"a text", slot, `"hello"`, "", "", []string{"the arguments must be one JSON object"}},
		{"duplicate", ``, `{"a":1,"a":2}`, "", "", []string{`the arguments are not usable: duplicate key "a"`}},
		{"nested duplicate", ``, `{"a":{"b":1,"b":2}}`, "", "", []string{`the arguments are not usable: duplicate key "b" in /a`}},
		{"1e400", ``, `{"a":[1e400]}`, "", "", []string{`"a.0" is a number out of range`}},
		{"required null stays", slot, `{"slot":null}`, "", "", []string{`"slot" must be object, not null`}},
		{"missing", slot, `{}`, "", "", []string{`"slot" is required`}},
		{"missing, misspelt", slot, `{"slots":{"h":1}}`, "", "", []string{`"slot" is required; rename "slots"`}},
		{"missing inside", slot, `{"slot":{}}`, "", "", []string{`"h" is required in "slot"`}},
		{"type", slot, `{"slot":{"h":1},"maxDays":"1"}`, "", "", []string{`"maxDays" must be integer, not string`}},
		{"enum", slot, `{"slot":{"h":1},"mode":"rain"}`, "", "", []string{`"mode" must be one of "drip", "flood"`}},
		{"alternatives of types", `{"properties":{"a":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"a":"x"}`, "", "", []string{`"a" must be integer or null, not string`}},
		{"alternatives of objects", `{"anyOf":[{"type":"object","required":["slot_id"]},{"type":"object","required":["from","to"]}]}`, `{"from":1}`, "", "", []string{`the whole value fits none of the alternatives: ("slot_id" is required) or ("to" is required)`}},
		{"closed", closed, `{"days":1}`, "", "", []string{`"days" is not declared; did you mean "maxDays"?`}},
		{"closed, far", closed, `{"zebra":1}`, "", "", []string{`"zebra" is not declared; declared: "city", "maxDays"`}},
		{"closed by unevaluatedProperties", `{"properties":{"maxDays":{}},"unevaluatedProperties":false}`, `{"days":1}`, "", "", []string{`"days" is not declared; did you mean "maxDays"?`}},
		{"several", slot, `{"mode":1,"tags":{}}`, "", "", []string{`"slot" is required`, `"mode" must be one of "drip", "flood"`, `"tags" must be array, not object`}},
		{"length", `{"properties":{"a":{"minLength":3}}}`, `{"a":"x"}`, "", "", []string{`"a": minLength: got 1, want 3`}},
		{"line break in a name", closed, `{"a\n\u202eb":1}`, "", "", []string{`"a\n\u202eb" is not declared; declared: "city", "maxDays"`}},

		// The original schema decides, not what we publish of it.
		{"conditional, met", `{"allOf":[{"if":{"properties":{"mode":{"const":"sea"}},"required":["mode"]},"then":{"required":["weight"]}}],"properties":{"mode":{},"weight":{}}}`, `{"mode":"air"}`, `{"mode":"air"}`, "", nil},
		{"conditional, broken", `{"allOf":[{"if":{"properties":{"mode":{"const":"sea"}},"required":["mode"]},"then":{"required":["weight"]}}],"properties":{"mode":{},"weight":{}}}`, `{"mode":"sea"}`, "", "", []string{`"weight" is required`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tool := &Tool{ID: "mcp:a:b", InputSchema: json.RawMessage(c.schema), Validate: validateError}
			if c.schema == "" {
				tool.InputSchema = nil
			}
			fixed, note, err := tool.CheckArguments(json.RawMessage(c.args))
			var bad *ArgumentsError
			errors.As(err, &bad)
			var problems []string
			if bad != nil {
				problems = bad.Problems
			}
			if string(fixed) != c.fixed || note != c.note || fmt.Sprint(problems) != fmt.Sprint(c.problems) {
				t.Errorf("CheckArguments(%s) =\n  %s, %q, %q, want\n  %s, %q, %q", c.args, fixed, note, problems, c.fixed, c.note, c.problems)
			}
		})
	}
}

func TestCheckArguments_Modes(t *testing.T) {
	tool := Tool{InputSchema: json.RawMessage(`{"type":"object","required":["a"]}`)}
	tool.Validate = validateWarn
	fixed, note, err := tool.CheckArguments(json.RawMessage(`{"b":1}`))
	if want := `the arguments may be wrong: "a" is required`; string(fixed) != `{"b":1}` || note != want || err != nil {
		t.Errorf("warn: CheckArguments = %s, %q, %v, want note %q", fixed, note, err, want)
	}
	tool.Validate = validateOff
	fixed, note, err = tool.CheckArguments(json.RawMessage(`{"b":1}`))
	if string(fixed) != `{"b":1}` || note != "" || err != nil {
		t.Errorf("off: CheckArguments = %s, %q, %v", fixed, note, err)
	}
	for _, mode := range []string{validateError, validateWarn, validateOff} {
		tool.Validate = mode
		if _, _, err := tool.CheckArguments(json.RawMessage(`{"b":1,"b":2}`)); err == nil {
			t.Errorf("%s: duplicate keys were let through", mode)
		}
	}
}

// The same tool in every dialect that real servers name.
func TestCheckArguments_Dialects(t *testing.T) {
	for _, c := range []struct {
		dialect string
		checked bool
	}{
		{"http://json-schema.org/draft-04/schema#", true},
		{"http://json-schema.org/draft-06/schema#", true},
		{"http://json-schema.org/draft-07/schema#", true},
		{"http://json-schema.org/draft-07/schema", true},
		{"https://json-schema.org/draft-07/schema#", true},
		{"https://json-schema.org/draft/2019-09/schema", true},
		{"https://json-schema.org/draft/2020-12/schema", true},
		{"", true},
		{"https://schemas.example.test/own", false},
	} {
		s := `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]`
		if c.dialect != "" {
			s += `,"$schema":"` + c.dialect + `"`
		}
		tool := Tool{InputSchema: json.RawMessage(s + "}"), Validate: validateError}
		if _, _, err := tool.CheckArguments(json.RawMessage(`{"n":1}`)); err != nil {
			t.Errorf("$schema %q: valid arguments refused: %v", c.dialect, err)
		}
		if _, _, err := tool.CheckArguments(json.RawMessage(`{"n":"x"}`)); (err != nil) != c.checked {
			t.Errorf("$schema %q: wrong arguments: %v, want checked = %v", c.dialect, err, c.checked)
		}
	}
}

// A schema that cannot be used never blocks a call.
func TestCheckArguments_FailsOpen(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 9000) + `{}` + strings.Repeat(`}`, 9000)
	for name, s := range map[string]string{
		"no JSON":            `{"type":`,
		"null keywords":      `{"type":"object","properties":null,"required":null}`,
		"wrong keyword type": `{"type":"object","properties":[]}`,
		"unknown type":       `{"type":"any"}`,
		"a string":           `"object"`,
		"a number":           `7`,
		"unresolvable":       `{"properties":{"a":{"$ref":"#/$defs/Nowhere"}},"required":["b"]}`,
		"remote":             `{"$ref":"https://example.com/s.json"}`,
		"file":               `{"$ref":"file:///etc/hostname"}`,
		"old bounds":         `{"properties":{"a":{"minimum":1,"exclusiveMinimum":true}},"required":["b"]}`,
		"loop":               `{"$ref":"#"}`,
		"loop of two":        `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"deep":               deep,
		"huge":               `{"description":"` + strings.Repeat("x", maxSchemaBytes) + `","required":["b"]}`,
		"forking references": forks(40),
		"patternProperties":  `{"patternProperties":{"^(?!x)":{"type":"integer"}},"additionalProperties":false}`,
	} {
		tool := Tool{InputSchema: json.RawMessage(s), Validate: validateError}
		began := time.Now()
		if fixed, note, err := tool.CheckArguments(json.RawMessage(`{"a":"x"}`)); string(fixed) != `{"a":"x"}` || note != "" || err != nil {
			t.Errorf("%s: CheckArguments = %s, %q, %v, want the arguments as they are", name, fixed, note, err)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
}

// forks makes a schema of n lines that a validator tries 2^n times.
func forks(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"required":["b"]}}}`, n)
	return b.String()
}

// One pattern that Go cannot read does not switch the other checks off.
func TestCheckArguments_UnreadablePattern(t *testing.T) {
	tool := Tool{Validate: validateError, InputSchema: json.RawMessage(
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"mail":{"type":"string","format":"email","pattern":"^(?!\\.)(?!.*\\.\\.)x"}},"required":["mail"]}`)}
	if _, _, err := tool.CheckArguments(json.RawMessage(`{"mail":"not an address"}`)); err != nil {
		t.Errorf("a pattern nobody can check and a format refused the call: %v", err)
	}
	if _, _, err := tool.CheckArguments(json.RawMessage(`{}`)); err == nil {
		t.Error("the required property is not checked any more")
	}
}

func TestCheckArguments_RecursiveSchema(t *testing.T) {
	tool := Tool{Validate: validateError, InputSchema: json.RawMessage(
		`{"type":"object","properties":{"filter":{"$ref":"#/$defs/F"}},"required":["filter"],"$defs":{"F":{"type":"object","properties":{"text":{"type":"string"},"any":{"type":"array","items":{"$ref":"#/$defs/F"}},"owner":{"type":"string","default":null}}}}}`)}
	if _, _, err := tool.CheckArguments(json.RawMessage(`{"filter":{"any":[{"any":[{"text":"x"}]}]}}`)); err != nil {
		t.Error(err)
	}
	_, _, err := tool.CheckArguments(json.RawMessage(`{"filter":{"any":[{"any":[{"text":1}]}]}}`))
	if err == nil || !strings.Contains(err.Error(), `"filter.any.0.any.0.text" must be string, not number`) {
		t.Errorf("CheckArguments of a wrong inner value: %v", err)
	}
}

func TestCheckResult(t *testing.T) {
	const s = `{"type":"object","properties":{"rows":{"type":"integer"}},"required":["rows"]}`
	for _, c := range []struct {
		name   string
		trust  Trust
		schema string
		result string
		want   string // "" for nil
	}{
		{"fits", TrustFull, s, `{"structuredContent":{"rows":1},"content":[]}`, ""},
		{"breaks", TrustFull, s, `{"structuredContent":{"rows":null},"content":[]}`, `"rows" must be integer, not null`},
		{"missing", TrustFull, s, `{"content":[]}`, "structuredContent is missing"},
		{"an error has no contract", TrustFull, s, `{"isError":true,"content":[]}`, ""},
		{"not trusted", TrustSchema, s, `{"content":[]}`, ""},
		{"no schema", TrustFull, ``, `{"content":[]}`, ""},
		{"large integer", TrustFull, `{"properties":{"id":{"const":9007199254740993}}}`, `{"structuredContent":{"id":9007199254740993}}`, ""},
		{"large integer, other", TrustFull, `{"properties":{"id":{"const":9007199254740993}}}`, `{"structuredContent":{"id":9007199254740992}}`, `"id" must be 9007199254740993`},
	} {
		tool := &Tool{Trust: c.trust, OutputSchema: json.RawMessage(c.schema)}
		if c.schema == "" {
			tool.OutputSchema = nil
		}
		err := tool.CheckResult(json.RawMessage(c.result))
		var broken *OutputError
		if errors.As(err, &broken) != (c.want != "") || broken != nil && strings.Join(broken.Problems, "; ") != c.want {
			t.Errorf("%s: CheckResult = %v, want %q", c.name, err, c.want)
		}
	}
}

func TestCheckOutputSchema(t *testing.T) {
	broken := json.RawMessage(`{"properties":{"panels":{"$ref":"#/$defs/Panel"}}}`)
	for _, c := range []struct {
		trust  Trust
		schema json.RawMessage
		ok     bool
	}{
		{TrustFull, broken, false},
		{TrustSchema, broken, true},
		{TrustFull, nil, true},
		{TrustFull, json.RawMessage(`{"type":"object"}`), true},
		{TrustFull, json.RawMessage(`{"$schema":"https://schemas.example.test/own"}`), true},
	} {
		tool := &Tool{ID: "mcp:a:b", Trust: c.trust, OutputSchema: c.schema}
		if err := tool.CheckOutputSchema(); (err == nil) != c.ok {
			t.Errorf("CheckOutputSchema of %s (trust %s) = %v", c.schema, c.trust, err)
		}
	}
}

func FuzzCheckArguments(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/x"}},"x":{"pattern":"("}}`, `{"a":"{\"b\":1}"}`)
	f.Add(`{"anyOf":[{"required":["a"]},true,false]}`, `{"a":null}`)
	f.Fuzz(func(t *testing.T, s, args string) {
		tool := &Tool{InputSchema: json.RawMessage(s), Validate: validateError}
		fixed, _, err := tool.CheckArguments(json.RawMessage(args))
		if err == nil && !json.Valid(fixed) {
			t.Fatalf("CheckArguments(%q) = %q, not JSON", args, fixed)
		}
	})
}

func BenchmarkCheckArguments(b *testing.B) {
	tool := &Tool{Validate: validateError, InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"integer"}},"required":["path"]}`)}
	tool.checker = tool.checks()
	args := json.RawMessage(`{"path":"/data/notes.txt","head":20}`)
	for b.Loop() {
		if _, _, err := tool.CheckArguments(args); err != nil {
			b.Fatal(err)
		}
	}
}
