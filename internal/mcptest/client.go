package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// Client speaks raw lines to an MCP server, usually ours, and keeps all that
// comes back. It never answers by itself.
type Client struct {
	t testing.TB
	w io.WriteCloser

	// Timeout of all waits. Under testing/synctest it is virtual.
	Timeout time.Duration

	// mu guards the following.
	mu       sync.Mutex
	messages []Message
	seen     []bool // messages that Next has returned
	broken   []string
	ended    bool
	arrived  chan struct{} // closed and replaced at each line, and at the end
	lastID   int
}

// NewClient reads lines from r until it ends and writes to w.
func NewClient(t testing.TB, r io.Reader, w io.WriteCloser) *Client {
	c := &Client{t: t, w: w, Timeout: 30 * time.Second, arrived: make(chan struct{})}
	go c.read(r)
	return c
}

// Pipe makes a client and the two streams of the server it talks to. All ends
// when the client is closed; the test's end closes it.
func Pipe(t testing.TB) (c *Client, serverIn io.ReadCloser, serverOut io.WriteCloser) {
	in, w := io.Pipe()
	r, out := io.Pipe()
	c = NewClient(t, r, w)
	t.Cleanup(func() { _ = c.Close() })
	return c, in, out
}

// Start starts a command and returns a client of its stdin and stdout. The
// process is killed at the end of the test if it still runs.
func Start(t testing.TB, cmd *exec.Cmd) *Client {
	t.Helper()
	w, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return NewClient(t, r, w)
}

func (c *Client) read(r io.Reader) {
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		c.mu.Lock()
		if len(bytes.TrimSpace(line)) > 0 {
			if m, bad := parseMessage(line); bad == nil {
				c.messages, c.seen = append(c.messages, m), append(c.seen, false)
			} else {
				c.broken = append(c.broken, string(line))
			}
		}
		c.ended = err != nil
		close(c.arrived)
		c.arrived = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Send writes one line as it is.
func (c *Client) Send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.w, line+"\n"); err != nil {
		c.t.Fatalf("sending %.200s: %v", line, err)
	}
}

// Request sends a request with a fresh id, which it returns.
func (c *Client) Request(method, params string) (id string) {
	c.t.Helper()
	c.mu.Lock()
	c.lastID++
	id = fmt.Sprint(c.lastID)
	c.mu.Unlock()
	if params == "" {
		params = "{}"
	}
	c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

// Notify sends a notification.
func (c *Client) Notify(method, params string) {
	c.t.Helper()
	if params == "" {
		params = "{}"
	}
	c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// Call sends a request and waits for its answer.
func (c *Client) Call(method, params string) Message {
	c.t.Helper()
	return c.Answer(c.Request(method, params))
}

// Answer waits for the answer to a request.
func (c *Client) Answer(id string) Message {
	c.t.Helper()
	return c.Next("the answer to request "+id, func(m Message) bool { return m.Method == "" && string(m.ID) == id })
}

// Result is Call for a request that must succeed; it returns the result.
func (c *Client) Result(method, params string) json.RawMessage {
	c.t.Helper()
	m := c.Call(method, params)
	if m.Error != nil {
		c.t.Fatalf("%s %.200s: error %s", method, params, m.Error)
	}
	return m.Result
}

// Initialize is the handshake of a client with this name (2025-11-25, no
// capabilities). It returns the result of initialize.
func (c *Client) Initialize(name string) json.RawMessage {
	c.t.Helper()
	r := c.Result("initialize", fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}`, name))
	c.Notify("notifications/initialized", "")
	return r
}

// Next waits for the first message that fits and was not returned before;
// what says in words what is waited for.
func (c *Client) Next(what string, fits func(Message) bool) Message {
	c.t.Helper()
	timeout := time.NewTimer(c.Timeout)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		for i, m := range c.messages {
			if !c.seen[i] && fits(m) {
				c.seen[i] = true
				c.mu.Unlock()
				return m
			}
		}
		ended, arrived := c.ended, c.arrived
		c.mu.Unlock()
		if ended {
			c.t.Fatalf("the server's output ended while waiting for %s", what)
		}
		select {
		case <-arrived:
		case <-timeout.C:
			c.t.Fatalf("waited %v for %s", c.Timeout, what)
		}
	}
}

// Messages returns all messages so far.
func (c *Client) Messages() []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Message(nil), c.messages...)
}

// Broken returns the lines so far that were not JSON.
func (c *Client) Broken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.broken...)
}

// Close ends the server's input.
func (c *Client) Close() error { return c.w.Close() }

// AwaitEnd waits until the server's output ends.
func (c *Client) AwaitEnd() {
	c.t.Helper()
	timeout := time.NewTimer(c.Timeout)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		ended, arrived := c.ended, c.arrived
		c.mu.Unlock()
		if ended {
			return
		}
		select {
		case <-arrived:
		case <-timeout.C:
			c.t.Fatalf("the server's output did not end within %v", c.Timeout)
		}
	}
}
