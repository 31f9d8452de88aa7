package directory

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestInputSignature(t *testing.T) {
	// many returns n optional string properties.
	many := func(n, nameLength int) string {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf(`"%s%02d":{"type":"string"}`, strings.Repeat("p", nameLength-2), i))
		}
		return strings.Join(parts, ",")
	}
	for name, c := range map[string]struct{ schema, want string }{
		// The golden vectors of the original.
		"required first": {
			`{"type":"object","properties":{"mode":{"enum":["drip","flood"]},"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`,
			`{ id: string; mode?: "drip" | "flood" }`,
		},
		"numbers": {
			`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number","minimum":1,"maximum":5},"n":{"type":"integer","exclusiveMinimum":0}},"required":["z"],"additionalProperties":false}`,
			`{ z: string; a?: number /* >= 1, <= 5 */; n?: number /* integer, > 0 */ }`,
		},
		"sixteen of twenty": {
			`{"type":"object","properties":{` + many(20, 3) + `},"additionalProperties":false}`,
			`{ p00?: string; p01?: string; p02?: string; p03?: string; p04?: string; p05?: string; p06?: string; p07?: string; p08?: string; p09?: string; p10?: string; p11?: string; p12?: string; p13?: string; p14?: string; p15?: string; ... }`,
		},
		"nine values": {
			`{"type":"object","properties":{"e":{"enum":["1","2","3","4","5","6","7","8","9"]},"k":{"const":3}},"additionalProperties":false}`,
			`{ e?: unknown; k?: 3 }`,
		},
		"anyOf with an open object": {
			`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"string"}]}`,
			`unknown`,
		},
		"depth five": {
			`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"object","additionalProperties":false,"properties":{"b":{"type":"object","additionalProperties":false,"properties":{"c":{"type":"object","additionalProperties":false,"properties":{"d":{"type":"object","additionalProperties":false,"properties":{"e":{"type":"string"}}}}}}}}}}}`,
			`{ a?: { b?: { c?: { d?: { e?: unknown } } } } }`,
		},
		"array of closed objects": {
			`{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"paid":{"type":"boolean"}},"required":["id","paid"],"additionalProperties":false}}`,
			`Array<{ id: string; paid: boolean }>`,
		},
		"no properties":    {`{"type":"object"}`, `{ ... }`},
		"empty properties": {`{"type":"object","properties":{}}`, `{}`},
		"no schema":        {``, `unknown`},
		"empty schema":     {`{}`, `unknown`},

		"null properties":      {`{"type":"object","properties":null}`, `{ ... }`},
		"closed, none":         {`{"type":"object","additionalProperties":false}`, `{}`},
		"silence is closed":    {`{"type":"object","properties":{"a":{"type":"string"}}}`, `{ a?: string }`},
		"nested too deep":      {`{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"policy":{"enum":["auto",{"mode":"own"}]},"nested":{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"string"}}}}}}}}`, `{ id: string; nested?: Array<Array<Array<Array<unknown>>>>; policy?: unknown }`},
		"open by word":         {`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}`, `{ a?: string; ... }`},
		"pattern properties":   {`{"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":false,"patternProperties":{"^x":{}}}`, `{ a?: null; ... }`},
		"names that need it":   {`{"type":"object","properties":{"a b":{"type":"string"},"1a":{"type":"string"},"$x_1":{"type":"string"},"":{"type":"string"},"é":{"type":"string"}},"additionalProperties":false}`, `{ ""?: string; $x_1?: string; "1a"?: string; "a b"?: string; "é"?: string }`},
		"long name":            {`{"type":"object","properties":{"` + strings.Repeat("n", 129) + `":{"type":"string"},"z":{"type":"string"}},"additionalProperties":false}`, `{ z?: string; ... }`},
		"type list":            {`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["integer","string"]}},"additionalProperties":false}`, `{ a?: string | null; b?: number /* integer */ | string }`},
		"nullable":             {`{"type":"object","properties":{"a":{"type":"string","nullable":true},"b":{"enum":["x",null]},"c":{"anyOf":[{"type":"string"},{"type":"null"}]}},"additionalProperties":false}`, `{ a?: string | null; b?: "x" | null; c?: string | null }`},
		"open object or null":  {`{"type":"object","properties":{"a":{"anyOf":[{"type":"object","properties":{"b":{"type":"string"}}},{"type":"null"}]}},"additionalProperties":false}`, `{ a?: { b?: string } | null }`},
		"equal alternatives":   {`{"type":"object","properties":{"a":{"oneOf":[{"const":"x"},{"const":"y"},{"const":"x"}]}},"additionalProperties":false}`, `{ a?: "x" | "y" }`},
		"six types":            {`{"type":"object","properties":{"a":{"oneOf":[{"const":1},{"const":2},{"const":3},{"const":4},{"const":5},{"const":6}]}},"additionalProperties":false}`, `{ a?: unknown }`},
		"anyOf and oneOf":      {`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}],"oneOf":[{"type":"string"}]}},"additionalProperties":false}`, `{ a?: unknown }`},
		"restricted string":    {`{"type":"object","properties":{"a":{"type":"string","anyOf":[{"format":"date"},{"pattern":"x"}]}},"additionalProperties":false}`, `{ a?: string }`},
		"long enum":            {`{"type":"object","properties":{"a":{"enum":["` + strings.Repeat("v", 95) + `"]}},"additionalProperties":false}`, `{ a?: unknown }`},
		"enum of objects":      {`{"type":"object","properties":{"a":{"enum":[{}]}},"additionalProperties":false}`, `{ a?: unknown }`},
		"enum of all kinds":    {`{"type":"object","properties":{"a":{"enum":["s",1.50,true,null,"s"]}},"additionalProperties":false}`, `{ a?: "s" | 1.50 | true | null }`},
		"tuples":               {`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}]},"b":{"type":"array","items":[{"type":"string"}]},"c":{"type":"array"}},"additionalProperties":false}`, `{ a?: unknown; b?: unknown; c?: Array<unknown> }`},
		"undeclared required":  {`{"type":"object","properties":{"a":{"type":"string"}},"required":["b","b",1],"additionalProperties":false}`, `{ b: unknown; a?: string }`},
		"draft-04 bounds":      {`{"type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}},"additionalProperties":false}`, `{ a?: number /* > 0, <= 9 */ }`},
		"bounds of generators": {`{"type":"object","properties":{"a":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}},"additionalProperties":false}`, `{ a?: number /* integer */ }`},

		"root combinators":    {`{"anyOf":[{"type":"object","required":["slot_id"]},{"type":"object","required":["from","to"]}]}`, `unknown`},
		"restricted object":   {`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"anyOf":[{"required":["a"]}]}`, `{ a?: string; ... }`},
		"conditional object":  {`{"type":"object","properties":{"mode":{"type":"string"}},"additionalProperties":false,"allOf":[{"if":{},"then":{}},{}]}`, `{ mode?: string; ... }`},
		"references":          {`{"type":"object","properties":{"filter":{"$ref":"#/$defs/F"}},"required":["filter"],"$defs":{"F":{"type":"object","properties":{"text":{"type":"string"},"owner":{"type":"string","default":null}},"additionalProperties":false}},"additionalProperties":false}`, `{ filter: { owner?: string | null; text?: string } }`},
		"draft-07 references": {`{"type":"object","properties":{"f":{"$ref":"#/definitions/a~1b%20c"}},"definitions":{"a/b c":{"type":"boolean"}},"additionalProperties":false}`, `{ f?: boolean }`},
		"pydantic's allOf":    {`{"type":"object","properties":{"f":{"allOf":[{"$ref":"#/$defs/E"}],"default":null}},"$defs":{"E":{"enum":["a"],"type":"string"}},"additionalProperties":false}`, `{ f?: "a" | null }`},
		"dangling reference":  {`{"type":"object","properties":{"f":{"$ref":"#/$defs/Panel"},"g":{"$ref":"https://schemas.example.test/x"}},"additionalProperties":false}`, `{ f?: unknown; g?: unknown }`},
		"root reference":      {`{"$ref":"#/$defs/R","$defs":{"R":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}}}`, `{ a?: string }`},
		"recursion": {
			`{"type":"object","properties":{"filter":{"$ref":"#/$defs/F"}},"required":["filter"],"$defs":{"F":{"type":"object","properties":{"text":{"type":"string"},"any":{"type":"array","items":{"$ref":"#/$defs/F"}},"owner":{"type":"string","default":null}}}}}`,
			`{ filter: { any?: Array<{ any?: Array<unknown>; owner?: string | null; text?: string }>; owner?: string | null; text?: string } }`,
		},
		"reference to itself": {`{"$ref":"#"}`, `unknown`},
		"references in a ring": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}},"additionalProperties":false}`, `{ a?: unknown }`,
		},

		"too long inside": {
			`{"type":"object","properties":{"body":{"type":"object","properties":{` + many(16, 20) + `}},"id":{"type":"string"}},"required":["body"],"additionalProperties":false}`,
			`{ body: { ... }; id?: string }`,
		},
		"too long": {
			`{"type":"object","properties":{` + many(16, 30) + `,"zz":{"type":"string"}},"required":["zz"],"additionalProperties":false}`,
			`{ zz: string; pppppppppppppppppppppppppppp00?: string; pppppppppppppppppppppppppppp01?: string; pppppppppppppppppppppppppppp02?: string; pppppppppppppppppppppppppppp03?: string; pppppppppppppppppppppppppppp04?: string; pppppppppppppppppppppppppppp05?: string; ... }`,
		},
		"hidden characters": {
			`{"type":"object","properties":{"a\u202eb":{"enum":["x\udb40\udc41\u200by","\u001b[31m","q\"\\"]}},"additionalProperties":false}`,
			`{ "a\u202eb"?: "x\udb40\udc41\u200by" | "\u001b[31m" | "q\"\\" }`,
		},
		"duplicate keys": {`{"type":"string","type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{ a?: string }`},
		"not a schema":   {`[1,2]`, `unknown`},
		"not JSON":       {`{"type":`, `unknown`},
		"true":           {`true`, `unknown`},
		"wrong types":    {`{"type":{"a":1},"properties":[],"required":"x","enum":{}}`, `{ ... }`},
		"root string":    {`{"type":"string"}`, `string`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := InputSignature(json.RawMessage(c.schema)); got != c.want {
				t.Errorf("InputSignature(%s)\n got %s\nwant %s", c.schema, got, c.want)
			}
		})
	}
}

func TestOutputSignature(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"array of closed objects": {
			`{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"paid":{"type":"boolean"}},"required":["id","paid"],"additionalProperties":false}}`,
			`Array<{ id: string; paid: boolean }>`,
		},
		"array of open objects": {
			`{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"}}}}`, ``,
		},
		"numbers without bounds": {
			`{"type":"object","properties":{"n":{"type":"integer","minimum":0}},"additionalProperties":false}`, `{ n?: number }`,
		},
		"unknown inside": {`{"type":"object","properties":{"n":{}},"additionalProperties":false}`, ``},
		"conditions":     {`{"type":"object","properties":{"n":{"type":"string"}},"additionalProperties":false,"if":{}}`, ``},
		"too deep": {
			strings.Repeat(`{"type":"array","items":`, 7) + `{"type":"string"}` + strings.Repeat(`}`, 7), ``,
		},
		"deep": {
			strings.Repeat(`{"type":"array","items":`, 6) + `{"type":"string"}` + strings.Repeat(`}`, 6),
			`Array<Array<Array<Array<Array<Array<string>>>>>>`,
		},
		"nothing": {``, ``},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := OutputSignature(json.RawMessage(c.schema))
			if got != c.want || ok != (c.want != "") {
				t.Errorf("OutputSignature(%s) = %q, %v, want %q", c.schema, got, ok, c.want)
			}
		})
	}
	if got, ok := OutputSignature(wideSchema(23)); ok {
		t.Errorf("OutputSignature(23 properties) = %q, want none", got)
	}
	if _, ok := OutputSignature(wideSchema(22)); !ok {
		t.Error("OutputSignature(22 properties) = none, want a signature")
	}
}

func wideSchema(n int) json.RawMessage {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(`"p%02d":{"type":"string"}`, i))
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(parts, ",") + `},"additionalProperties":false}`)
}

// hostileSchemas are made to be slow or large.
func hostileSchemas() map[string]string {
	var enum, properties []string
	for i := range 20000 {
		enum = append(enum, fmt.Sprintf(`"value%d"`, i))
		properties = append(properties, fmt.Sprintf(`"p%d":{"$ref":"#"}`, i))
	}
	union := `{"type":"string"}`
	for range 10 {
		union = `{"anyOf":[` + strings.Repeat(union+`,`, 3) + union + `]}`
		if len(union) > 1<<18 {
			break
		}
	}
	return map[string]string{
		"deep":      strings.Repeat(`{"type":"object","properties":{"a":`, 5000) + `{}` + strings.Repeat(`}}`, 5000),
		"too deep":  strings.Repeat(`[`, 200000),
		"enum":      `{"type":"object","properties":{"e":{"enum":[` + strings.Join(enum, ",") + `]}}}`,
		"wide":      `{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`,
		"union":     union,
		"ring":      `{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#"},"c":{"type":"array","items":{"$ref":"#"}},"d":{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"type":"null"}]}}}`,
		"wide ring": `{"type":"object","properties":{` + strings.Join(properties[:40], ",") + `,"e":{"enum":["` + strings.Repeat("e", 1<<19) + `"]}}}`,
		"long name": `{"type":"object","properties":{"` + strings.Repeat("\\u202e", 100000) + `":{"type":"string"}}}`,
	}
}

func TestSignatures_HostileSchemasAreCheap(t *testing.T) {
	best := func(f func()) time.Duration {
		best := time.Duration(math.MaxInt64)
		for range 3 {
			start := time.Now()
			f()
			best = min(best, time.Since(start))
		}
		return best
	}
	// The yardstick is reading a document as large as the largest that is read.
	document := []byte(`[` + strings.Repeat(`{"a":"bcdefghijk"},`, maxSchemaBytes/19) + `0]`)
	limit := 10 * best(func() {
		var v any
		if err := json.Unmarshal(document, &v); err != nil {
			t.Fatal(err)
		}
	})
	for name, schema := range hostileSchemas() {
		took := best(func() {
			checkSignature(t, InputSignature(json.RawMessage(schema)), inputChars)
			_, _ = OutputSignature(json.RawMessage(schema))
		})
		if took > limit {
			t.Errorf("%s: took %v, want at most %v", name, took, limit)
		}
	}
}

func checkSignature(t *testing.T, sig string, max int) {
	t.Helper()
	if n := utf8.RuneCountInString(sig); n > max || n == 0 || !utf8.ValidString(sig) {
		t.Errorf("signature %q has %d characters, want 1 to %d", sig, n, max)
	}
	for _, r := range sig {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			t.Errorf("signature %q holds %U", sig, r)
		}
	}
}

func FuzzSignatures(f *testing.F) {
	for _, s := range hostileSchemas() {
		if len(s) < 1000 {
			f.Add([]byte(s))
		}
	}
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"number","minimum":1e400},"b":{"enum":["\ud800",null]}},"required":["c"]}`))
	f.Add([]byte(`{"anyOf":[{"$ref":"#/anyOf/1"},{"type":["array","null"],"items":{"const":-0}}],"default":null}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		checkSignature(t, InputSignature(schema), inputChars)
		if sig, ok := OutputSignature(schema); ok {
			checkSignature(t, sig, outputChars)
		} else if sig != "" {
			t.Errorf("OutputSignature(%s) = %q, false", schema, sig)
		}
	})
}

func BenchmarkInputSignature(b *testing.B) {
	schema := json.RawMessage(`{"type":"object","properties":{"owner":{"type":"string","description":"Repository owner"},"repo":{"type":"string","description":"Repository name"},"state":{"type":"string","enum":["open","closed","all"]},"labels":{"type":"array","items":{"type":"string"}},"page":{"type":"number","minimum":1}},"required":["owner","repo"]}`)
	for b.Loop() {
		InputSignature(schema)
	}
}
