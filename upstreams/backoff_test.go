package upstreams

import (
	"math"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		failures  int
		low, high time.Duration
	}{
		{0, 250 * time.Millisecond, 500 * time.Millisecond},
		{1, 250 * time.Millisecond, 500 * time.Millisecond},
		{2, 500 * time.Millisecond, time.Second},
		{5, 4 * time.Second, 8 * time.Second},
		{7, 15 * time.Second, 30 * time.Second},
		{1000, 15 * time.Second, 30 * time.Second},
		{math.MaxInt, 15 * time.Second, 30 * time.Second},
	} {
		if got := backoff(c.failures, 0); got != c.low {
			t.Errorf("backoff(%d, 0) = %v, want %v", c.failures, got, c.low)
		}
		if got := backoff(c.failures, 1); got != c.high {
			t.Errorf("backoff(%d, 1) = %v, want %v", c.failures, got, c.high)
		}
	}
}
