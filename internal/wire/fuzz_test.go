package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func FuzzClientReader(f *testing.F) {
	for _, s := range []string{"", "x", "{", `{"jsonrpc":"2.0","id":1,"result":{}`, "\xEF\xBB\xBF{}", `[{"a":"\`, "Content-Length: 5\r\n\r\n{}", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, junk []byte) {
		in := io.MultiReader(bytes.NewReader(junk), strings.NewReader("\n"+`{"jsonrpc":"2.0","id":424242,"result":{}}`))
		c, err := NewClientTransport(io.NopCloser(in), &syncBuffer{}, Options{MaxLine: 1000}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for {
			m, err := c.Read(t.Context())
			if err != nil {
				t.Fatalf("after %q: %v, want the answer", junk, err)
			}
			if r, ok := m.(*jsonrpc.Response); ok && r.ID.Raw() == int64(424242) {
				return
			}
		}
	})
}

func FuzzServerReader(f *testing.F) {
	for _, s := range []string{"", "x", "{", "[]", `{"jsonrpc":"2.0","id":1,"method":"a"}{`, "Content-Length: 2\r\n\r\n{}", "content-type:\n\n", "\xEF\xBB\xBF\r\n5"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out syncBuffer
		c, err := NewServerTransport(io.NopCloser(bytes.NewReader(in)), &out, Options{MaxLine: 1000}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for {
			m, err := c.Read(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("Read() = %v, want messages and io.EOF", err)
			}
			if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
				go c.Write(t.Context(), &jsonrpc.Response{ID: r.ID})
			}
		}
		if strings.HasPrefix(out.String(), "Content-Length") {
			return
		}
		for s := bufio.NewScanner(strings.NewReader(out.String())); s.Scan(); {
			if _, err := ParseEnvelope(s.Bytes()); err != nil {
				t.Fatalf("for %q we wrote %s: %v", in, s.Text(), err)
			}
		}
	})
}

func FuzzParseEnvelope(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":[1]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"\n"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := ParseEnvelope(in)
		if err != nil {
			return
		}
		again, err := ParseEnvelope(e.Bytes())
		if err != nil {
			t.Fatalf("ParseEnvelope(Bytes()) of %q: %v", in, err)
		}
		if !e.Request && e.Error != nil {
			e.Result = nil // an error wins
		}
		if !bytes.Contains(in, []byte("\n")) && !cmp.Equal(e, again) {
			t.Fatalf("round trip of %q (-want +got):\n%s", in, cmp.Diff(e, again))
		}
	})
}

func BenchmarkParseEnvelope(b *testing.B) {
	for _, size := range []int{100, 1 << 20} {
		in := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("lorem ipsum ", size/12) + `"}]}}`)
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseEnvelope(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
