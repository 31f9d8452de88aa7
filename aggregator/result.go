package aggregator

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/rawjson"
)

func quote(s string) json.RawMessage { return rawjson.Quote(s) }

// encode is json.Marshal without HTML escaping: signatures are full of <.
func encode(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // only our own types come here
	}
	return bytes.TrimRight(buf.Bytes(), "\n")
}

// textBlock is one content block of text.
func textBlock(text string) json.RawMessage {
	return append(append([]byte(`{"type":"text","text":`), quote(text)...), '}')
}

// content encodes text blocks, blank ones left out.
func content(texts ...string) json.RawMessage {
	var blocks []json.RawMessage
	for _, t := range texts {
		if t != "" {
			blocks = append(blocks, textBlock(t))
		}
	}
	return rawjson.List(blocks...)
}

// textResult is a successful result of a control tool.
func textResult(texts ...string) json.RawMessage {
	return rawjson.Object{{Name: "content", Value: content(texts...)}}.Bytes()
}

// errorResult is a result that tells the model what went wrong.
func errorResult(text string) json.RawMessage {
	return rawjson.Object{
		{Name: "content", Value: content(text)},
		{Name: "isError", Value: json.RawMessage("true")},
	}.Bytes()
}

// chars counts the characters of an answer as clients count them: of the
// encoded content, where each quote inside a text takes two.
func chars(encodedContent json.RawMessage) int { return utf8.RuneCount(encodedContent) }

// cut shortens s to max characters and marks it.
func cut(s string, max int) string {
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	r := []rune(s)
	return string(r[:max-1]) + "…"
}
