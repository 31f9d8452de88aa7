package mcptest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Listen serves the streamable HTTP face on 127.0.0.1 until the test ends and
// returns its URL.
func (s *Server) Listen(t testing.TB) string {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Drop() // ends event streams, for which Close would wait
		srv.Close()
	})
	return srv.URL + "/mcp"
}

// ServeHTTP is the streamable HTTP face at any path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b := s.script.HTTPBearer; b != "" && r.Header.Get("Authorization") != "Bearer "+b {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r)
	case http.MethodGet:
		s.stream(w, r)
	case http.MethodDelete:
		if c := s.session(r); c != nil {
			c.end()
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

const sessionHeader = "Mcp-Session-Id"

func (s *Server) session(r *http.Request) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[r.Header.Get(sessionHeader)]
}

func (s *Server) newSession() (*conn, string) {
	s.mu.Lock()
	s.opened++
	id := fmt.Sprintf("session-%d", s.opened)
	s.mu.Unlock()
	events := make(chan []byte, 64) // what no stream has taken yet
	c := s.open(
		func(line []byte) {
			select {
			case events <- line:
			default: // nobody listens: dropped, as a real server does
			}
		},
		func() {
			s.mu.Lock()
			delete(s.sessions, id)
			s.mu.Unlock()
		})
	c.events = events
	s.mu.Lock()
	s.sessions[id] = c
	s.mu.Unlock()
	return c, id
}

func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m, err := parseMessage(body)
	if err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	s.note(m)
	c := s.session(r)
	if m.Method == "initialize" {
		var id string
		c, id = s.newSession()
		w.Header().Set(sessionHeader, id)
	}
	if c == nil {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	if m.Method == "" || len(m.ID) == 0 {
		c.heed(m)
		w.WriteHeader(http.StatusAccepted)
		return
	}

	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	answered := false
	send := func(m Message) { answered = true; writeEvent(w, m.encode()) }
	if s.script.HTTPJSON {
		send = func(m Message) {
			if m.Method == "" {
				answered = true
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(m.encode())
			}
		}
	}
	c.answer(ctx, m, send)
	if !answered {
		panic(http.ErrAbortHandler) // the connection breaks without an answer
	}
}

// stream carries the messages that belong to no request.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	c := s.session(r)
	if c == nil {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case line := <-c.events:
			writeEvent(w, line)
		case <-c.ctx.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

func writeEvent(w http.ResponseWriter, data []byte) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", strings.ReplaceAll(string(data), "\n", ""))
	_ = http.NewResponseController(w).Flush()
}
