// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// idleDriver is how long an unused driver is kept, because its session may be closed.
	idleDriver = time.Hour
	// rollEvery is how often a pool on a gateway is read in full, because lists do not show all of its fields.
	rollEvery = 15 * time.Minute
)

// drivers holds the shared load balancer drivers, one for each session.
type drivers struct {
	clock vcd.Clock

	mu   sync.Mutex
	open map[*vcd.Session]usedDriver
}

type usedDriver struct {
	*edge.Driver

	used time.Time
}

// of returns the driver of a session.
func (d *drivers) of(s *vcd.Session) *edge.Driver {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	maps.DeleteFunc(d.open, func(_ *vcd.Session, x usedDriver) bool { return now.Sub(x.used) > idleDriver })
	if d.open == nil {
		d.open = map[*vcd.Session]usedDriver{}
	}
	driver := d.open[s].Driver
	if driver == nil {
		driver = newDriver(s, edge.Options{RollEvery: rollEvery, Clock: d.clock})
	}
	d.open[s] = usedDriver{driver, now}
	return driver
}

func newDriver(s *vcd.Session, o edge.Options) *edge.Driver {
	return edge.New(func(context.Context) (*vcd.Session, error) { return s, nil }, o)
}
