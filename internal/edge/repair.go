package edge

import (
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// firstPause is how long an object that VCD failed to realize is left alone after it was written again; the pause doubles each time, up
	// to longestPause. The first ones are short: a cluster's IP set that fails twice in a row holds up all load balancers.
	firstPause   = 5 * time.Second
	longestPause = 30 * time.Minute
)

// repairs are backoffs of objects that VCD failed to realize and that were written again.
type repairs struct {
	clock vcd.Clock

	mu   sync.Mutex
	byID map[string]repair
}

type repair struct {
	until time.Time // it is left alone
	pause time.Duration
}

func newRepairs(clock vcd.Clock) repairs { return repairs{clock: clock, byID: map[string]repair{}} }

// begin notes that an object is written again.
func (r *repairs) begin(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := min(max(2*r.byID[id].pause, firstPause), longestPause)
	r.byID[id] = repair{r.clock.Now().Add(pause), pause}
}

func (r *repairs) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// judge turns Failed into Broken for an object that was written again just now, and forgets one that has stayed realized.
func (r *repairs) judge(o *lb.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, tried := r.byID[o.ID]
	switch early := r.clock.Now().Before(last.until); {
	case !tried:
	case o.State == lb.Failed && early:
		o.State = lb.Broken
	case o.State == lb.Realized && !early:
		delete(r.byID, o.ID)
	}
}
