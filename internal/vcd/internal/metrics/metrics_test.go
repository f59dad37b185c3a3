// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestTheNumberOfSeriesIsBounded(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	m := New(registry)

	for i := range 1000 {
		site := m.Of(fmt.Sprintf("https://vcd-%d.example.com", i))
		site.Call("GET /a", time.Second, nil)
		site.Login(nil)
		site.Outage()
		site.Waits(HeldByInFlight, time.Second)
		site.InventoryQueried(nil)
		m.Of("https://vcd-0.example.com").Call(fmt.Sprintf("GET /%d", i), time.Second, nil)
		m.Of("https://vcd-0.example.com").TaskEnded(fmt.Sprint("op", i), "failure", time.Time{}, time.Time{})
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
	g.Expect(testutil.ToFloat64(m.logins.WithLabelValues(otherLabel, "success"))).To(BeEquivalentTo(1000 - maxSites))
}

func TestEveryKindOfErrorHasAStatus(t *testing.T) {
	g := NewWithT(t)

	for _, kind := range callStatuses {
		g.Expect(callStatus(fmt.Errorf("calling: %w", kind.kind))).To(Equal(kind.name))
	}

	g.Expect(callStatus(nil)).To(Equal("ok"))
	g.Expect(callStatus(context.DeadlineExceeded)).To(Equal("other"))
}
