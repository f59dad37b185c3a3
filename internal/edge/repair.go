package edge

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

const (
	// firstPause is how long something that VCD has given up is left alone after it was written again; after that, longer each time, up to
	// longestPause. The first ones are short: a cluster's IP set that fails twice in a row holds up all load balancers.
	firstPause   = 5 * time.Second
	longestPause = 30 * time.Minute
)

// A repair is that something which VCD had given up was written again.
type repair struct {
	until time.Time // it is left alone
	pause time.Duration
}

// repairing notes that something is written again.
func (g *gateway) repairing(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	pause := min(max(2*g.repairs[id].pause, firstPause), longestPause)
	g.repairs[id] = repair{g.driver.opts.Clock.Now().Add(pause), pause}
}

// repaired forgets repairs of something that is gone.
func (g *gateway) repaired(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.repairs, id)
}

// judge says of an object that VCD has given up whether it was written again just now. One that has stayed right is forgotten.
func (g *gateway) judge(o *lb.Object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, tried := g.repairs[o.ID]
	switch early := g.driver.opts.Clock.Now().Before(r.until); {
	case !tried:
	case o.State == lb.Failed && early:
		o.State = lb.Broken
	case o.State == lb.Realized && !early:
		delete(g.repairs, o.ID)
	}
}

// judge judges all that may fail; NAT rules have no state.
func (l *look) judge() {
	for i := range l.out.Services {
		l.gateway.judge(&l.out.Services[i].Object)
	}
	for i := range l.out.Pools {
		l.gateway.judge(&l.out.Pools[i].Object)
	}
	for i := range l.out.Sets {
		l.gateway.judge(&l.out.Sets[i].Object)
	}
	for i := range l.out.Profiles {
		l.gateway.judge(&l.out.Profiles[i].Object)
	}
}
