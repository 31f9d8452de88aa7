package upstreams

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// event is one server-sent event.
type event struct {
	name  string // "" means message
	id    string
	data  []byte
	retry time.Duration // 0: not said
}

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
