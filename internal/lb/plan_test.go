// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// made is a gateway with the load balancer of ourService, after the mods.
func made(t *testing.T, d *Desired, mods ...func(*model)) *model {
	t.Helper()
	m := newModel(mods...)
	NewWithT(t).Expect(m.converge(d, -1)).To(HaveField("Done()", true))
	m.writes = 0
	return m
}

// next is the plan once everything is known that it asks for.
func (m *model) next(d Desired) Plan {
	facts := Facts(0)
	for {
		plan := Make(d, m.observe(Query{Owner: d.Owner, Facts: facts}), m.caps)
		if plan.Needs == 0 {
			return plan
		}
		facts |= plan.Needs
	}
}

// brief returns the steps as text, without the parts of names that identify the owner.
func brief(plan Plan) []string {
	out := []string{}
	for _, s := range stepsOf(plan) {
		which := s.Name[strings.LastIndex(s.Name, "-")+1:]
		if i := strings.LastIndex(s.Name, "-tcp-"); i >= 0 {
			which = s.Name[i+1:]
		}
		if i := strings.LastIndex(s.Name, "-udp-"); i >= 0 {
			which = s.Name[i+1:]
		}
		switch s.Kind {
		case KindCertificate:
			which = ""
		case KindFirewall:
			which = strings.Split(s.Name, "-")[len(strings.Split(s.Name, "-"))-2]
		default:
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Verb, s.Kind, which)))
	}
	return out
}

func TestStepsForANewLoadBalancer(t *testing.T) {
	tests := []struct {
		name   string
		mods   []func(*model)
		change func(*Desired)
		want   []string
		intent string
	}{
		{
			name: "two writes for each port and one for the cluster's nodes",
			want: []string{
				"create ip-set ipv4", "create lb-pool tcp-80", "create lb-pool tcp-443",
				"create virtual-service tcp-80", "create virtual-service tcp-443",
			},
			intent: "203.0.113.10",
		},
		{
			name:   "four writes for each port in one-arm mode, the address last",
			mods:   []func(*model){withoutSets},
			change: func(d *Desired) { d.OneArm = arm() },
			want: []string{
				"create lb-pool tcp-80", "create lb-pool tcp-443", "create virtual-service tcp-80",
				"create virtual-service tcp-443",
				"create app-port-profile tcp-80", "create dnat-rule tcp-80", "create app-port-profile tcp-443",
				"create dnat-rule tcp-443",
			},
			intent: "203.0.113.10",
		},
		{
			name:   "two writes more for an address of an IP Space, first",
			mods:   []func(*model){withoutSets, withSpaces},
			change: func(d *Desired) { d.Listeners = d.Listeners[:1] },
			want: []string{
				"create ip-allocation 198.51.100.1", "mark ip-allocation 198.51.100.1", "create lb-pool tcp-80",
				"create virtual-service tcp-80",
			},
			intent: "198.51.100.1",
		},
		{
			name:   "one write more for a certificate, whatever the number of ports that use it",
			mods:   []func(*model){withoutSets},
			change: func(d *Desired) { encrypt(d, Certificate{Chain: "PEM", Key: "k"}) },
			want: []string{
				"create certificate", "create lb-pool tcp-80", "create lb-pool tcp-443",
				"create virtual-service tcp-80", "create virtual-service tcp-443",
			},
			intent: "203.0.113.10",
		},
		{
			name: "nothing of the kind for a certificate that is in the library",
			mods: []func(*model){withoutSets},
			change: func(d *Desired) {
				d.Listeners = d.Listeners[:1]
				encrypt(d, Certificate{Alias: "shop"})
			},
			want:   []string{"create lb-pool tcp-80", "create virtual-service tcp-80"},
			intent: "203.0.113.10",
		},
		{
			name: "who may not come is kept away before anything is reachable",
			mods: []func(*model){withoutSets},
			change: func(d *Desired) {
				d.Listeners = d.Listeners[:1]
				d.SourceRanges = prefixList("192.0.2.0/24")
			},
			want: []string{
				"create lb-pool tcp-80", "create firewall-rule drop", "create firewall-rule allow",
				"create virtual-service tcp-80",
			},
			intent: "203.0.113.10",
		},
		{
			name: "an address requested by name is not written down",
			mods: []func(*model){withoutSets},
			change: func(d *Desired) {
				d.Listeners = d.Listeners[:1]
				d.Requested = []netip.Addr{ip("203.0.113.33")}
			},
			want: []string{"create lb-pool tcp-80", "create virtual-service tcp-80"},
		},
		{
			name: "one that must be allocated is",
			mods: []func(*model){withoutSets, withSpaces},
			change: func(d *Desired) {
				d.Listeners = d.Listeners[:1]
				d.Requested = []netip.Addr{ip("198.51.100.7")}
			},
			want: []string{
				"create ip-allocation 198.51.100.7", "mark ip-allocation 198.51.100.7", "create lb-pool tcp-80",
				"create virtual-service tcp-80",
			},
			intent: "198.51.100.7",
		},
		{
			name: "one that a person has allocated for the Service is used as it is",
			mods: []func(*model){
				withoutSets,
				withSpaces,
				func(m *model) {
					m.claims = append(m.claims,
						Claim{ID: "by-hand", Value: ip("198.51.100.7"), Description: "for shop/web"})
				},
			},
			change: func(d *Desired) {
				d.Listeners = d.Listeners[:1]
				d.Requested = []netip.Addr{ip("198.51.100.7")}
			},
			want: []string{"create lb-pool tcp-80", "create virtual-service tcp-80"},
		},
		{
			name: "a private address requested by name is inside and not translated",
			mods: []func(*model){withoutSets},
			change: func(d *Desired) {
				d.Listeners = d.Listeners[:1]
				d.Requested = []netip.Addr{ip("192.168.3.3")}
				d.OneArm = arm()
			},
			want:   []string{"create lb-pool tcp-80", "create virtual-service tcp-80"},
			intent: "192.168.3.3"[:0],
		},
		{
			name: "an internal load balancer gets an address of the subnet",
			mods: []func(*model){withoutSets},
			change: func(d *Desired) {
				d.Listeners = d.Listeners[:1]
				d.Internal = true
				d.Subnet = netip.MustParsePrefix("192.168.9.0/28")
			},
			want:   []string{"create lb-pool tcp-80", "create virtual-service tcp-80"},
			intent: "192.168.9.1",
		},
		{
			name: "an address only in the subnet",
			mods: []func(*model){withoutSets},
			change: func(d *Desired) {
				d.Listeners = d.Listeners[:1]
				d.Subnet = netip.MustParsePrefix("203.0.113.16/28")
			},
			want:   []string{"create lb-pool tcp-80", "create virtual-service tcp-80"},
			intent: "203.0.113.17",
		},
		{
			name: "both families are on one virtual service",
			mods: []func(*model){withoutSets},
			change: func(d *Desired) {
				d.Listeners = d.Listeners[:1]
				d.Families = []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6}
			},
			want:   []string{"create lb-pool tcp-80", "create virtual-service tcp-80"},
			intent: "203.0.113.10 and 2001:db8::10",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			d := ourService()
			if tt.change != nil {
				tt.change(&d)
			}

			plan := newModel(tt.mods...).next(d)

			g.Expect(plan.Refusals).To(BeEmpty())
			g.Expect(brief(plan)).To(Equal(tt.want))
			g.Expect(join(plan.Intent)).To(Equal(tt.intent))
		})
	}
}

func TestStepsForAChangedLoadBalancer(t *testing.T) {
	tests := []struct {
		name   string
		from   func(*Desired)
		mods   []func(*model)
		change func(*Desired)
		hand   func(*model)
		want   []string
	}{
		{name: "no steps without changes", want: []string{}},
		{
			name:   "nothing, if a port has another name",
			change: func(d *Desired) { d.Listeners[0].Name = "web" },
			want:   []string{},
		},
		{
			name:   "one write for a node more, for all pools",
			change: func(d *Desired) { d.Members = append(d.Members, ip("10.0.0.13")) },
			want:   []string{"update ip-set ipv4"},
		},
		{
			name:   "each pool for a node more, without IP sets",
			mods:   []func(*model){withoutSets},
			change: func(d *Desired) { d.Members = append(d.Members, ip("10.0.0.13")) },
			want:   []string{"update lb-pool tcp-80", "update lb-pool tcp-443"},
		},
		{
			name:   "pools that exchange their node ports",
			change: func(d *Desired) { rotate(d) },
			want:   []string{"update lb-pool tcp-80", "update lb-pool tcp-443"},
		},
		{
			name:   "a port that takes the place of another is made before that goes",
			change: func(d *Desired) { d.Listeners[1].Port = 8443 },
			want: []string{
				"create lb-pool tcp-8443", "create virtual-service tcp-8443",
				"delete virtual-service tcp-443", "delete lb-pool tcp-443",
			},
		},
		{
			name:   "another application on the same virtual service",
			change: func(d *Desired) { d.Listeners[0].Application = L4 },
			want:   []string{"update virtual-service tcp-80"},
		},
		{
			name: "the same port of another protocol beside the old one",
			change: func(d *Desired) {
				d.Listeners = []Listener{d.Listeners[0], {Protocol: loadbalancer.UDP, Application: L4, Port: 443, NodePort: 30443}}
			},
			want: []string{
				"create lb-pool udp-443", "create virtual-service udp-443", "delete virtual-service tcp-443",
				"delete lb-pool tcp-443",
			},
		},
		{
			name:   "the address, when another is requested; the old one is released last",
			mods:   []func(*model){withSpaces},
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("198.51.100.9")} },
			want: []string{
				"create ip-allocation 198.51.100.9", "mark ip-allocation 198.51.100.9", "update virtual-service tcp-80",
				"update virtual-service tcp-443",
				"delete ip-allocation 198.51.100.1",
			},
		},
		{
			name:   "only the rules, when another address is requested in one-arm mode",
			from:   func(d *Desired) { d.OneArm = arm() },
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("203.0.113.22")} },
			want:   []string{"update dnat-rule tcp-80", "update dnat-rule tcp-443"},
		},
		{
			name:   "virtual services one after the other, where those that share an address keep it",
			mods:   []func(*model){fixedVIPs},
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("203.0.113.22")} },
			want: []string{
				"delete virtual-service tcp-80", "create virtual-service tcp-80", "delete virtual-service tcp-443",
				"create virtual-service tcp-443",
			},
		},
		{
			name:   "a virtual service that shares its address with none, in place",
			mods:   []func(*model){fixedVIPs},
			from:   func(d *Desired) { d.Listeners = d.Listeners[:1] },
			change: func(d *Desired) { d.Requested = []netip.Addr{ip("203.0.113.22")} },
			want:   []string{"update virtual-service tcp-80"},
		},
		{
			name: "an IP set from before sets named their gateway is adopted under its name",
			hand: func(m *model) {
				own, _ := ParseMarker(m.sets[0].Description)
				own.Gateway = ""
				m.sets[0].Description = own.String()
			},
			want: []string{"update ip-set ipv4"},
		},
		{
			name: "an IP set of its own if the VDC group has that of another gateway",
			hand: func(m *model) {
				own, _ := ParseMarker(m.sets[0].Description)
				own.Gateway = short("gw-2")
				m.gateway.Name = "edge-1"
				m.sets[0].Description = own.String()
			},
			want: []string{"create ip-set ipv4", "update lb-pool tcp-80", "update lb-pool tcp-443"},
		},
		{
			name:   "nothing, when the request is taken back",
			from:   func(d *Desired) { d.Requested = []netip.Addr{ip("203.0.113.22")} },
			change: func(d *Desired) { d.Requested = nil },
			want:   []string{},
		},
		{
			name: "a virtual service on another engine group is recreated",
			change: func(d *Desired) {
				d.EngineGroup = "large"
				d.Listeners = d.Listeners[:1]
			},
			from: func(d *Desired) { d.Listeners = d.Listeners[:1] },
			want: []string{"delete virtual-service tcp-80", "create virtual-service tcp-80"},
		},
		{
			name:   "a certificate that was renewed: the new one first, then the old one goes",
			from:   func(d *Desired) { encrypt(d, Certificate{Chain: "old", Key: "k"}) },
			change: func(d *Desired) { encrypt(d, Certificate{Chain: "new", Key: "k"}) },
			want: []string{
				"create certificate", "update virtual-service tcp-80", "update virtual-service tcp-443",
				"delete certificate",
			},
		},
		{
			name:   "changed source ranges: new clients are allowed before old ones are blocked",
			from:   func(d *Desired) { d.SourceRanges = prefixList("192.0.2.0/24") },
			change: func(d *Desired) { d.SourceRanges = prefixList("198.18.0.0/15") },
			want:   []string{"create firewall-rule allow", "delete firewall-rule allow"},
		},
		{
			name: "source ranges that are no longer requested",
			from: func(d *Desired) {
				d.SourceRanges = prefixList("192.0.2.0/24")
				d.Listeners = d.Listeners[:1]
			},
			change: func(d *Desired) { d.SourceRanges = nil },
			want:   []string{"delete firewall-rule drop", "delete firewall-rule allow"},
		},
		{
			name: "a manually deleted firewall rule: its replacement must not block allowed clients",
			from: func(d *Desired) { d.SourceRanges = prefixList("192.0.2.0/24") },
			hand: func(m *model) { m.firewall = m.firewall[1:] },
			want: []string{"create firewall-rule drop", "delete firewall-rule allow", "create firewall-rule allow"},
		},
		{
			name: "a manually deleted virtual service is recreated on its address",
			hand: func(m *model) { m.services = m.services[1:] },
			want: []string{"create virtual-service tcp-80"},
		},
		{
			name: "a manually deleted load balancer is recreated on its published address",
			change: func(d *Desired) {
				d.Published = []netip.Addr{ip("203.0.113.31")}
				d.Intent = nil
			},
			from: func(d *Desired) { d.Requested = []netip.Addr{ip("203.0.113.31")} },
			hand: func(m *model) {
				m.services = nil
				m.pools = nil
				m.sets = nil
			},
			want: []string{
				"create ip-set ipv4", "create lb-pool tcp-80", "create lb-pool tcp-443",
				"create virtual-service tcp-80", "create virtual-service tcp-443",
			},
		},
		{
			name: "a manually deleted rule",
			from: func(d *Desired) { d.OneArm = arm() },
			hand: func(m *model) { m.rules = m.rules[1:] },
			want: []string{"create dnat-rule tcp-80"},
		},
		{
			name: "a pool whose members were changed manually, after it is read",
			mods: []func(*model){withoutSets},
			hand: func(m *model) {
				m.full = true
				m.pools[0].Members = nil
			},
			want: []string{"update lb-pool tcp-80"},
		},
		{
			name: "a pool that lacks a member, as lists hint",
			mods: []func(*model){withoutSets},
			hand: func(m *model) { m.pools[0].Members = m.pools[0].Members[:1] },
			want: []string{"update lb-pool tcp-80"},
		},
		{
			name: "a pool with single members instead of the set, as lists hint",
			hand: func(m *model) {
				m.pools[1].Group = Ref{}
				m.pools[1].Members = []netip.Addr{ip("10.9.9.9")}
			},
			want: []string{"update lb-pool tcp-443"},
		},
		{
			name: "a pool without monitors, as lists hint",
			hand: func(m *model) { m.pools[1].Monitors = nil },
			want: []string{"update lb-pool tcp-443"},
		},
		{
			name: "a set with an additional address, as lists of pools hint",
			hand: func(m *model) { m.sets[0].Members = append(slices.Clone(m.sets[0].Members), ip("10.9.9.9")) },
			want: []string{"update ip-set ipv4"},
		},
		{
			name: "settings that users may change are kept",
			hand: func(m *model) {
				m.full = true
				m.pools[0].Algorithm = "RANDOM"
				m.services[0].Description += "\nasked Bob"
			},
			want: []string{},
		},
		{
			name: "objects that VCD failed to realize are requested again",
			hand: func(m *model) { m.services[0].State = Failed },
			want: []string{"update virtual-service tcp-80"},
		},
		{
			name: "from one-arm mode to the address itself, which is kept",
			from: func(d *Desired) {
				d.OneArm = arm()
				d.Listeners = d.Listeners[:1]
			},
			change: func(d *Desired) { d.OneArm = nil },
			want: []string{
				"update virtual-service tcp-80", "delete dnat-rule tcp-80",
				"delete app-port-profile tcp-80",
			},
		},
		{
			name:   "from the address itself to one-arm mode, without losing it",
			from:   func(d *Desired) { d.Listeners = d.Listeners[:1] },
			change: func(d *Desired) { d.OneArm = arm() },
			want: []string{
				"update virtual-service tcp-80", "create app-port-profile tcp-80",
				"create dnat-rule tcp-80",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			d := ourService()
			for _, f := range []func(*Desired){tt.from} {
				if f != nil {
					f(&d)
				}
			}
			m := made(t, &d, tt.mods...)
			before := m.next(d).Status.Addresses
			d.Listeners = slices.Clone(d.Listeners)
			if tt.change != nil {
				tt.change(&d)
			}
			if tt.hand != nil {
				tt.hand(m)
			}

			plan := m.next(d)

			g.Expect(plan.Refusals).To(BeEmpty())
			g.Expect(brief(plan)).To(Equal(tt.want))
			g.Expect(m.converge(&d, -1)).To(HaveField("Done()", true))
			want := before
			if len(d.Requested) > 0 {
				want = d.Requested
			}
			g.Expect(m.next(d).Status.Addresses).To(Equal(want), "the address")
		})
	}
}

func TestAnInterruptedRemovalOfSourceRangesIsCompleted(t *testing.T) {
	g := NewWithT(t)
	writes := 0
	for finished := false; !finished; writes++ {
		d := ourService()
		d.SourceRanges = prefixList("192.0.2.0/24")
		m := made(t, &d)
		d.SourceRanges = nil

		_, err := m.converge(&d, writes)

		finished = err == nil
		if !finished {
			g.Expect(err).To(MatchError(errKilled))
		}
		g.Expect(m.converge(&d, -1)).To(HaveField("Done()", true))
		g.Expect(m.firewall).To(BeEmpty(), "after %d writes", writes)
		for _, vs := range m.services {
			marker, _ := ParseMarker(vs.Description)
			g.Expect(marker.Filtered).To(BeFalse())
		}
	}
	g.Expect(writes).To(BeNumerically(">", 4), "two rules, and two virtual services")
}

func TestARuleLeadsToAVirtualServiceUntilThatHasMoved(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	d.OneArm = arm()
	m := made(t, &d)
	rules := len(m.rules)
	g.Expect(rules).To(BeNumerically(">", 1))
	d.OneArm = nil

	_, err := m.converge(&d, 1)

	g.Expect(err).To(MatchError(errKilled))
	g.Expect(m.rules).To(HaveLen(rules), "the first virtual service has moved, the second has not")
	g.Expect(m.converge(&d, -1)).To(HaveField("Done()", true))
	g.Expect(m.rules).To(BeEmpty(), "they are found although no virtual service is behind them")
	for _, vs := range m.services {
		marker, _ := ParseMarker(vs.Description)
		g.Expect(marker.Forwarded).To(BeFalse())
	}
}
