package cluster

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// lookAgain is how long the VDC and the network of a cluster that is ready are believed in, give or take a tenth. Its machines
// show sooner if something is wrong.
const lookAgain = time.Hour

// A look is what a cluster stands in, as it was found.
type look struct {
	session session.Placements // what it was found with: who logs in as somebody else looks anew
	vdc     vcd.VDC
	network vcd.Network

	generation int64
	until      time.Time
}

// looks holds the last look of each cluster, so that one at rest asks nothing. The zero value is usable.
type looks struct {
	mu    sync.Mutex
	byUID map[types.UID]look
}

// of returns the last look of c while it counts: c was complete, and is wished the same as then.
func (l *looks) of(c *infrav1.VCDCluster, s *session.Session, now time.Time) (look, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen, ok := l.byUID[c.UID]
	return seen, ok && ptr.Deref(c.Status.Initialization.Provisioned, false) && c.Status.OVDC != nil && c.Status.OVDCNetwork != nil &&
		seen.generation == c.Generation && seen.session == s.Placements && now.Before(seen.until)
}

// keep remembers a look, and forgets those that count no more.
func (l *looks) keep(c *infrav1.VCDCluster, seen look, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byUID == nil {
		l.byUID = map[types.UID]look{}
	}
	maps.DeleteFunc(l.byUID, func(_ types.UID, old look) bool { return now.After(old.until) })
	seen.generation, seen.until = c.Generation, now.Add(phases.Jitter(lookAgain*9/10, string(c.UID)))
	l.byUID[c.UID] = seen
}

// drop makes the next look a fresh one.
func (l *looks) drop(c *infrav1.VCDCluster) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byUID, c.UID)
}
