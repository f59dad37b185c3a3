// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// TestAnAddressThatBecomesReservedStaysUsable holds that reserving an address keeps it only from load balancers that
// are not on it yet.
func TestAnAddressThatBecomesReservedStaysUsable(t *testing.T) {
	for name, mods := range map[string][]func(*model){"of a block": nil, "of an IP Space": {withSpaces}} {
		for way, shape := range map[string]func(*Desired){
			"two-arm": func(*Desired) {},
			"one-arm": func(d *Desired) { d.OneArm = arm() },
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				g := NewWithT(t)
				d := ourService()
				shape(&d)
				m := made(t, &d, mods...)
				address := m.next(d).Status.Addresses[0]
				d.Reserved = []loadbalancer.Use{{Address: address, Kind: "configuration", Name: "reserved", Reserved: true}}
				for _, vs := range m.services {
					for _, a := range vs.VIPs {
						d.Reserved = append(d.Reserved, loadbalancer.Use{Address: a, Kind: "node", Name: "n", Reserved: true})
					}
				}

				d.Listeners = append(d.Listeners, Listener{
					Name:        "more",
					Protocol:    loadbalancer.TCP,
					Application: L4,
					Port:        8081,
					NodePort:    31081,
				})
				plan := m.next(d)
				g.Expect(plan.Refusals).To(BeEmpty())
				g.Expect(brief(plan)).To(ContainElement("create virtual-service tcp-8081"))

				d.Absent = true
				_, err := m.converge(&d, -1)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(m.services).To(BeEmpty())
				g.Expect(m.claims).To(BeEmpty(), "what was allocated for the Service is given back")
			})
		}
	}
}

func TestAReservedAddressIsGivenToNoNewLoadBalancer(t *testing.T) {
	g := NewWithT(t)
	m := newModel()
	d := ourService()
	first := m.gateway.Ranges[0].First
	d.Reserved = []loadbalancer.Use{{Address: first, Kind: "configuration", Name: "reserved", Reserved: true}}
	d.Requested = append(d.Requested, first)

	g.Expect(m.next(d).Refusals).To(ConsistOf(HaveField("Reason", AddressInUse)))
}
