// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// similarNames puts what cloud provider interface 1.6.1 made for the Service api-prod of cluster dev on the gateway.
// Its names read as those of port dev-http of the Service api of cluster prod.
func similarNames(m *model) {
	pool := Pool{
		Object:   Object{ID: "pool", Name: "ingress-pool-api-prod-dev-http", State: Realized},
		NodePort: 30080,
		Members:  []netip.Addr{ip("10.9.0.11")},
	}
	m.pools = append(m.pools, pool)
	m.services = append(m.services, VirtualService{
		Object:      Object{ID: "vs", Name: "ingress-vs-api-prod-dev-http", State: Realized},
		VIPs:        []netip.Addr{ip("203.0.113.30")},
		Protocol:    loadbalancer.TCP,
		Port:        80,
		Application: L4,
		Pool:        Ref{pool.ID, pool.Name},
		EngineGroup: Ref{"seg-2", "large"},
	})
}

func TestNamesOfAFreeTextIDProveNothing(t *testing.T) {
	const uuid = "5f0d2a8e-7c1b-4b53-9a20-3e6c1d1f9b44"
	untouched := []string(nil)
	removed := []string{"delete virtual-service http", "delete lb-pool http"}
	tests := []struct {
		name    string
		cluster string
		change  func(*Desired)
		want    []string
	}{
		{name: "a similar name", cluster: "prod", change: func(*Desired) {}, want: untouched},
		{
			name:    "the same node port in another cluster",
			cluster: "prod",
			change:  func(d *Desired) { d.Listeners[0].NodePort = 30080 },
			want:    untouched,
		},
		{
			name:    "the published address",
			cluster: "prod",
			change:  func(d *Desired) { d.Published = []netip.Addr{ip("203.0.113.30")} },
			want:    removed,
		},
		{
			name:    "members that are nodes of the cluster",
			cluster: "prod",
			change:  func(d *Desired) { d.Members = []netip.Addr{ip("10.9.0.11"), ip("10.9.0.12")} },
			want:    removed,
		},
		{
			name:    "members that are nodes, for two Services of the name",
			cluster: "prod",
			change: func(d *Desired) {
				d.Members = []netip.Addr{ip("10.9.0.11")}
				d.Duplicate = true
			},
			want: untouched,
		},
		{name: "a name with a UUID", cluster: uuid, change: func(*Desired) {}, want: removed},
		{name: "a name with a UUID where there is no entity", cluster: "NO_RDE_" + uuid, change: func(*Desired) {}, want: removed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			m := newModel(similarNames)
			d := ourService()
			d.Owner.Cluster = tt.cluster
			d.Owner.Name = "api"
			d.Absent = true
			if tt.cluster != "prod" {
				m.services[0].Name = "ingress-vs-api-" + tt.cluster + "-http"
				m.pools[0].Name = "ingress-pool-api-" + tt.cluster + "-http"
			}
			d.Listeners[0].NodePort = 31080
			tt.change(&d)

			plan := m.next(d)

			g.Expect(brief(plan)).To(BeEquivalentTo(append([]string{}, tt.want...)))
			if tt.want == nil {
				g.Expect(plan.Notices).To(ConsistOf(HaveField("Reason", OwnershipUnverified)))
			}
		})
	}
}

func TestAClaimOfAFreeTextIDTakesThePublishedAddress(t *testing.T) {
	g := NewWithT(t)
	m := newModel(withSpaces)
	d := ourService()
	d.Owner.Cluster = "prod"
	d.Absent = true
	m.claims = append(m.claims, Claim{
		ID:          "old",
		Value:       ip("198.51.100.7"),
		Used:        true,
		Space:       Ref{"space-1", "public"},
		Description: "cluster-prod-namespace-shop-service-web",
	})

	g.Expect(brief(m.next(d))).To(BeEmpty())
	d.Published = []netip.Addr{ip("198.51.100.7")}
	g.Expect(brief(m.next(d))).To(Equal([]string{"delete ip-allocation 198.51.100.7"}))
}
