package vcdsim

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A Request is an entry of the request log.
type Request struct {
	Time      time.Time `json:"time"`
	Method    string    `json:"method"`
	Path      string    `json:"path"`
	Operation string    `json:"operation"`
	Status    int       `json:"status"` // 0 when the connection was dropped
	User      string    `json:"user,omitempty"`
}

// maxJournal is how many requests are remembered.
const maxJournal = 5000

// A journal counts and remembers requests.
type journal struct {
	mu    sync.Mutex
	count map[string]int
	ring  []Request
	next  int
	lost  map[string]bool
}

func newJournal() *journal {
	return &journal{count: map[string]int{}, lost: map[string]bool{}}
}

func (j *journal) add(entry Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count[entry.Operation]++
	if len(j.ring) < maxJournal {
		j.ring = append(j.ring, entry)
		return
	}
	j.ring[j.next] = entry
	j.next = (j.next + 1) % maxJournal
}

func (j *journal) counters() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.count)
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.count)
}

func (j *journal) list() []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append(slices.Clone(j.ring[j.next:]), j.ring[:j.next]...)
}

func (j *journal) unknown(op string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lost[op] = true
}

func (j *journal) unknownRoutes() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Sorted(maps.Keys(j.lost))
}
