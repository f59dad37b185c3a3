// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	. "github.com/onsi/gomega"

	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestThereAreBoundedlyManySeries(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)

	for i := range 1000 {
		site := m.of(fmt.Sprintf("https://vcd-%d.example.com", i))
		site.call("GET /a", time.Second, nil)
		site.login(nil)
		site.outage()
		site.waits(heldByInFlight, time.Second)
		site.inventoryQueried(nil)
		m.of("https://vcd-0.example.com").call(fmt.Sprintf("GET /%d", i), time.Second, nil)
		m.of("https://vcd-0.example.com").taskEnded(fmt.Sprint("op", i), "failure", time.Time{}, time.Time{})
	}

	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(families).NotTo(BeEmpty())
	for _, family := range families {
		values := map[string]map[string]bool{}
		for _, metric := range family.GetMetric() {
			for _, l := range metric.GetLabel() {
				if values[l.GetName()] == nil {
					values[l.GetName()] = map[string]bool{}
				}
				values[l.GetName()][l.GetValue()] = true
			}
		}
		for name, of := range values {
			limit := map[string]int{
				"site":      maxSites,
				"operation": maxOperations,
				"status":    len(callStatuses) + 1,
				"result":    3,
				"by":        4,
			}[name]
			g.Expect(len(of)).To(BeNumerically("<=", limit+1), "%s of %s", name, family.GetName())
		}
	}
	g.Expect(value(g, registry, "capvcd_vcd_logins_total",
		map[string]string{"site": "other"})).To(BeEquivalentTo(1000 - maxSites))
}
