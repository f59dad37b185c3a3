// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Source adds its values to the states in found, by site.
type Source func(found map[string]*State)

// Gauges are computed when they are collected, from the pools of a registry.
type Gauges struct {
	up, inFlight, sessions, refused, tasks, inventoryAge *prometheus.Desc

	mu      sync.Mutex
	sources map[*Source]bool
}

// NewGauges returns gauges without sources.
func NewGauges() *Gauges {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("capvcd", "vcd", name), help, []string{"site"}, nil)
	}
	return &Gauges{
		up:       desc("site_up", "Availability of a site: 1 if it responds, otherwise 0."),
		inFlight: desc("calls_in_flight", "Number of requests to a site that wait for a response."),
		sessions: desc("sessions", "Number of logged-in sessions."),
		refused:  desc("credentials_refused", "Number of sessions whose credentials VCD rejects."),
		tasks:    desc("tasks_running", "Number of running VCD tasks that this program started."),
		inventoryAge: desc("inventory_age_seconds",
			"Time since the last successful query for the VMs of a VDC, the longest of the site, in seconds."),
		sources: map[*Source]bool{},
	}
}

// Add adds a source to the gauges until remove is called.
func (g *Gauges) Add(measure Source) (remove func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sources[&measure] = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.sources, &measure)
	}
}

// Describe implements [prometheus.Collector].
func (g *Gauges) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.up, g.inFlight, g.sessions, g.refused, g.tasks, g.inventoryAge} {
		descs <- d
	}
}

// Collect implements [prometheus.Collector].
func (g *Gauges) Collect(to chan<- prometheus.Metric) {
	found := map[string]*State{}
	g.mu.Lock()
	for measure := range g.sources {
		(*measure)(found)
	}
	g.mu.Unlock()
	for site, s := range found {
		set := func(d *prometheus.Desc, value float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, site)
		}
		set(g.up, 1-float64(min(1, s.Down)))
		set(g.inFlight, float64(s.InFlight))
		set(g.sessions, float64(s.Sessions))
		set(g.refused, float64(s.Refused))
		set(g.tasks, float64(s.Tasks))
		if s.Inventoried {
			set(g.inventoryAge, s.InventoryAge.Seconds())
		}
	}
}

// A State holds the current values of a site, or of all sites that share a label.
type State struct {
	Down, InFlight, Sessions, Refused, Tasks int

	Inventoried  bool
	InventoryAge time.Duration
}
