// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// follow is the plan to follow the nodes once everything is known that it asks for.
func (m *model) follow(d Desired) Plan {
	facts := Facts(0)
	for {
		plan := Follow(d, m.observe(Query{Owner: d.Owner, Facts: facts}), m.caps)
		if plan.Needs == 0 {
			return plan
		}
		facts |= plan.Needs
	}
}

func TestNodesAreFollowedWhileAServiceIsRefused(t *testing.T) {
	refused := func(d *Desired) {
		d.Listeners = slices.Clone(d.Listeners)
		encrypt(d, Certificate{Alias: "unknown"})
		d.Listeners[0].NodePort = 31111
		d.Sticky = true
		d.Families = []loadbalancer.Family{loadbalancer.IPv6}
	}
	more := []netip.Addr{ip("10.0.0.11"), ip("10.0.0.13"), ip("2001:db8:f::1")}
	tests := []struct {
		name    string
		mods    []func(*model)
		members []netip.Addr
		hand    func(*model)
		want    []string
	}{
		{
			name:    "in pools that list them",
			mods:    []func(*model){withoutSets},
			members: more,
			want:    []string{"update lb-pool tcp-80", "update lb-pool tcp-443"},
		},
		{name: "in the IP set", members: more, want: []string{"update ip-set ipv4"}},
		{
			name:    "not, when they are the same",
			mods:    []func(*model){withoutSets},
			members: []netip.Addr{ip("10.0.0.12"), ip("10.0.0.11")},
			want:    []string{},
		},
		{
			name:    "not, when there are none of the family",
			mods:    []func(*model){withoutSets},
			members: more[2:],
			want:    []string{},
		},
		{name: "no update without members of the family", members: more[2:], want: []string{}},
		{
			name:    "also where members are instead of the set",
			members: more,
			want:    []string{"update ip-set ipv4", "update lb-pool tcp-443"},
			hand: func(m *model) {
				m.pools[1].Group = Ref{}
				m.pools[1].Members = []netip.Addr{ip("10.0.0.11")}
			},
		},
		{
			name:    "as many as a pool takes",
			mods:    []func(*model){withoutSets, func(m *model) { m.caps.MaxMembers = 1 }},
			members: more,
			want:    []string{"update lb-pool tcp-80", "update lb-pool tcp-443"},
			hand: func(m *model) {
				m.pools[0].Members = more[:2]
				m.pools[1].Members = more[:2]
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			d := ourService()
			m := made(t, &d, tt.mods...)
			theirs := strangers(m)
			if tt.hand != nil {
				tt.hand(m)
			}
			before := slices.Clone(m.pools)
			d.Members = tt.members
			wrong := d
			refused(&wrong)
			g.Expect(m.next(wrong).Refusals).NotTo(BeEmpty())

			plan := m.follow(wrong)

			g.Expect(brief(plan)).To(ConsistOf(tt.want))
			for _, s := range stepsOf(plan) {
				g.Expect(m.run(s)).To(Succeed())
			}
			g.Expect(m.follow(wrong).Steps).To(BeEmpty(), "once")
			for i, p := range m.pools {
				p.Members = before[i].Members
				p.Description = before[i].Description
				g.Expect(p).To(Equal(before[i]), "all else stays")
			}
			g.Expect(m.touched).NotTo(ContainElements(theirs))
		})
	}
}

func TestMembersAreUpdatedIfOnlyARuleProvesTheLoadBalancer(t *testing.T) {
	g := NewWithT(t)
	m := newModel(bare, oldOneArm)
	d := ourService()
	d.Published = []netip.Addr{ip("203.0.113.30")}
	d.Duplicate = true
	d.Listeners[0].NodePort = 31111
	d.Listeners[1].NodePort = 31112
	d.Members = []netip.Addr{ip("10.0.0.13"), ip("10.0.0.14")}

	g.Expect(brief(m.follow(d))).To(Equal([]string{"update lb-pool http", "update lb-pool tls"}))
}

func TestACorrectedServiceHasCurrentMembers(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	m := made(t, &d, withoutSets)
	d.Members = []netip.Addr{ip("10.0.0.11"), ip("10.0.0.13")}
	for _, s := range stepsOf(m.follow(d)) {
		g.Expect(m.run(s)).To(Succeed())
	}

	g.Expect(m.next(d).Steps).To(BeEmpty())
}

func TestMembersAreNotUpdatedWithoutALoadBalancer(t *testing.T) {
	g := NewWithT(t)
	m := newModel()
	g.Expect(m.follow(ourService())).To(Equal(Plan{}))
	d := ourService()
	m = made(t, &d, withoutSets)
	d.Absent = true
	d.Members = []netip.Addr{ip("10.0.0.13")}
	g.Expect(m.follow(d)).To(Equal(Plan{}))
}

func TestMembersOfObjectsOfVMwaresCPIAreUpdated(t *testing.T) {
	g := NewWithT(t)
	m := newModel(withoutSets, oldDirect)
	d := ourService()
	d.SourceRanges = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	m.caps.SourceRanges = false
	d.Members = []netip.Addr{ip("10.0.0.13"), ip("10.0.0.14")}
	g.Expect(m.next(d).Refusals).To(ConsistOf(HaveField("Reason", Unsupported)))

	plan := m.follow(d)

	g.Expect(brief(plan)).To(Equal([]string{"update lb-pool http", "update lb-pool tls"}))
	for _, s := range stepsOf(plan) {
		g.Expect(m.run(s)).To(Succeed())
	}
	for _, p := range m.pools {
		g.Expect(p.Members).To(Equal(d.Members))
		g.Expect(p.Monitors).To(Equal([]Monitor{MonitorTCP}))
	}
	g.Expect(m.follow(d).Steps).To(BeEmpty())
	d.SourceRanges = nil
	g.Expect(m.converge(&d, -1)).To(HaveField("Done()", true))
	g.Expect(m.pools).To(HaveLen(2))
}
