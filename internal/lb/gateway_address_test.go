// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// TestTheGatewaysOwnAddress holds that an address by which nodes go out can be asked for where ports of it are
// translated, and never is chosen.
func TestTheGatewaysOwnAddress(t *testing.T) {
	own := func(m *model) {
		m.gateway.Ranges = []Range{addresses("203.0.113.15-203.0.113.15")}
		m.gateway.Used = []UsedAddress{{ip("203.0.113.15"), "SNAT"}}
	}
	for _, tt := range []struct {
		name   string
		change func(*Desired)
		reason string
	}{
		{
			name: "asked for in one-arm mode",
			change: func(d *Desired) {
				d.OneArm = arm()
				d.Requested = []netip.Addr{ip("203.0.113.15")}
			},
		},
		{name: "not asked for", change: func(d *Desired) { d.OneArm = arm() }, reason: NoFreeAddress},
		{
			name:   "asked for without one-arm mode",
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("203.0.113.15")} },
			reason: AddressInUse,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			m := newModel(withoutSets, own)
			d := ourService()
			tt.change(&d)

			plan := m.next(d)

			if tt.reason != "" {
				g.Expect(plan.Refusals).To(ConsistOf(HaveField("Reason", tt.reason)))
				return
			}
			g.Expect(plan.Refusals).To(BeEmpty())
			g.Expect(brief(plan)).To(ContainElement("create dnat-rule tcp-80"))
		})
	}
}

func TestAManuallyReleasedAddressOfAnIPSpaceIsAllocatedAgain(t *testing.T) {
	for _, asked := range []bool{false, true} {
		g := NewWithT(t)
		d := ourService()
		if asked {
			d.Requested = []netip.Addr{ip("198.51.100.1")}
		}
		m := made(t, &d, withSpaces)
		g.Expect(m.next(d).Steps).To(BeEmpty())

		m.claims = nil

		g.Expect(brief(m.next(d))).To(Equal([]string{
			"create ip-allocation 198.51.100.1",
			"mark ip-allocation 198.51.100.1",
		}))
		_, err := m.converge(&d, -1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.claims).To(HaveLen(1))
	}
}

func TestAnUnavailableAddressIsReportedAndNotRequestedRepeatedly(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	m := made(t, &d, withSpaces)
	m.claims = nil
	o := m.observe(Query{Owner: d.Owner, Facts: Addresses})
	o.Taken = append(o.Taken, loadbalancer.Use{Address: ip("198.51.100.1"), Kind: KindAddress, Name: "another organization"})

	plan := Make(d, o, m.caps)

	g.Expect(plan.Steps).To(BeEmpty())
	g.Expect(plan.Notices).To(ConsistOf(HaveField("Reason", AddressInUse)))
	g.Expect(plan.Status.Addresses).To(ConsistOf(ip("198.51.100.1")), "clients know no other")
}
