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

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	eventStream = "text/event-stream"

	minReopen  = time.Second // pauses before a broken stream is opened again
	maxReopen  = 30 * time.Second
	minRetry   = 100 * time.Millisecond // of what a server may ask for
	maxResumes = 5                      // of the stream of one call, without a new event
)

// follow reads an event stream, at most limit bytes an event, and opens it again
// where it broke: that of the answer to x, until that is there or lost, or
// that of messages that belong to no request (nil), until ctx ends or the
// server does not offer one. If resp is nil it opens the stream first.
func (l *httpLink) follow(ctx context.Context, header http.Header, resp *http.Response, x *exchange, limit int) error {
	header = header.Clone()
	header.Del("Content-Type")
	header.Set("Accept", eventStream)
	var retry time.Duration
	var broke error
	opened := false
	for tries := 0; ctx.Err() == nil; tries++ {
		if resp == nil {
			pause := retry
			if retry == 0 {
				pause = min(minReopen<<min(tries, 6)/2, maxReopen)
			}
			if tries > 0 {
				sleep(ctx, pause)
			}
			var err error
			resp, err = l.caller.do(ctx, http.MethodGet, l.caller.url, header, nil)
			if err == nil && (resp.StatusCode != http.StatusOK || mediaType(resp) != eventStream) {
				resp.Body.Close()
				if x == nil && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
					if opened && resp.StatusCode == http.StatusNotFound && header.Get(sessionHeader) != "" {
						l.end(mcp.ErrSessionMissing)
					}
					return nil
				}
				resp = nil
			}
		}
		if resp == nil && x == nil {
			continue
		}
		if resp == nil {
			return l.caller.broken(ctx, broke)
		}
		opened = true
		before := header.Get(lastEventID)
		broke = readEvents(resp.Body, limit, func(ev event) bool {
			if ev.id != "" {
				header.Set(lastEventID, ev.id)
			}
			if ev.retry > 0 {
				retry = min(max(ev.retry, minRetry), maxReopen)
			}
			if x == nil || header.Get(lastEventID) != before {
				tries = 0
			}
			if ev.isMessage() {
				l.take(ev.data, x)
			}
			return x == nil || !x.answered()
		})
		resp.Body.Close()
		resp = nil
		if x == nil {
			continue
		}
		if x.answered() {
			return nil
		}
		if broke == nil {
			broke = errors.New("the server closed the stream without an answer")
		}
		if header.Get(lastEventID) == "" || tries >= maxResumes || errors.Is(broke, ErrTooLarge) {
			return l.caller.broken(ctx, broke)
		}
	}
	return context.Cause(ctx)
}

// event is one server-sent event.
type event struct {
	name  string // "" means message
	id    string
	data  []byte
	retry time.Duration // 0: not said
}

func (e *event) isMessage() bool { return len(e.data) > 0 && (e.name == "" || e.name == "message") }

// readEvents calls visit for each event of a stream, at most max bytes each,
// until visit returns false or the stream ends. A last event without the
// blank line that should end it counts too.
func readEvents(r io.Reader, max int, visit func(event) bool) error {
	in := bufio.NewReaderSize(r, 32<<10)
	var (
		e     event
		size  int
		field bool // e holds something
		data  bool
	)
	for {
		line, err := eventLine(in, max-size)
		if errors.Is(err, ErrTooLarge) {
			return fmt.Errorf("%w: an event of more than %d bytes", ErrTooLarge, max)
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
		if (len(line) == 0 || err != nil) && field {
			if !visit(e) {
				return nil
			}
			e, field, data = event{}, false, false
		}
		if len(line) == 0 {
			size = 0
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// eventLine reads a line without its end. With an error it returns what there
// was before it.
func eventLine(in *bufio.Reader, max int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > max+2 {
			return nil, ErrTooLarge
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}
