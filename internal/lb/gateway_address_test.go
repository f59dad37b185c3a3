package lb

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

// TestTheGatewaysOwnAddress holds that an address by which nodes go out can be asked for where ports of it are translated, and never is chosen.
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
		{"asked for in one-arm mode", func(d *Desired) { d.OneArm, d.Requested = arm(), []netip.Addr{ip("203.0.113.15")} }, ""},
		{"not asked for", func(d *Desired) { d.OneArm = arm() }, NoFreeAddress},
		{"asked for without one-arm mode", func(d *Desired) { d.Requested = []netip.Addr{ip("203.0.113.15")} }, AddressTaken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			m, d := newModel(withoutSets, own), ourService()
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
