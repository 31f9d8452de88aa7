package directory

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	bluge "github.com/blugelabs/bluge/index"
	segment "github.com/blugelabs/bluge_segment_api"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// index keeps the words of one profile's tools in bluge and hands out
// snapshots of them. It uses bluge's inverted index alone: which tool has
// which word how often. Statistics and formula are ours (rank.go), because
// bluge's are wrong after merges (docs/rationale.md).
type index struct {
	log    *slog.Logger
	writer *bluge.Writer // nil: bluge did not open, searches find names alone

	// mu guards the following
	mu     sync.Mutex
	closed bool
	docs   map[string]*doc // by tool id
	slots  []*doc          // by slot; 0 is never used, nil is free
	free   []uint32        // slots to use again
	vocab  *vocabulary
	names  *nameIndex
	length int             // sum of the tools' lengths
	means  vectorSum       // of the tools' mean vectors
	kept   <-chan struct{} // closed by bluge when it is done with the last batch; nil before
}

// doc is one tool in the index, immutable.
type doc struct {
	tool     *upstreams.Tool
	server   upstreams.ServerInfo
	slot     uint32
	length   int    // weighted number of words
	names    int    // different words in its name
	plain    string // its name without case and separators
	destroys bool   // destroys things, by its own words
	mean     smallVector
}

func newIndex(log *slog.Logger) *index {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ix := &index{
		log:   log,
		docs:  make(map[string]*doc),
		slots: []*doc{nil},
		vocab: &vocabulary{},
		names: &nameIndex{},
	}
	config := bluge.InMemoryOnlyConfig().WithUnsafeBatches().WithNormCalc(
		func(_ string, length int) float32 { return math.Float32frombits(uint32(length)) })
	config.NumAnalysisWorkers = 1
	config.AsyncError = func(err error) { log.Warn("search index", "err", err) }
	w, err := bluge.OpenWriter(config)
	if err != nil {
		log.Error("search index does not open; only names are found", "err", err)
		return ix
	}
	ix.writer = w
	return ix
}

// update makes tools the content of the index and returns a snapshot of it.
// Only what changed is written, in one batch.
func (ix *index) update(tools []*upstreams.Tool, servers []upstreams.ServerInfo) *ranker {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed {
		return &ranker{vocab: &vocabulary{}, names: &nameIndex{}}
	}
	about := make(map[string]upstreams.ServerInfo, len(servers))
	for _, s := range servers {
		about[s.Name] = s
	}

	c := change{batch: bluge.NewBatch(), words: make(map[string]int)}
	seen := make(map[string]bool, len(tools))
	for _, t := range tools {
		if seen[t.ID] {
			continue
		}
		seen[t.ID] = true
		s := about[t.Server]
		switch old := ix.docs[t.ID]; {
		case old == nil:
			ix.insertLocked(&c, t, s)
		case !sameWords(old.tool, t) || !sameAbout(old.server, s):
			ix.removeLocked(&c, old)
			ix.insertLocked(&c, t, s)
		case old.tool != t:
			fresh := *old
			fresh.tool = t
			ix.docs[t.ID], ix.slots[old.slot] = &fresh, &fresh
		}
	}
	for id, d := range ix.docs {
		if !seen[id] {
			ix.removeLocked(&c, d)
			delete(ix.docs, id)
		}
	}
	// Slots given back in this update are used from the next one on.
	ix.free = append(ix.free, c.freed...)
	slices.Sort(ix.free)

	if ix.writer != nil && c.writes > 0 {
		kept := make(chan struct{})
		c.batch.SetPersistedCallback(func(error) { close(kept) })
		ix.kept = kept
		if err := ix.writer.Batch(c.batch); err != nil {
			ix.log.Error("search index", "err", err)
		}
	}
	ix.vocab = ix.vocab.apply(c.words)
	ix.names = ix.names.apply(c.namesGone, c.namesNew)
	return ix.snapshotLocked(servers)
}

// change is what one update does.
type change struct {
	batch               *bluge.Batch
	writes              int
	words               map[string]int // how many more tools have a word
	freed               []uint32
	namesGone, namesNew []nameKey

	analyzer analyzer
}

func (ix *index) insertLocked(c *change, t *upstreams.Tool, s upstreams.ServerInfo) {
	d, terms := newDoc(&c.analyzer, t, s)
	if n := len(ix.free); n > 0 {
		d.slot, ix.free = ix.free[n-1], ix.free[:n-1]
		ix.slots[d.slot] = d
	} else {
		d.slot = uint32(len(ix.slots))
		ix.slots = append(ix.slots, d)
	}
	ix.docs[t.ID] = d

	for _, t := range terms {
		c.words[t.word.term]++
	}
	ix.length += d.length
	ix.means.add(&d.mean, +1)
	c.batch.Insert(document{slotID(d.slot), &docField{d.slot, slices.Clone(terms)}})
	c.writes++
	c.namesNew = appendNames(c.namesNew, t, d.slot)
}

// newDoc reads a tool: all that ranking wants to know of it, and its words,
// which are good until the analyzer's next read.
func newDoc(a *analyzer, t *upstreams.Tool, s upstreams.ServerInfo) (*doc, []docTerm) {
	d := &doc{tool: t, server: s, plain: string(plainName(nil, t.Name)), destroys: destroys(t, a)}
	terms := a.read(t, s)
	for _, t := range terms {
		d.length += weigh(t.n)
		if t.n.in(inName) > 0 {
			d.names++
		}
	}
	d.mean = meanOf(terms)
	return d, terms
}

func (ix *index) removeLocked(c *change, d *doc) {
	for _, t := range c.analyzer.read(d.tool, d.server) {
		c.words[t.word.term]--
	}
	ix.length -= d.length
	ix.means.add(&d.mean, -1)
	ix.slots[d.slot] = nil
	c.freed = append(c.freed, d.slot)
	c.batch.Delete(slotID(d.slot))
	c.writes++
	c.namesGone = appendNames(c.namesGone, d.tool, d.slot)
}

func (ix *index) snapshotLocked(servers []upstreams.ServerInfo) *ranker {
	r := &ranker{
		docs:    slices.Clone(ix.slots),
		vocab:   ix.vocab,
		names:   ix.names,
		n:       len(ix.docs),
		servers: serverNames(servers),
	}
	if r.n > 0 {
		r.setLengths(float64(ix.length) / float64(r.n))
		r.common = ix.means.direction()
	}
	if ix.writer != nil {
		snapshot, err := ix.writer.Reader()
		if err != nil {
			ix.log.Error("search index", "err", err)
			return r
		}
		r.postings = &postings{snapshot: snapshot}
	}
	return r
}

func (ix *index) close() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed {
		return
	}
	ix.closed = true
	if ix.writer != nil {
		// bluge has a data race if it is closed while it copies a batch in the
		// background. That takes milliseconds; it must not hold us up for ever.
		if ix.kept != nil {
			select {
			case <-ix.kept:
			case <-time.After(2 * time.Second):
			}
		}
		if err := ix.writer.Close(); err != nil {
			ix.log.Warn("search index", "err", err)
		}
	}
}

// sameWords tells whether two definitions of a tool are the same to search.
func sameWords(a, b *upstreams.Tool) bool {
	return a == b || a.Name == b.Name && a.FullName == b.FullName && a.Server == b.Server && a.Safe == b.Safe &&
		a.Title == b.Title && a.Description == b.Description && string(a.InputSchema) == string(b.InputSchema) &&
		(a.Trust == upstreams.TrustNone) == (b.Trust == upstreams.TrustNone)
}

func sameAbout(a, b upstreams.ServerInfo) bool {
	return a.Title == b.Title && a.Description == b.Description && a.Instructions == b.Instructions
}

// postings is one state of the inverted index.
type postings struct {
	once     sync.Once
	snapshot *bluge.Snapshot
}

// each calls f with the slot and the counts of every tool that has term.
func (p *postings) each(term string, f func(slot uint32, n counts)) error {
	it, err := p.snapshot.PostingsIterator([]byte(term), wordsField, true, true, false)
	if err != nil {
		return fmt.Errorf("search index: word %q: %w", term, err)
	}
	for {
		hit, err := it.Next()
		if err != nil {
			return fmt.Errorf("search index: word %q: %w", term, err)
		}
		if hit == nil {
			return it.Close()
		}
		f(math.Float32bits(float32(hit.Norm())), counts(hit.Frequency()))
	}
}

func (p *postings) release() { p.once.Do(func() { _ = p.snapshot.Close() }) }

// Documents as bluge takes them: the id, and one field with the words. The
// field's "length", which bluge keeps a document as its norm, is the slot.

const wordsField = "w"

type document struct {
	id    docID
	words *docField
}

func (document) Analyze() {}

func (d document) EachField(visit segment.VisitField) {
	visit(d.id)
	visit(d.words)
}

// docID is a document's name in bluge, which knows a tool by its slot: a
// slot is given back only after its document is deleted.
type docID string

func slotID(slot uint32) docID { return docID(strconv.FormatUint(uint64(slot), 36)) }

func (docID) Field() string   { return "_id" }
func (id docID) Term() []byte { return []byte(id) }

func (docID) Name() string                        { return "_id" }
func (docID) Length() int                         { return 1 }
func (id docID) EachTerm(visit segment.VisitTerm) { visit(idTerm(id)) }
func (id docID) Value() []byte                    { return []byte(id) }
func (docID) Index() bool                         { return true }
func (docID) Store() bool                         { return false }
func (docID) IndexDocValues() bool                { return false }

type idTerm string

func (t idTerm) Term() []byte                       { return []byte(t) }
func (idTerm) Frequency() int                       { return 1 }
func (idTerm) EachLocation(_ segment.VisitLocation) {}

type docField struct {
	slot  uint32
	terms []docTerm
}

func (*docField) Name() string         { return wordsField }
func (f *docField) Length() int        { return int(f.slot) }
func (*docField) Value() []byte        { return nil }
func (*docField) Index() bool          { return true }
func (*docField) Store() bool          { return false }
func (*docField) IndexDocValues() bool { return false }

func (f *docField) EachTerm(visit segment.VisitTerm) {
	for i := range f.terms {
		visit(&f.terms[i])
	}
}

func (t *docTerm) Term() []byte                       { return t.word.bytes }
func (t *docTerm) Frequency() int                     { return int(t.n) }
func (*docTerm) EachLocation(_ segment.VisitLocation) {}

// destroys tells whether a tool destroys things: by its annotations, or by
// its name if those are silent.
func destroys(t *upstreams.Tool, a *analyzer) bool {
	switch {
	case t.Annotations.ReadOnly != nil && *t.Annotations.ReadOnly:
		return false
	case t.Annotations.Destructive != nil:
		return *t.Annotations.Destructive
	}
	for _, w := range a.split(t.Name) {
		if destructive()[w.term] {
			return true
		}
	}
	return false
}

// meanOf is the mean direction of a tool's words.
func meanOf(terms []docTerm) smallVector {
	table := vectors()
	var sum vector
	for _, t := range terms {
		if t.word.row >= 0 {
			sum.addWord(&table.rows[t.word.row], logWeight[min(weigh(t.n), len(logWeight)-1)])
		}
	}
	sum.normalize()
	return sum.small()
}

// logWeight tames the weighted frequency of a word, which is in tenths.
var logWeight = func() (table [512]float32) {
	for i := range table {
		table[i] = float32(math.Log(1 + float64(i)/10))
	}
	return table
}()
