package upstreams

import "time"

const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 30 * time.Second
	// A session that lived so long makes the next failure a first one.
	sustainedUptime = time.Minute
	// Callers cut the waiting short, but not to less than this from one
	// attempt to the next: a server that crashes at once is not started a
	// hundred times a minute.
	minAttemptGap = time.Second
)

// backoff returns how long to wait after the failures-th failure in a row:
// doubling from half a second to 30 seconds, of which jitter, between 0 and 1,
// decides the second half.
func backoff(failures int, jitter float64) time.Duration {
	d := maxDelay
	if shift := max(failures-1, 0); shift < 10 {
		d = min(firstDelay<<shift, maxDelay)
	}
	return d/2 + time.Duration(jitter*float64(d/2))
}
