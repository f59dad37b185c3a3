// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// reasonsOf are the reasons of findings, in order.
func reasonsOf(findings []loadbalancer.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Reason)
	}
	return out
}

// first is the first plan, when of the facts that cost requests only some are known.
func (m *model) first(d Desired, known Facts) Plan {
	return Make(d, m.observe(Query{Owner: d.Owner, Facts: known}), m.caps)
}

func TestRefusalsThatCompete(t *testing.T) {
	tests := []struct {
		name   string
		mods   []func(*model)
		change func(*Desired)
		want   []string
	}{
		{
			name: "all problems of the desired state are reported at once, in the order of the checks",
			change: func(d *Desired) {
				d.Members = nil
				d.Listeners[0].NodePort = 0
				d.Listeners = append(d.Listeners, d.Listeners[1])
				d.Requested = []netip.Addr{ip("2001:db8::11")}
				d.SourceRanges = prefixList("192.0.2.0/24")
				d.Algorithm = "MAGIC"
				d.Share = "two words"
				d.OneArm = &Range{ip("192.168.8.9"), ip("192.168.8.2")}
			},
			mods: []func(*model){func(m *model) { m.caps.SourceRanges = false }},
			want: []string{NoMembers, InvalidPort, InvalidPort, InvalidFamilies, Unsupported, Unsupported, Unsupported, InvalidRange},
		},
		{
			name:   "a gateway without a load balancer hides all else",
			change: func(d *Desired) { d.Listeners = nil },
			mods:   []func(*model){func(m *model) { m.caps.Disabled = true }},
			want:   []string{Unsupported},
		},
		{
			name: "problems of the desired state come before objects of the owner with another ID",
			mods: []func(*model){func(m *model) {
				stray := ourService().Owner
				stray.Cluster = "former"
				m.pools = append(m.pools, Pool{Object: Object{ID: "stray", Name: "stray", Description: Marker{Owner: stray}.String()}})
			}},
			change: func(d *Desired) { d.Algorithm = "MAGIC" },
			want:   []string{Unsupported},
		},
		{
			name: "the address of each family is rejected",
			change: func(d *Desired) {
				d.Families = []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6}
				d.Requested = []netip.Addr{ip("2001:db8::99"), ip("9.9.9.9")}
			},
			want: []string{AddressOutOfRange, AddressOutOfRange},
		},
		{
			name: "a missing free address is reported only if nothing else is wrong with addresses",
			mods: []func(*model){func(m *model) { m.gateway.Ranges = []Range{addresses("203.0.113.10-203.0.113.10")} }},
			change: func(d *Desired) {
				d.Families = []loadbalancer.Family{loadbalancer.IPv6, loadbalancer.IPv4}
				d.Members = append(d.Members, ip("fd00::11"))
				d.Requested = []netip.Addr{ip("2001:db8::99")}
				d.Reserved = []loadbalancer.Use{{Address: ip("203.0.113.10"), Kind: KindService, Name: "soon", Reserved: true}}
			},
			want: []string{AddressOutOfRange},
		},
		{
			name: "an unavailable address hides an unknown certificate and missing engine groups",
			mods: []func(*model){func(m *model) { m.gateway.Groups = nil }},
			change: func(d *Desired) {
				d.Requested = []netip.Addr{ip("9.9.9.9")}
				encrypt(d, Certificate{Alias: "typo"})
			},
			want: []string{AddressOutOfRange},
		},
		{
			name: "unknown certificates, one for each port, hide missing engine groups",
			mods: []func(*model){func(m *model) { m.gateway.Groups = nil }},
			change: func(d *Desired) {
				encrypt(d, Certificate{Alias: "typo"})
				d.Listeners[1].Certificate.Alias = "slip"
			},
			want: []string{CertificateNotFound, CertificateNotFound},
		},
		{
			name: "a port that is taken hides an unknown certificate",
			mods: []func(*model){func(m *model) {
				m.hosts = append(m.hosts, loadbalancer.Use{
					Address: ip("203.0.113.10"),
					Port:    443,
					Kind:    KindService,
					Name:    "neighbour",
					Owner:   loadbalancer.Owner{Cluster: ourService().Owner.Cluster, Namespace: "x", Name: "x", UID: "x"},
					Share:   "web",
				})
			}},
			change: func(d *Desired) {
				d.Share = "web"
				encrypt(d, Certificate{Alias: "typo"})
			},
			want: []string{PortInUse},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			d := ourService()
			m := newModel(tt.mods...)
			tt.change(&d)

			plan := Make(d, m.observe(Query{Owner: d.Owner, Facts: ^Facts(0)}), m.caps)

			g.Expect(reasonsOf(plan.Refusals)).To(Equal(tt.want))
			g.Expect(plan.Steps).To(BeEmpty())
		})
	}
}

func TestFactsAreRequestedInFewRounds(t *testing.T) {
	g := NewWithT(t)
	m := newModel()
	d := ourService()
	encrypt(&d, Certificate{Alias: "shop"})
	d.SourceRanges = prefixList("192.0.2.0/24")

	g.Expect(m.first(d, 0).Needs).To(Equal(Addresses), "without an address the rest would be guessed")
	g.Expect(m.first(d, Addresses).Needs).To(Equal(Certificates | EngineGroups | Firewall))

	d.OneArm = arm()
	g.Expect(m.first(d, 0).Needs).To(Equal(Forwardings), "a rule shows the address")
}

func TestPoolsAreReadCompletelyAfterAllOtherFacts(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	m := made(t, &d, withoutSets)
	m.pools[0].Monitors = nil
	encrypt(&d, Certificate{Alias: "shop"})

	g.Expect(m.first(d, 0).Needs).To(Equal(Certificates))
	g.Expect(m.first(d, Certificates).Needs).To(Equal(FullPools))
	d.SourceRanges = prefixList("192.0.2.0/24")
	g.Expect(m.first(d, Certificates).Needs).To(Equal(FullPools | Firewall))
}

func TestARefusalHasPrecedenceOverMissingFacts(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	d.Listeners = d.Listeners[:1]
	m := made(t, &d)
	d.EngineGroup = "typo"
	encrypt(&d, Certificate{Alias: "other"})

	plan := m.first(d, EngineGroups)

	g.Expect(plan.Needs).To(BeZero())
	g.Expect(reasonsOf(plan.Refusals)).To(Equal([]string{EngineGroupUnavailable}))
}

func TestARefusalShowsThePortsOnceTheirObjectsAreKnown(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	m := made(t, &d)
	m.services = m.services[1:]
	d.Requested = []netip.Addr{ip("9.9.9.9")}
	g.Expect(m.next(d).Status.Ports).To(BeEmpty(), "refused before ports are looked at")
	g.Expect(m.next(d).Status.Objects).To(HaveLen(3))

	d.Requested = nil
	d.EngineGroup = "typo"
	refused := m.next(d)

	g.Expect(reasonsOf(refused.Refusals)).To(Equal([]string{EngineGroupUnavailable, EngineGroupUnavailable}), "for the missing one and for the one to move")
	g.Expect(refused.Status.Ports).To(ConsistOf(
		And(HaveField("Port", 80), HaveField("Problem", problemMissing)),
		And(HaveField("Port", 443), HaveField("Problem", "")),
	))
	g.Expect(refused.Status.Addresses).To(BeEmpty())
}

func TestNoticesAreSortedByTheirSubject(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	d.OneArm = arm()
	m := made(t, &d, withoutSets)
	m.caps.MaxMembers = 1
	m.caps.IPv6 = false
	stray := d.Owner
	stray.Cluster = "former"
	m.pools = append(m.pools, Pool{Object: Object{ID: "stray", Name: "stray", Description: Marker{Owner: stray}.String()}})
	d.Families = []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6}
	d.IPSpace = "public"

	g.Expect(reasonsOf(m.next(d).Notices)).To(Equal([]string{Unsupported, Unsupported, ClusterIDMismatch, TooManyMembers}))
}

func TestARemovalBeginsAtTheClients(t *testing.T) {
	g := NewWithT(t)
	d := ourService()
	d.OneArm = arm()
	d.SourceRanges = prefixList("192.0.2.0/24")
	encrypt(&d, Certificate{Chain: "PEM", Key: "k"})
	m := made(t, &d, withoutSets)
	d.Listeners = slices.Clone(d.Listeners)[1:]
	d.Listeners[0].Application = L4
	d.Listeners[0].Certificate = Certificate{}
	d.SourceRanges = nil
	d.OneArm = nil

	g.Expect(brief(m.next(d))).To(Equal([]string{
		"update virtual-service tcp-443",
		"delete firewall-rule drop", "delete firewall-rule allow",
		"delete dnat-rule tcp-80", "delete dnat-rule tcp-443",
		"delete app-port-profile tcp-80", "delete app-port-profile tcp-443",
		"delete virtual-service tcp-80",
		"delete lb-pool tcp-80",
		"delete certificate",
	}))
}
