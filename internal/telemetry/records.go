package telemetry

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Origin is what every record says of the session it belongs to.
type Origin struct {
	Session string `json:"session"`           // of NewSession
	Client  string `json:"client,omitempty"`  // clientInfo.name
	Profile string `json:"profile,omitempty"` // "" for none
}

// NewSession returns a random id for a session.
func NewSession() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// The records of contract 10. Sizes are bytes, times milliseconds. They hold
// counts and names; nothing in them can hold arguments, results or queries.

// Session is written at the first tools/list and after each change of it.
type Session struct {
	Mode              string         `json:"mode"`
	CatalogSize       int            `json:"catalogSize"`
	Sources           map[string]int `json:"sources"` // tools by source: mcp, core, client
	ToolsListed       int            `json:"toolsListed"`
	ToolsListBytes    int            `json:"toolsListBytes"`
	InstructionsBytes int            `json:"instructionsBytes"`
	DirectBytes       int            `json:"directBytes"` // if every tool were listed
}

// Search is one search; each query of a batch is one.
type Search struct {
	QueryLength int   `json:"queryLength"` // characters
	Hits        int   `json:"hits"`
	MS          int64 `json:"ms"`
	Bytes       int   `json:"bytes"` // of the answer
}

// Describe is one tool_describe.
type Describe struct {
	ID    string `json:"id,omitempty"` // "" if nothing was found
	MS    int64  `json:"ms"`
	Bytes int    `json:"bytes"`
}

// Code is one run of a script.
type Code struct {
	MS        int64  `json:"ms"`
	ErrorKind string `json:"errorKind,omitempty"` // as in the answer's error.kind; "" for a good run
	Calls     int    `json:"calls"`
	Bytes     int    `json:"bytes"`
}

// Call is one call of an upstream tool.
type Call struct {
	ID            string `json:"id"`
	Source        string `json:"source"`
	SourceName    string `json:"sourceName"`
	Status        string `json:"status,omitempty"` // of contract 4; "" for success
	MS            int64  `json:"ms"`
	ArgumentBytes int    `json:"argumentBytes"`
	ResultBytes   int    `json:"resultBytes"`
	Via           string `json:"via"`              // tool_call, code, direct, hydrated
	Parent        string `json:"parent,omitempty"` // the script's call, inside of scripts
}

// Block is a call that was refused, also for a tool that policy hides.
type Block struct {
	ID     string `json:"id"`
	Layer  string `json:"layer"`
	Reason string `json:"reason"`
}

// Log appends records to a JSON Lines file. A nil *Log is off. It is safe for
// concurrent use, and several processes may write one file. A record that
// cannot be written is lost; the first time, that is logged.
type Log struct {
	file   *os.File
	log    *slog.Logger
	failed sync.Once
}

// Open opens or creates the file, readable by its owner alone. A nil logger
// is silent.
func Open(path string, log *slog.Logger) (*Log, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("telemetry log: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			log.Warn("telemetry log is readable by others", "file", path, "err", err)
		}
	}
	return &Log{file: f, log: log}, nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// Session writes a record of kind session.
func (l *Log) Session(o Origin, r Session) {
	l.write(struct {
		head
		Session
	}{newHead(o, "session"), r})
}

// Search writes a record of kind search.
func (l *Log) Search(o Origin, r Search) {
	l.write(struct {
		head
		Search
	}{newHead(o, "search"), r})
}

// Describe writes a record of kind describe.
func (l *Log) Describe(o Origin, r Describe) {
	l.write(struct {
		head
		Describe
	}{newHead(o, "describe"), r})
}

// Code writes a record of kind code.
func (l *Log) Code(o Origin, r Code) {
	l.write(struct {
		head
		Code
	}{newHead(o, "code"), r})
}

// Call writes a record of kind call.
func (l *Log) Call(o Origin, r Call) {
	l.write(struct {
		head
		Call
	}{newHead(o, "call"), r})
}

// Block writes a record of kind block.
func (l *Log) Block(o Origin, r Block) {
	l.write(struct {
		head
		Block
	}{newHead(o, "block"), r})
}

type head struct {
	Time time.Time `json:"time"`
	Origin
	Kind string `json:"kind"`
}

func newHead(o Origin, kind string) head { return head{time.Now().UTC(), o, kind} }

// write appends one record in one write, so that records of several
// processes do not mix.
func (l *Log) write(record any) {
	if l == nil {
		return
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(record)
	if err == nil {
		_, err = printable{l.file}.Write(line.Bytes())
	}
	if err != nil {
		l.failed.Do(func() { l.log.Error("telemetry log is not written, records are lost", "err", err) })
	}
}
