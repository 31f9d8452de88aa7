package upstreams

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
)

const (
	minReopen  = time.Second // pauses before a broken stream is opened again
	maxReopen  = 30 * time.Second
	minRetry   = 100 * time.Millisecond // of what a server may ask for
	maxResumes = 5                      // of the stream of one call, without a new event
)

// stream is an event stream of the server as the body that the SDK reads:
// without progress, noise and raw answers, and going on where it broke. One
// goroutine at a time uses it.
type stream struct {
	link    *httpLink
	ctx     context.Context
	header  http.Header // of the request, to open it again
	request *exchange   // whose answer ends it; nil: it belongs to no request
	older   bool        // it cannot be opened again
	max     int         // bytes of an event
	release func()      // nil, or called by Close
	forget  func()      // likewise

	body   io.ReadCloser // nil while it is not open
	events eventReader
	opened bool
	last   string        // id of the last event
	retry  time.Duration // what the server asked for; 0: nothing
	tries  int           // to open it, since the last event
	why    error         // it broke

	out  bytes.Buffer // for the SDK
	done bool
}

// Read implements [io.Reader].
func (s *stream) Read(p []byte) (int, error) {
	for s.out.Len() == 0 && !s.done {
		if s.request == nil || !s.request.answered() {
			s.pull()
			continue
		}
		// A raw answer: what becomes of it is told beside the SDK.
		s.done = true
		o := <-s.request.answer
		wire.Deliver(s.ctx, o.result, o.err)
		s.show(wire.Envelope{ID: s.request.ID})
	}
	return s.out.Read(p)
}

// Close implements [io.Closer].
func (s *stream) Close() error {
	s.shut()
	for _, f := range []func(){s.release, s.forget} {
		if f != nil {
			f()
		}
	}
	return nil
}

func (s *stream) use(resp *http.Response) {
	s.body, s.events, s.opened = resp.Body, newEventReader(resp.Body, s.max), true
}

func (s *stream) shut() {
	if s.body != nil {
		s.body.Close()
		s.body = nil
	}
}

// end ends the session: it has the SDK open the stream anew, which listen
// answers with the reason.
func (s *stream) end(err error) {
	s.done = true
	s.out.WriteString("retry: 1\n\n")
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	s.link.over = err
	for _, x := range s.link.waiting {
		x.end(outcome{err: err})
	}
}

// pull does one step: it reads an event or opens the stream.
func (s *stream) pull() {
	if s.body == nil {
		s.open()
		return
	}
	ev, err := s.events.next()
	if err != nil {
		s.broke(err)
		return
	}
	if s.request == nil || ev.id != "" && ev.id != s.last {
		s.tries = 0
	}
	if ev.id != "" {
		s.last = ev.id
	}
	if ev.retry > 0 {
		s.retry = min(max(ev.retry, minRetry), maxReopen)
	}
	if len(ev.data) > 0 && (ev.name == "" || ev.name == "message") {
		s.take(ev.data)
	}
}

// broke deals with the end of an open stream.
func (s *stream) broke(err error) {
	s.shut()
	switch {
	case !errors.Is(err, io.EOF):
	case s.request == nil:
		err = errors.New("the server closed the event stream")
	default:
		err = errors.New("the server closed the stream without an answer")
	}
	s.why = s.link.caller.broken(s.ctx, err)
	s.tries++
	switch {
	case s.older:
		s.end(s.why)
	case s.request == nil:
	case s.last == "" || s.tries > maxResumes || s.ctx.Err() != nil || errors.Is(err, ErrTooLarge):
		s.request.end(outcome{err: s.why})
	}
}

// open opens the stream, after a pause if it is not the first time. No session
// ends because there is no such stream, or not now.
func (s *stream) open() {
	pause := s.retry
	switch {
	case s.tries == 0:
		pause = 0
	case pause == 0:
		pause = min(minReopen<<min(s.tries-1, 5), maxReopen)
	}
	select {
	case <-time.After(pause):
	case <-s.ctx.Done():
		s.stop()
		return
	}
	header := s.header.Clone()
	header.Del("Content-Type")
	header.Set("Accept", eventStream)
	if s.last != "" {
		header.Set(lastEventID, s.last)
	}
	status := 0
	resp, err := s.link.caller.do(s.ctx, http.MethodGet, s.link.caller.url, header, nil)
	if err == nil {
		if status = resp.StatusCode; status == http.StatusOK && mediaType(resp) == eventStream {
			s.use(resp)
			return
		}
		resp.Body.Close()
	}
	s.tries++
	switch {
	case s.request != nil:
		s.request.end(outcome{err: s.why})
	case status == 0 || status >= 500 || status == http.StatusTooManyRequests:
	case s.opened && status == http.StatusNotFound && header.Get(sessionHeader) != "":
		s.end(fmt.Errorf("%w: %w", ErrLost, mcp.ErrSessionMissing))
	default: // the server offers none
		<-s.ctx.Done()
		s.stop()
	}
}

// stop ends the stream because its ctx has ended.
func (s *stream) stop() {
	s.done = true
	if s.request != nil {
		s.request.end(outcome{err: context.Cause(s.ctx)})
	}
}

// take handles one message from the server.
func (s *stream) take(text []byte) {
	l := s.link
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	e, err := wire.ParseEnvelope(text)
	switch {
	case err != nil:
		l.report(text, err.Error())
	case e.Request && e.ID == nil && e.Method == "notifications/progress" && l.progress != nil:
		l.progress(e.Params)
	case e.Request:
		if _, err := jsonrpc.DecodeMessage(e.Bytes()); err != nil {
			l.report(text, err.Error()) // an id that the SDK cannot read
			return
		}
		s.show(e)
	default:
		x := s.request // an error without id is one of the request as a whole
		if e.ID != nil {
			x = nil
			if m, err := e.Message(); err == nil {
				l.mu.Lock()
				x = l.waiting[m.(*jsonrpc.Response).ID]
				l.mu.Unlock()
			}
		}
		switch {
		case x == nil:
			l.report(text, "an answer to nothing that was asked")
		case e.Error != nil:
			x.end(outcome{err: wire.ParseError(e.Error)})
		default:
			x.end(outcome{result: e.Result})
		}
	}
}

// show has the SDK see a message.
func (s *stream) show(e wire.Envelope) { fmt.Fprintf(&s.out, "data: %s\n\n", e.Bytes()) }

// event is one server-sent event.
type event struct {
	name  string // "" means message
	id    string
	data  []byte
	retry time.Duration // 0: not said
}

// eventReader reads events of at most max bytes.
type eventReader struct {
	in  *bufio.Reader
	max int
}

func newEventReader(r io.Reader, max int) eventReader {
	return eventReader{bufio.NewReaderSize(r, 32<<10), max}
}

// next returns the next event, at the end io.EOF. A last event without the
// blank line that should end it counts too.
func (r eventReader) next() (e event, err error) {
	size, field, data := 0, false, false // e holds something; data
	for {
		line, err := r.line(r.max - size)
		if errors.Is(err, ErrTooLarge) {
			return event{}, fmt.Errorf("%w: an event of more than %d bytes", ErrTooLarge, r.max)
		}
		size += len(line)
		if len(line) > 0 {
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(name) {
			case "event":
				e.name, field = string(value), true
			case "id":
				e.id, field = string(value), true
			case "data":
				if data {
					e.data = append(e.data, '\n')
				}
				e.data, data, field = append(e.data, value...), true, true
			case "retry":
				if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
					e.retry, field = time.Duration(ms)*time.Millisecond, true
				}
			}
		}
		switch {
		case field && (len(line) == 0 || err != nil):
			return e, nil
		case err != nil:
			return event{}, err
		case len(line) == 0:
			size = 0
		}
	}
}

// line reads a line without its end. With an error it returns what there was
// before it.
func (r eventReader) line(max int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		if len(line)+len(part) > max+2 {
			return nil, ErrTooLarge
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}
