package codebridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
)

// maxNesting is how deep JSON may be that is handed into a program: parsing
// it takes the engine's stack.
const maxNesting = 256

// inlineBase64 is how many characters of base64 a program gets as they are.
const inlineBase64 = 1024

// answer is what the host said, made ready for the guest.
type answer struct {
	settle settleFrame
	toolID string
	status string
}

// blockStore makes answers ready and keeps the binary content blocks of one
// run, so that a program handles references and the client gets the bytes.
type blockStore struct {
	// mu guards the following
	mu   sync.Mutex
	size int
	keys map[string]*keptBlock // by reference, and small ones by their base64 too
	n    int
}

type keptBlock struct {
	raw json.RawMessage // nil: too large to be kept
}

func newBlockStore() *blockStore { return &blockStore{keys: make(map[string]*keptBlock)} }

// answer makes the host's answer to fn ready for the guest.
func (s *blockStore) answer(fn string, raw json.RawMessage, err error) answer {
	if err == nil {
		a, refusal := s.success(fn, raw)
		if refusal == nil {
			return a
		}
		err = refusal
	}
	var te *ToolError
	if !errors.As(err, &te) {
		te = &ToolError{Code: "failed", Message: err.Error()}
	}
	return s.failure(te)
}

func (s *blockStore) success(fn string, raw json.RawMessage) (answer, *ToolError) {
	a := answer{status: StatusOK, settle: settleFrame{OK: true, Alias: aliasNone}}
	if !json.Valid(raw) {
		return a, &ToolError{Code: "failed", Message: "the answer is not JSON"}
	}
	if fn != "call" {
		refusal := a.fill(raw, nil)
		return a, refusal
	}
	var env struct {
		Tool   json.RawMessage `json:"tool"`
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(raw, &env) != nil || env.Result == nil {
		return a, &ToolError{Code: "failed", Message: "the answer holds no result"}
	}
	if env.Tool == nil {
		env.Tool = json.RawMessage("null")
	}
	a.toolID = idOf(env.Tool)
	result := s.replaceBlocks(env.Result)
	var r struct {
		Content           []json.RawMessage `json:"content"`
		StructuredContent json.RawMessage   `json:"structuredContent"`
		IsError           bool              `json:"isError"`
	}
	_ = json.Unmarshal(result, &r) // what is not there has no details
	texts := textsOf(r.Content)
	if r.IsError {
		return a, &ToolError{Code: "failed", Tool: env.Tool, Message: strings.Join(texts, "\n"), Result: result}
	}
	out := make([]byte, 0, len(env.Tool)+len(result)+32)
	out = append(append(append(append(out, `{"tool":`...), env.Tool...), `,"result":`...), result...)
	switch {
	case len(r.StructuredContent) > 0 && string(r.StructuredContent) != "null":
		a.settle.Alias = aliasStructured
	default:
		a.settle.Alias = aliasText
		if len(texts) == 1 {
			t := bytes.TrimSpace([]byte(texts[0]))
			if len(t) > 0 && (t[0] == '{' || t[0] == '[') && json.Valid(t) {
				a.settle.Alias = aliasDetails
				out = append(append(out, `,"details":`...), t...)
			}
		}
	}
	if refusal := a.fill(append(out, '}'), result); refusal != nil {
		refusal.Tool = env.Tool
		return a, refusal
	}
	return a, nil
}

func (s *blockStore) failure(te *ToolError) answer {
	a := answer{status: te.Code, toolID: idOf(te.Tool), settle: settleFrame{Alias: aliasNone}}
	e := struct {
		Code    string          `json:"code"`
		Message string          `json:"message"`
		Tool    json.RawMessage `json:"tool,omitempty"`
		Result  json.RawMessage `json:"result,omitempty"`
	}{Code: te.Code, Message: te.Message}
	if json.Valid(te.Tool) {
		e.Tool = te.Tool
	}
	if json.Valid(te.Result) {
		e.Result = s.replaceBlocks(te.Result)
	}
	if len(e.Message) > MaxResultBytes/4 {
		e.Message = strings.ToValidUTF8(e.Message[:MaxResultBytes/4], "") + " …"
	}
	for {
		b, err := json.Marshal(e)
		if err == nil && a.fill(b, nil) == nil {
			return a
		}
		e.Tool, e.Result = nil, nil // too large: the message alone
	}
}

// fill sets the JSON of an answer, or says why a program cannot have it.
// result is the part that the limit is about; nil: all.
func (a *answer) fill(b, result []byte) *ToolError {
	if result == nil {
		result = b
	}
	if len(result) > MaxResultBytes || len(b) > maxFrame-1024 {
		return &ToolError{Code: "failed", Message: fmt.Sprintf("the result is %s of JSON, a program can take %s; the tool has run; ask it for less: a page, fewer fields, a narrower query", byteSize(len(result)), byteSize(MaxResultBytes))}
	}
	depth, large := survey(b)
	if depth > maxNesting {
		return &ToolError{Code: "failed", Message: fmt.Sprintf("the result is nested %d levels deep, a program can take %d; the tool has run", depth, maxNesting)}
	}
	a.settle.JSON = b
	if large {
		for a.settle.Big == "" || bytes.Contains(b, []byte(a.settle.Big)) {
			a.settle.Big = "int" + strconv.FormatUint(rand.Uint64(), 36) + ":"
		}
		a.settle.JSON = quoteLarge(b, a.settle.Big)
	}
	return nil
}

func idOf(tool json.RawMessage) string {
	var t struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(tool, &t)
	return t.ID
}

func textsOf(content []json.RawMessage) []string {
	var texts []string
	for _, c := range content {
		var b struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(c, &b) == nil && b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return texts
}

// replaceBlocks keeps the binary content blocks of a result and puts
// references in place of large ones.
func (s *blockStore) replaceBlocks(result json.RawMessage) json.RawMessage {
	var r struct {
		Content []json.RawMessage `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil {
		return result
	}
	changed := false
	for i, raw := range r.Content {
		if ref := s.keep(raw); ref != nil {
			r.Content[i], changed = ref, true
		}
	}
	if !changed {
		return result
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(result, &all) != nil {
		return result
	}
	var err error
	if all["content"], err = json.Marshal(r.Content); err != nil {
		return result
	}
	b, err := json.Marshal(all)
	if err != nil {
		return result
	}
	return b
}

// keep keeps a binary block. It returns what stands for it in the guest, or
// nil if the block stays as it is.
func (s *blockStore) keep(raw json.RawMessage) json.RawMessage {
	var b struct {
		Type     string `json:"type"`
		Data     string `json:"data"`
		MimeType string `json:"mimeType"`
		Resource struct {
			URI      string `json:"uri"`
			Blob     string `json:"blob"`
			MimeType string `json:"mimeType"`
		} `json:"resource"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return nil
	}
	data, mime := b.Data, b.MimeType
	if b.Type == "resource" {
		data, mime = b.Resource.Blob, b.Resource.MimeType
	}
	if data == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := &keptBlock{}
	if len(raw) <= MaxBlockBytes && s.size+len(raw) <= 2*MaxBlockBytes {
		s.size += len(raw)
		kept.raw = bytes.Clone(raw)
	}
	if len(data) <= inlineBase64 {
		s.keys[data] = kept
		return nil
	}
	s.n++
	ref := fmt.Sprintf("content-block:%d", s.n)
	s.keys[ref] = kept
	out, err := json.Marshal(struct {
		Type     string `json:"type"`
		MimeType string `json:"mimeType"`
		Bytes    int    `json:"bytes"`
		Ref      string `json:"ref"`
		URI      string `json:"uri,omitempty"`
	}{b.Type, mime, len(strings.TrimRight(data, "=")) * 3 / 4, ref, b.Resource.URI})
	if err != nil {
		return nil
	}
	return out
}

// referredTo returns the blocks that a value names, each once, in order, and
// how many there was no room for.
func (s *blockStore) referredTo(value []byte) (blocks []json.RawMessage, skipped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.keys) == 0 {
		return nil, 0
	}
	seen := make(map[*keptBlock]bool)
	size := 0
	eachString(value, func(inner []byte) {
		k := s.keys[string(inner)]
		if k == nil || seen[k] {
			return
		}
		seen[k] = true
		if k.raw == nil || size+len(k.raw) > MaxBlockBytes {
			skipped++
			return
		}
		size += len(k.raw)
		blocks = append(blocks, k.raw)
	})
	return blocks, skipped
}

// The following scan JSON that is known to be valid.

// skipString returns the offset behind the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// eachString calls f with the inside of every string, as it is written.
func eachString(b []byte, f func(inner []byte)) {
	for i := 0; i < len(b); i++ {
		if b[i] == '"' {
			end := skipString(b, i)
			f(b[i+1 : end-1])
			i = end - 1
		}
	}
}

// survey measures JSON: how deep it is nested, and whether it holds integers
// that a JavaScript number cannot.
func survey(b []byte) (depth int, large bool) {
	level := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			i = skipString(b, i) - 1
		case c == '{' || c == '[':
			level++
			depth = max(depth, level)
		case c == '}' || c == ']':
			level--
		case c == '-' || c >= '0' && c <= '9':
			end := skipNumber(b, i)
			large = large || isLarge(b[i:end])
			i = end - 1
		}
	}
	return depth, large
}

// quoteLarge puts strings, prefix and digits, in place of large integers.
func quoteLarge(b []byte, prefix string) []byte {
	out := make([]byte, 0, len(b)+64)
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			end := skipString(b, i)
			out = append(out, b[i:end]...)
			i = end - 1
		case c == '-' || c >= '0' && c <= '9':
			end := skipNumber(b, i)
			if n := b[i:end]; isLarge(n) {
				out = append(append(append(append(out, '"'), prefix...), n...), '"')
			} else {
				out = append(out, n...)
			}
			i = end - 1
		default:
			out = append(out, c)
		}
	}
	return out
}

func skipNumber(b []byte, i int) int {
	for i < len(b) && (b[i] >= '0' && b[i] <= '9' || b[i] == '-' || b[i] == '+' || b[i] == '.' || b[i] == 'e' || b[i] == 'E') {
		i++
	}
	return i
}

// isLarge tells whether a number is an integer outside of ±(2^53−1).
func isLarge(n []byte) bool {
	if len(n) < 16 || bytes.ContainsAny(n, ".eE") {
		return false
	}
	v, err := strconv.ParseInt(string(n), 10, 64)
	return err != nil || v > 1<<53-1 || v < -(1<<53-1)
}
