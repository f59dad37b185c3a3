// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"container/heap"
	"sync"
	"time"
)

// A Clock is the simulator's source of time.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once after d. The returned function cancels the call.
	AfterFunc(d time.Duration, f func()) (cancel func())
}

// A SimClock is a clock that can be moved forward. It runs at a configurable rate or only when it is advanced.
type SimClock struct {
	mu     sync.Mutex
	rate   float64
	origin time.Time // simulated time at real
	real   time.Time
	timers timerHeap
	seq    int
	wake   *time.Timer
}

type simTimer struct {
	at  time.Time
	seq int
	f   func()
	pos int
}

// NewClock returns a clock that runs at rate times real time. 1 is the wall clock; 60 is one hour per minute.
func NewClock(rate float64) *SimClock {
	now := time.Now()
	return &SimClock{rate: rate, origin: now, real: now}
}

// NewManualClock returns a clock that stands still at start until Advance moves it.
func NewManualClock(start time.Time) *SimClock {
	return &SimClock{origin: start, real: time.Now()}
}

// Now returns the simulated time.
func (c *SimClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// Ticks reports whether the clock moves by itself.
func (c *SimClock) Ticks() bool { return c.Rate() > 0 }

// Rate returns the number of simulated seconds per second; 0 means that the clock stands still.
func (c *SimClock) Rate() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rate
}

// SetRate changes the rate from now on; 0 stops the clock.
func (c *SimClock) SetRate(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.origin = c.now()
	c.real = time.Now()
	c.rate = rate
	if c.wake != nil {
		c.wake.Stop()
	}
	c.rearm()
}

func (c *SimClock) now() time.Time {
	if c.rate == 0 {
		return c.origin
	}
	return c.origin.Add(time.Duration(float64(time.Since(c.real)) * c.rate))
}

// AfterFunc implements Clock. f runs on a separate goroutine, or on the goroutine of Advance.
func (c *SimClock) AfterFunc(d time.Duration, f func()) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	t := &simTimer{at: c.now().Add(d), seq: c.seq, f: f}
	heap.Push(&c.timers, t)
	c.rearm()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if t.pos >= 0 {
			heap.Remove(&c.timers, t.pos)
		}
	}
}

// Advance moves the clock forward. It runs the functions that are due in order, each at its own time.
func (c *SimClock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now().Add(d)
	for len(c.timers) > 0 && !c.timers[0].at.After(end) {
		t, _ := heap.Pop(&c.timers).(*simTimer)
		if t.at.After(c.now()) {
			c.origin = t.at
			c.real = time.Now()
		}
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	if end.After(c.now()) {
		c.origin = end
		c.real = time.Now()
	}
	c.rearm()
	c.mu.Unlock()
}

// rearm sets the real timer for the next simulated one.
func (c *SimClock) rearm() {
	if c.rate == 0 || len(c.timers) == 0 {
		return
	}
	wait := time.Duration(float64(c.timers[0].at.Sub(c.now())) / c.rate)
	if c.wake == nil {
		c.wake = time.AfterFunc(max(wait, 0), c.fire)
		return
	}
	c.wake.Reset(max(wait, 0))
}

func (c *SimClock) fire() {
	c.mu.Lock()
	var due []func()
	for len(c.timers) > 0 && !c.timers[0].at.After(c.now()) {
		t, _ := heap.Pop(&c.timers).(*simTimer)
		due = append(due, t.f)
	}
	c.rearm()
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

type timerHeap []*simTimer //nolint:recvcheck // container/heap requires both

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].seq < h[j].seq
	}
	return h[i].at.Before(h[j].at)
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos = i
	h[j].pos = j
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	t, _ := x.(*simTimer)
	t.pos = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	t.pos = -1
	return t
}
