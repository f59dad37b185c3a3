// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Request is an entry of the request log.
type Request struct {
	Time      time.Time `json:"time"`
	Method    string    `json:"method"`
	Path      string    `json:"path"`
	Operation string    `json:"operation"`
	Status    int       `json:"status"` // 0 if the connection was dropped
	User      string    `json:"user,omitempty"`
	Cell      int       `json:"cell,omitempty"` // the serving cell
}

// Changes reports whether the request changes something in VCD. Logins and logouts do not.
func (r Request) Changes() bool {
	return r.Method != http.MethodGet && !strings.Contains(r.Path, "/session") && !strings.HasPrefix(r.Path, "/oauth/")
}

// These limits prevent requests for unknown paths from exhausting memory. maxJournal is the number of requests that are
// kept. MaxOperations is the number of operations that are counted separately. MaxPath is the maximum length of a path.
const (
	maxJournal    = 5000
	MaxOperations = 5000
	MaxPath       = 8 << 10
	maxUnknown    = 256 // maximum length of an operation
)

// OtherOperations counts the operations beyond MaxOperations.
const OtherOperations = "others"

// A Journal counts requests and keeps the most recent ones.
type Journal struct {
	mu      sync.Mutex
	count   map[string]int
	ring    []Request
	next    int
	total   int
	unknown map[string]bool // unknown routes
	kinds   map[string]bool // operations since the start
	// statuses counts requests by operation and status since the start.
	statuses map[Outcome]int
}

// An Outcome is the key of request counts for metrics.
type Outcome struct {
	Operation string
	Status    int
}

// New returns an empty journal.
func New() *Journal {
	return &Journal{
		count:    map[string]int{},
		unknown:  map[string]bool{},
		kinds:    map[string]bool{},
		statuses: map[Outcome]int{},
	}
}

// Add counts and stores a request.
func (j *Journal) Add(entry Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entry.Path = cut(entry.Path, MaxPath)
	entry.Operation = j.counted(entry.Operation)
	j.count[entry.Operation]++
	j.statuses[Outcome{entry.Operation, entry.Status}]++
	j.total++
	if len(j.ring) < maxJournal {
		j.ring = append(j.ring, entry)
		return
	}
	j.ring[j.next] = entry
	j.next = (j.next + 1) % maxJournal
}

// counted returns the name that an operation is counted as.
func (j *Journal) counted(operation string) string {
	operation = cut(operation, maxUnknown)
	if _, known := j.kinds[operation]; known {
		return operation
	}
	if len(j.kinds) >= MaxOperations {
		return OtherOperations
	}
	j.kinds[operation] = true
	return operation
}

// cut truncates a long text.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}

// Counters returns the number of requests by operation.
func (j *Journal) Counters() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.count)
}

// Reset sets all counters to zero.
func (j *Journal) Reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.count)
}

// List returns the last requests, oldest first.
func (j *Journal) List() []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ordered()
}

func (j *Journal) ordered() []Request {
	return append(slices.Clone(j.ring[j.next:]), j.ring[:j.next]...)
}

// Since returns the requests after number n, at most the last limit ones, and the number of the last request.
func (j *Journal) Since(n, limit int) ([]Request, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.ordered()
	fresh := min(max(j.total-n, 0), limit, len(all))
	return append([]Request{}, all[len(all)-fresh:]...), j.total
}

// ByStatus returns the number of requests by operation and status since the start.
func (j *Journal) ByStatus() map[Outcome]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.statuses)
}

// Unknown records a requested operation that is not simulated.
func (j *Journal) Unknown(op string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unknown[j.counted(op)] = true
}

// UnknownRoutes returns the requested operations that are not simulated.
func (j *Journal) UnknownRoutes() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Sorted(maps.Keys(j.unknown))
}
