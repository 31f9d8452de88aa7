package codebridge

import "slices"

// queue holds the programs that wait for a worker. Clients take turns, each
// client's programs keep their order. The zero value is empty.
type queue struct {
	turns   []string // clients that wait, the next one first
	waiting map[string][]*ticket
}

// ticket is one waiting program.
type ticket struct {
	client string
	got    chan grant // room for one; filled once by whoever takes the ticket out of the queue
}

// grant is what a ticket is answered with.
type grant struct {
	worker *worker
	err    error
}

// maxWaiting bounds the queue of one client.
const maxWaiting = 256

func (q *queue) len() int {
	n := 0
	for _, ts := range q.waiting {
		n += len(ts)
	}
	return n
}

// push adds a ticket; false if its client has too many.
func (q *queue) push(t *ticket) bool {
	if q.waiting == nil {
		q.waiting = make(map[string][]*ticket)
	}
	ts := q.waiting[t.client]
	if len(ts) >= maxWaiting {
		return false
	}
	if len(ts) == 0 {
		q.turns = append(q.turns, t.client)
	}
	q.waiting[t.client] = append(ts, t)
	return true
}

// pop takes the next ticket, or nil.
func (q *queue) pop() *ticket {
	if len(q.turns) == 0 {
		return nil
	}
	client := q.turns[0]
	q.turns = q.turns[1:]
	ts := q.waiting[client]
	t := ts[0]
	if len(ts) == 1 {
		delete(q.waiting, client)
	} else {
		q.waiting[client] = ts[1:]
		q.turns = append(q.turns, client)
	}
	return t
}

// remove takes a ticket out; false if it is not there any more.
func (q *queue) remove(t *ticket) bool {
	ts := q.waiting[t.client]
	i := slices.Index(ts, t)
	if i < 0 {
		return false
	}
	if len(ts) == 1 {
		delete(q.waiting, t.client)
		q.turns = slices.DeleteFunc(q.turns, func(c string) bool { return c == t.client })
	} else {
		q.waiting[t.client] = slices.Delete(slices.Clone(ts), i, i+1)
	}
	return true
}
