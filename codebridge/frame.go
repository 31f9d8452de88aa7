package codebridge

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Parent and child speak in frames: four bytes big-endian length of what
// follows, one byte type, payload. Both sides distrust the other's lengths;
// the parent distrusts everything a child says, because a program that broke
// out of the engine would speak with its voice.
type frameType byte

const (
	// parent to child
	frameInit   frameType = 'I' // initFrame; the first
	frameRun    frameType = 'R' // runFrame
	frameSettle frameType = 'S' // settleFrame, see encodeSettle
	frameTest   frameType = 'T' // asks testHook; unknown outside of tests

	// child to parent
	frameHello frameType = 'h' // helloFrame; before the engine is loaded
	frameReady frameType = 'r' // readyFrame; a fresh runtime waits for a program
	frameLog   frameType = 'l' // a JSON string: one line of the console
	frameDrop  frameType = 'n' // a number: lines dropped so far
	frameCall  frameType = 'c' // "<id> <fn> <JSON array>"
	frameIdle  frameType = 'i' // a number: answers taken in; all jobs are done
	frameValue frameType = 'v' // the body returned: outcome
	frameDone  frameType = 'd' // the program ended: doneFrame
)

// maxFrame holds the largest honest frame: a result of MaxResultBytes with
// its tool and details, or a value of the largest maxOutputBytes.
const maxFrame = 4 << 20

type frame struct {
	typ     frameType
	payload []byte
}

var errFrameSize = errors.New("frame length out of range")

// readFrame reads one frame. Memory grows with what really arrives, not with
// the length that is claimed.
func readFrame(r *bufio.Reader, limit int) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(head[:4])
	if n < 1 || uint64(n) > uint64(limit) {
		return frame{}, fmt.Errorf("%w: %d", errFrameSize, n)
	}
	f := frame{typ: frameType(head[4])}
	if n == 1 {
		return f, nil
	}
	rest := int64(n) - 1
	var buf bytes.Buffer
	buf.Grow(int(min(rest, 64<<10)))
	got, err := buf.ReadFrom(io.LimitReader(r, rest))
	if err == nil && got < rest {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return frame{}, err
	}
	f.payload = buf.Bytes()
	return f, nil
}

// encodeFrame returns the bytes of a frame, to be written in one piece.
func encodeFrame(typ frameType, payload ...[]byte) []byte {
	n := 1
	for _, p := range payload {
		n += len(p)
	}
	b := make([]byte, 0, 4+n)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = append(b, byte(typ))
	for _, p := range payload {
		b = append(b, p...)
	}
	return b
}

// initFrame is the first thing a child is told.
type initFrame struct {
	CacheDir    string // "": none
	MemoryBytes int
}

// helloFrame is the first thing a child says.
type helloFrame struct {
	Build string // see buildID
}

// readyFrame says that a program may come.
type readyFrame struct {
	Missing []string // parts of the confinement that this system lacks
}

// runFrame is one program.
type runFrame struct {
	Source    string
	MaxOutput int
	MaxArgs   int
	Seed      [4]uint32 // for Math.random
}

// outcome is what the guest says when the body has ended.
type outcome struct {
	OK      bool
	Nothing bool        // the value is undefined
	Value   rawJSON     // if OK and not Over
	Over    *oversize   // if the value is too large
	Error   *guestError // if not OK
}

// oversize describes a value over the output limit.
type oversize struct {
	Bytes int
	More  bool   // counting was given up
	Shape string // keys and counts
}

// guestError is an exception as the guest tells it.
type guestError struct {
	Name    string
	Message string
	Stack   string
	Code    string // of a ToolError
	Thrown  bool   // no Error object, Message is a preview of what was thrown
}

// doneFrame is the last word about a program.
type doneFrame struct {
	Error    *Error   // nil: it ended well
	Unwaited []string // calls that the body did not wait for
	Dropped  int      // log lines not sent
	Silent   bool     // it told nothing: no value, no line, and no return in its text
	Reuse    bool     // the child can take another program
}

// settleFrame hands one answer to the guest.
type settleFrame struct {
	ID    int
	OK    bool
	Alias byte   // which part of the result details is: see the alias constants
	Big   string // prefix of strings that stand for large integers; "": none
	JSON  []byte
}

const (
	aliasNone       byte = '-' // not a tool's result
	aliasStructured byte = 's' // result.structuredContent
	aliasDetails    byte = 'd' // the member "details" beside tool and result
	aliasText       byte = 't' // the texts of result.content, joined
)

func encodeSettle(s settleFrame) []byte {
	head := make([]byte, 0, 8+len(s.Big))
	head = binary.BigEndian.AppendUint32(head, uint32(s.ID))
	ok := byte(0)
	if s.OK {
		ok = 1
	}
	head = append(head, ok, s.Alias, byte(len(s.Big)))
	head = append(head, s.Big...)
	return encodeFrame(frameSettle, head, s.JSON)
}

func decodeSettle(b []byte) (settleFrame, error) {
	if len(b) < 7 || len(b) < 7+int(b[6]) {
		return settleFrame{}, errors.New("answer frame too short")
	}
	big := 7 + int(b[6])
	return settleFrame{
		ID:    int(binary.BigEndian.Uint32(b)),
		OK:    b[4] == 1,
		Alias: b[5],
		Big:   string(b[7:big]),
		JSON:  b[big:],
	}, nil
}
