// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestStepsForARemoval(t *testing.T) {
	tests := []struct {
		name string
		mods []func(*model)
		from func(*Desired)
		hand func(*model)
		want []string
	}{
		{
			name: "the IP set of the cluster is removed with its last load balancer",
			want: []string{"delete virtual-service tcp-80", "delete lb-pool tcp-80", "delete ip-set ipv4"},
		},
		{
			name: "the IP set is kept while another Service has objects",
			hand: func(m *model) {
				other := Marker{
					Owner: loadbalancer.Owner{
						Cluster:   ourService().Owner.Cluster,
						Namespace: "other",
						Name:      "other",
						UID:       "u9",
					},
					Listener: "tcp-80",
				}
				m.pools = append(m.pools, Pool{Object: Object{ID: "x", Name: "x", Description: other.String()}})
			},
			want: []string{"delete virtual-service tcp-80", "delete lb-pool tcp-80"},
		},
		{
			name: "objects that clients reach are removed first, and the address last",
			mods: []func(*model){withSpaces, withoutSets},
			from: func(d *Desired) { d.OneArm = arm() },
			want: []string{
				"delete dnat-rule tcp-80", "delete app-port-profile tcp-80", "delete virtual-service tcp-80",
				"delete lb-pool tcp-80", "delete ip-allocation 198.51.100.1",
			},
		},
		{
			name: "protected objects are removed before their firewall rules",
			mods: []func(*model){withoutSets},
			from: func(d *Desired) { d.SourceRanges = prefixList("192.0.2.0/24") },
			want: []string{
				"delete virtual-service tcp-80", "delete firewall-rule drop", "delete firewall-rule allow",
				"delete lb-pool tcp-80",
			},
		},
		{
			name: "an imported certificate is removed, and one of a user is kept",
			mods: []func(*model){withoutSets},
			from: func(d *Desired) { encrypt(d, Certificate{Chain: "PEM", Key: "k"}) },
			want: []string{"delete virtual-service tcp-80", "delete lb-pool tcp-80", "delete certificate"},
		},
		{
			name: "incomplete, pending and failed objects",
			mods: []func(*model){withoutSets},
			hand: func(m *model) { m.services = nil; m.pools[0].State = Failed },
			want: []string{"delete lb-pool tcp-80"},
		},
		{
			name: "virtual services that are pending",
			mods: []func(*model){withoutSets},
			hand: func(m *model) { m.services[0].State = Pending },
			want: []string{"delete virtual-service tcp-80", "delete lb-pool tcp-80"},
		},
		{
			name: "an allocation without a marker",
			mods: []func(*model){withSpaces, withoutSets},
			hand: func(m *model) {
				m.services = nil
				m.pools = nil
				m.claims[0].Description = ""
				m.claims[0].Used = false
			},
			want: []string{"delete ip-allocation 198.51.100.1"},
		},
		{
			name: "an address that another owner uses is kept",
			mods: []func(*model){withSpaces, withoutSets},
			hand: func(m *model) {
				m.services = append(m.services,
					VirtualService{
						Object:   Object{ID: "p", Name: "people's"},
						VIPs:     []netip.Addr{ip("198.51.100.1")},
						Protocol: loadbalancer.TCP,
						Port:     9,
					})
			},
			want: []string{"mark ip-allocation 198.51.100.1", "delete virtual-service tcp-80", "delete lb-pool tcp-80"},
		},
		{
			name: "an absent load balancer needs no steps",
			hand: func(m *model) {
				m.services = nil
				m.pools = nil
				m.sets = nil
			},
			want: []string{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			d := ourService()
			d.Listeners = d.Listeners[:1]
			if tt.from != nil {
				tt.from(&d)
			}
			m := made(t, &d, tt.mods...)
			if tt.hand != nil {
				tt.hand(m)
			}
			d.Absent = true

			g.Expect(brief(m.next(d))).To(Equal(tt.want))

			_, err := m.converge(&d, -1)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.left(d.Owner)).To(BeEmpty())
			g.Expect(m.certs).To(HaveLen(1))
		})
	}
}

func TestObjectsThatAllGatewaysShowWaitForTheOldGateway(t *testing.T) {
	for _, tt := range []struct {
		name   string
		unseen bool
		want   []string
	}{
		{name: "while it can be left soon", want: []string{}},
		{
			name:   "but for what VCD would not delete while it is used, where it cannot be seen",
			unseen: true,
			want:   []string{"delete app-port-profile tcp-80", "delete certificate"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			d := ourService()
			d.Listeners = d.Listeners[:1]
			d.OneArm = arm()
			encrypt(&d, Certificate{Chain: "PEM", Key: "k"})
			m := made(t, &d, withSpaces, withoutSets)
			m.services = nil
			m.pools = nil
			m.rules = nil
			m.claims[0].Used = false

			d.Absent = true
			d.Elsewhere = true
			d.Unseen = tt.unseen

			g.Expect(brief(m.next(d))).To(Equal(tt.want))
		})
	}
}

func TestACrashAfterEachWrite(t *testing.T) {
	ways := map[string]func(*Desired){
		"shared address": func(*Desired) {},
		"one-arm":        func(d *Desired) { d.OneArm = arm() },
		"all at once": func(d *Desired) {
			encrypt(d, Certificate{Chain: "PEM", Key: "k"})
			d.SourceRanges = prefixList("192.0.2.0/24")
		},
	}
	for name, mod := range ways {
		for at, mods := range gateways {
			t.Run(name+" with "+at, func(t *testing.T) {
				for kill := range 30 {
					g := NewWithT(t)
					m := newModel(mods...)
					d := ourService()
					mod(&d)

					plan, err := m.converge(&d, kill)
					if len(plan.Refusals) > 0 {
						return
					}
					if err == nil {
						break
					}
					g.Expect(err).To(MatchError(errKilled))
					again, err := m.converge(&d, -1)
					g.Expect(err).NotTo(HaveOccurred(), "killed after %d writes", kill)
					g.Expect(served(m, &d, again)).To(Succeed(), "killed after %d writes", kill)
					g.Expect(len(m.claims)).To(BeNumerically("<=", 1), "killed after %d writes", kill)

					d.Absent = true
					_, err = m.converge(&d, kill)
					g.Expect(err).To(Or(Succeed(), MatchError(errKilled)))
					_, err = m.converge(&d, -1)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(m.left(d.Owner)).To(BeEmpty())
					g.Expect(m.claims).To(BeEmpty())
					g.Expect(m.sets).To(BeEmpty())
				}
			})
		}
	}
}

// A change of how clients come in is a crash at each of its writes away from losing them: a DNAT rule goes only when
// the virtual service behind it has moved.
func TestACrashWhileVirtualServicesMove(t *testing.T) {
	moves := map[string]struct {
		forwarded bool
		to        func(*Desired)
	}{
		"out of one-arm mode":  {true, func(d *Desired) { d.OneArm = nil }},
		"to another arm range": {true, func(d *Desired) { d.OneArm = otherArm() }},
		"into one-arm mode":    {false, func(d *Desired) { d.OneArm = arm() }},
		"to a second family":   {false, func(d *Desired) { d.Families = []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6} }},
		"to another address":   {false, func(d *Desired) { d.Requested = []netip.Addr{ip("203.0.113.22")} }},
	}
	for name, move := range moves {
		for how, mods := range map[string][]func(*model){"in place": nil, "by deletion": {fixedVIPs}} {
			t.Run(name+" "+how, func(t *testing.T) {
				for kill := range 20 {
					g := NewWithT(t)
					d := ourService()
					if move.forwarded {
						d.OneArm = arm()
					}
					m := made(t, &d, mods...)
					d.Published = m.next(d).Status.Addresses
					move.to(&d)

					_, err := m.converge(&d, kill)

					g.Expect(err).To(Or(Succeed(), MatchError(errKilled)))
					if move.forwarded {
						g.Expect(lost(m, d)).To(BeEmpty(), "killed after %d writes", kill)
					}
					_, again := m.converge(&d, -1)
					g.Expect(again).NotTo(HaveOccurred(), "killed after %d writes", kill)
					plan := m.next(d)
					g.Expect(plan.Done()).To(BeTrue())
					g.Expect(served(m, &d, plan)).To(Succeed(), "killed after %d writes", kill)
					if len(d.Requested) == 0 {
						g.Expect(plan.Status.Addresses[:1]).To(Equal(d.Published), "killed after %d writes", kill)
					}
					if d.OneArm == nil {
						g.Expect(m.rules).To(BeEmpty(), "killed after %d writes", kill)
						g.Expect(m.profiles).To(BeEmpty(), "killed after %d writes", kill)
					}
					if err == nil {
						break
					}
				}
			})
		}
	}
}

func otherArm() *Range { r := addresses("192.168.9.2-192.168.9.100"); return &r }

// lost are the ports for which nothing is on the published address: neither a rule nor the virtual service itself.
func lost(m *model, d Desired) []int {
	var out []int
	for _, l := range d.Listeners {
		rule := slices.ContainsFunc(m.rules,
			func(r Rule) bool { return r.ExternalPort == l.Port && r.External == d.Published[0] })
		if !rule && !slices.ContainsFunc(m.services, func(vs VirtualService) bool {
			return vs.Port == l.Port && slices.Contains(vs.VIPs, d.Published[0])
		}) {
			out = append(out, l.Port)
		}
	}
	return out
}

func TestTwoServicesOnOneAddress(t *testing.T) {
	g := NewWithT(t)
	m := newModel(withSpaces)
	first := ourService()
	second := ourService()
	first.Share = "dns"
	second.Share = "dns"
	second.Owner.Name = "web2"
	second.Owner.UID = "22222222-2222-2222-2222-222222222222"
	second.Listeners = []Listener{{Protocol: loadbalancer.UDP, Application: L4, Port: 53, NodePort: 30053}}

	one, err := m.converge(&first, -1)
	g.Expect(err).NotTo(HaveOccurred())
	two, err := m.converge(&second, -1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(two.Status.Addresses).To(Equal(one.Status.Addresses))
	g.Expect(m.claims).To(HaveLen(1))

	first.Absent = true
	_, err = m.converge(&first, -1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.claims).To(HaveLen(1), "the address passes to the one that is left")
	g.Expect(m.next(second).Done()).To(BeTrue())
	second.Absent = true
	_, err = m.converge(&second, -1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.claims).To(BeEmpty())
}

func TestServicesThatShareAnAddressDoNotWaitForEachOther(t *testing.T) {
	g := NewWithT(t)
	m := newModel(withSpaces)
	pair := [2]Desired{ourService(), ourService()}
	pair[1].Owner.Name = "web2"
	pair[1].Owner.UID = "22222222-2222-2222-2222-222222222222"
	pair[1].Listeners = []Listener{{Protocol: loadbalancer.UDP, Application: L4, Port: 53, NodePort: 30053}}
	for i := range pair {
		pair[i].Share = "dns"
		for _, l := range pair[1-i].Listeners { // as each is about to make it
			pair[i].Reserved = append(pair[i].Reserved, loadbalancer.Use{
				Address:  ip("198.51.100.1"),
				Protocol: l.Protocol,
				Port:     l.Port,
				Kind:     KindService,
				Name:     "x",
				Owner:    pair[1-i].Owner,
				Share:    "dns",
			})
		}
	}

	for i := range pair {
		plan, err := m.converge(&pair[i], -1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plan.Status.Addresses).To(Equal([]netip.Addr{ip("198.51.100.1")}))
	}

	g.Expect(m.claims).To(HaveLen(1))

	m.claims = nil // released by hand, though both are on it
	for i := range pair {
		_, err := m.converge(&pair[i], -1)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(m.claims).To(HaveLen(1))
}

func TestAnAddressIsSharedOnlyIfBothServicesAgree(t *testing.T) {
	g := NewWithT(t)
	m := newModel()
	first := ourService()
	second := ourService()
	second.Owner.Name = "web2"
	second.Owner.UID = "22222222-2222-2222-2222-222222222222"
	second.Share = "dns"
	_, err := m.converge(&first, -1)
	g.Expect(err).NotTo(HaveOccurred())

	second.Listeners[0].Port = 81
	second.Listeners[1].Port = 444
	second.Requested = m.next(first).Status.Addresses
	plan, err := m.converge(&second, -1)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan.Refusals).To(ConsistOf(HaveField("Reason", AddressInUse)))
}

func TestAnAddressThatAnotherClientTookFirst(t *testing.T) {
	g := NewWithT(t)
	m := newModel(withoutSets)
	d := ourService()
	_, err := m.converge(&d, 1)
	g.Expect(err).To(MatchError(errKilled))
	g.Expect(d.Intent).To(Equal([]netip.Addr{ip("203.0.113.10")}))
	m.services = append(m.services,
		VirtualService{Object: Object{ID: "p", Name: "people's"}, VIPs: d.Intent, Protocol: loadbalancer.TCP, Port: 80})

	plan, err := m.converge(&d, -1)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan.Status.Addresses).To(Equal([]netip.Addr{ip("203.0.113.11")}))
}

func TestMembersBeyondTheMaximumOfAPool(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	d.Members = nil
	for i := range byte(200) {
		d.Members = append(d.Members, netip.AddrFrom4([4]byte{10, 0, 1, i}))
	}
	first := newModel(withoutSets).next(d)
	g.Expect(first.Notices).To(ConsistOf(HaveField("Reason", TooManyMembers)))
	some := stepsOf(first)[0].Pool.Members
	g.Expect(some).To(HaveLen(100))

	d.Members = append(d.Members[:0:0], d.Members[1:]...)
	next := stepsOf(newModel(withoutSets).next(d))[0].Pool.Members
	changed := 0
	for _, a := range next {
		if !containsAddr(some, a) {
			changed++
		}
	}
	g.Expect(changed).To(BeNumerically("<=", 1), "a node that goes changes one member at most")
}

func containsAddr(list []netip.Addr, a netip.Addr) bool {
	for _, x := range list {
		if x == a {
			return true
		}
	}
	return false
}

func TestMonitors(t *testing.T) {
	g := NewWithT(t)

	g.Expect(Listener{Protocol: loadbalancer.TCP}.monitors()).To(Equal([]Monitor{MonitorTCP}))
	g.Expect(Listener{Protocol: loadbalancer.UDP}.monitors()).To(Equal([]Monitor{MonitorUDP}))
	g.Expect(Listener{Protocol: loadbalancer.UDP, Monitor: MonitorPing}.monitors()).To(Equal([]Monitor{MonitorPing}))
	g.Expect(Listener{Protocol: loadbalancer.TCP, Monitor: MonitorNone}.monitors()).To(BeEmpty())
}

func TestNamesAndMarkersFit(t *testing.T) {
	g := NewWithT(t)
	long := loadbalancer.Owner{
		Cluster:   "urn:vcloud:entity:vmware:capvcdCluster:11111111-1111-1111-1111-111111111111",
		Namespace: strings.Repeat("n", 63),
		Name:      strings.Repeat("s", 63),
		UID:       "22222222-2222-2222-2222-222222222222",
	}
	for kind := range prefixes {
		g.Expect(len(nameFor(kind, long, "tcp-65535"))).To(BeNumerically("<=", maxName))
	}
	m := Marker{Owner: long, Listener: "tcp-65535", Via: ViaInside, Filtered: true, Wrote: "0123456789"}
	g.Expect(len(m.String())).To(BeNumerically("<=", maxDescription))
	got, ok := ParseMarker(m.String())
	g.Expect(ok).To(BeTrue())
	g.Expect(got.Owner.Is(long)).To(BeTrue())
	got.Owner = long
	g.Expect(got).To(Equal(m))
}

func TestAStepContainsNoSecret(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	encrypt(&d, Certificate{Chain: "PEM", Key: "SECRET"})
	for _, s := range stepsOf(newModel().next(d)) {
		g.Expect(s.String()).NotTo(ContainSubstring("SECRET"))
		g.Expect(s.Name).NotTo(ContainSubstring("SECRET"))
	}
}
