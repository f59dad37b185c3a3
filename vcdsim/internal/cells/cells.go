// SPDX-License-Identifier: Apache-2.0

package cells

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/tlsserver"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
)

// A Cell is one server of the site. All cells share one database. Each has its own API versions, certificate and
// faults. A site with several cells has a load balancer in front of them, whose address is the Simulator's URL. It
// distributes requests round robin and skips cells that it knows to be down. The methods of a cell may be called from
// any goroutine.
type Cell struct {
	cloud  *cloud.Cloud
	Number int
	site   *tlsserver.Server // at the site's address
	Server *tlsserver.Server // nil if the site has one cell, which uses the site's address

	mu          sync.Mutex
	version     Version
	versions    []string
	up          bool
	missed      bool // it is down, but still in rotation
	maintenance bool
	stop        chan struct{} // closed when the cell stops
	cancel      func()        // cancels a pending restart
}

// A CellStatus is the state of a cell.
type CellStatus struct {
	Number      int     `json:"number"` // from 1
	URL         string  `json:"url"`
	Up          bool    `json:"up"`
	InRotation  bool    `json:"inRotation"` // the load balancer sends requests to it
	Maintenance bool    `json:"maintenance"`
	Version     Version `json:"version"` // highest API version
}

// New returns a cell that is up and listens at the site's address.
func New(c *cloud.Cloud, number int, site *tlsserver.Server, version Version) (*Cell, error) {
	versions, err := version.list()
	if err != nil {
		return nil, err
	}
	return &Cell{
		cloud:    c,
		Number:   number,
		site:     site,
		version:  version,
		versions: versions,
		up:       true,
		stop:     make(chan struct{}),
	}, nil
}

// ownServer returns the server that listens at the cell's own address.
func (c *Cell) ownServer() *tlsserver.Server { return cmp.Or(c.Server, c.site) }

// Status returns the state of the cell.
func (c *Cell) Status() CellStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CellStatus{
		Number:      c.Number,
		URL:         c.URL(),
		Up:          c.up,
		InRotation:  c.up || c.missed,
		Maintenance: c.maintenance,
		Version:     c.version,
	}
}

// URL returns the address of the cell itself, not of the load balancer. It is empty before Start.
func (c *Cell) URL() string { return c.ownServer().URL() }

// Stop takes the cell down and removes it from the load balancer. Requests in flight are aborted. The effect on the
// sessions that were created on the cell and on its tasks depends on Assumptions. The only cell of a site closes
// connections without a response while it is down.
func (c *Cell) Stop() { c.halt(false) }

// Crash takes the cell down like Stop, but it stays in the load balancer, which answers its requests with 502 Bad
// Gateway.
func (c *Cell) Crash() { c.halt(true) }

func (c *Cell) halt(missed bool) {
	c.mu.Lock()
	was := c.up
	c.up = false
	c.missed = missed
	if was {
		close(c.stop)
	}
	c.unschedule()
	c.mu.Unlock()
	if !was {
		return
	}
	if c.Server != nil {
		c.Server.Drop()
	}
	c.endWork()
}

// Start brings the cell up again.
func (c *Cell) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unschedule()
	if !c.up {
		c.up = true
		c.missed = false
		c.stop = make(chan struct{})
	}
}

func (c *Cell) unschedule() {
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
}

// Restart stops the cell and starts it again after down on the simulator's clock. 0 starts it at once.
func (c *Cell) Restart(down time.Duration) {
	c.Stop()
	if down <= 0 {
		c.Start()
		return
	}
	cancel := c.cloud.Clock.AfterFunc(down, c.Start)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = cancel
}

// Upgrade changes the API versions that the cell serves.
func (c *Cell) Upgrade(to Version) error {
	versions, err := to.list()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = to
	c.versions = versions
	return nil
}

// Maintain enables or disables maintenance. In maintenance, the cell responds with its maintenance page (503, HTML).
func (c *Cell) Maintain(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maintenance = on
}

// RenewCertificate replaces the certificate of the cell's own address and closes its connections. The new certificate
// is signed by the same authority or by a new one.
func (c *Cell) RenewCertificate(byNewAuthority bool) error {
	return c.ownServer().Renew(byNewAuthority)
}

// Stopped returns a channel that is closed when the cell is stopped.
func (c *Cell) Stopped() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stop
}

// Served returns the API versions that the cell serves, oldest first.
func (c *Cell) Served() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.versions
}

// endWork ends the sessions and tasks of a stopped cell according to the assumptions.
func (c *Cell) endWork() {
	c.cloud.Mu.Lock()
	defer c.cloud.Mu.Unlock()
	if c.cloud.Assume.CellStopEndsSessions {
		for token, x := range c.cloud.Store.Sessions {
			if x.Cell == c.Number {
				delete(c.cloud.Store.Sessions, token)
			}
		}
	}
	if !c.cloud.Assume.CellStopAbortsTasks {
		return
	}
	for _, t := range store.Sorted(c.cloud.Store.Tasks) {
		if t.Cell == c.Number && !t.Done() {
			c.cloud.Tasks.Abort(t, "The task was aborted because its cell was stopped.")
		}
	}
	c.cloud.Settle()
}

// Admit reports whether the cell can serve a request. If it cannot, Admit writes the error response and returns its
// status. A status of 0 means that no response was written.
func (c *Cell) Admit(w http.ResponseWriter, balanced bool) (status int, ok bool) {
	if c == nil {
		return writeHTML(w, http.StatusServiceUnavailable, "No server is available to handle this request."), false
	}
	is := c.Status()
	switch {
	case !is.Up && balanced:
		return writeHTML(w, http.StatusBadGateway, "The server returned an invalid or incomplete response."), false
	case !is.Up:
		return 0, false
	case is.Maintenance:
		return writeHTML(w, http.StatusServiceUnavailable,
			"VMware Cloud Director is down for maintenance. Please try again later."), false
	default:
		return 0, true
	}
}

func writeHTML(w http.ResponseWriter, status int, message string) int {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(wire.HTMLPage(status, message)) // the client may have disconnected
	return status
}
