package vcdsim

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
	Status    int       `json:"status"` // 0 when the connection was dropped
	User      string    `json:"user,omitempty"`
	Cell      int       `json:"cell,omitempty"` // that answered
}

// Changes says whether the request asks for something in VCD to be changed. Logging in and out does not.
func (r Request) Changes() bool {
	return r.Method != http.MethodGet && !strings.Contains(r.Path, "/session") && !strings.HasPrefix(r.Path, "/oauth/")
}

// maxJournal is how many requests are remembered.
const maxJournal = 5000

// A journal counts and remembers requests.
type journal struct {
	mu    sync.Mutex
	count map[string]int
	ring  []Request
	next  int
	total int
	lost  map[string]bool
	// statuses counts by operation and status, since the start.
	statuses map[outcome]int
}

// An outcome is what requests are counted by for metrics.
type outcome struct {
	operation string
	status    int
}

func newJournal() *journal {
	return &journal{count: map[string]int{}, lost: map[string]bool{}, statuses: map[outcome]int{}}
}

func (j *journal) add(entry Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count[entry.Operation]++
	j.statuses[outcome{entry.Operation, entry.Status}]++
	j.total++
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
	return j.ordered()
}

func (j *journal) ordered() []Request {
	return append(slices.Clone(j.ring[j.next:]), j.ring[:j.next]...)
}

// since returns the requests after number n, at most so many of the last, and the number of the last.
func (j *journal) since(n, most int) ([]Request, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.ordered()
	fresh := min(max(j.total-n, 0), most, len(all))
	return append([]Request{}, all[len(all)-fresh:]...), j.total
}

func (j *journal) byStatus() map[outcome]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.statuses)
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
