// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func endpoint(members ...string) Desired {
	d := Desired{
		Desired: loadbalancer.Desired{
			Owner:    loadbalancer.EndpointOf("c1"),
			Families: []loadbalancer.Family{loadbalancer.IPv4},
		},
		OwnMembers: true,
		Listeners:  []Listener{{Protocol: loadbalancer.TCP, Application: L4, Port: 6443, NodePort: 6443}},
	}
	for _, m := range members {
		d.Members = append(d.Members, ip(m))
	}
	return d
}

func TestAnEndpointIsCreatedBeforeItHasMembers(t *testing.T) {
	g := NewWithT(t)
	m := newModel()
	d := endpoint()

	g.Expect(brief(m.next(d))).To(Equal([]string{"create lb-pool tcp-6443", "create virtual-service tcp-6443"}))
	_, err := m.converge(&d, -1)
	g.Expect(err).NotTo(HaveOccurred())

	for _, members := range [][]string{{"10.0.0.1"}, {"10.0.0.1", "10.0.0.2"}, {"10.0.0.2"}, {}} {
		d.Members = endpoint(members...).Members
		g.Expect(brief(m.next(d))).To(Equal([]string{"update lb-pool tcp-6443"}), "one write for %v", members)
		_, err := m.converge(&d, -1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.pools[0].Members).To(Equal(append([]netip.Addr(nil), d.Members...)))
		g.Expect(m.pools[0].Monitors).To(Equal([]Monitor{MonitorTCP}))
	}
	g.Expect(m.sets).To(BeEmpty())
}

func TestMembersOfARefusedEndpointFollowTheControlPlane(t *testing.T) {
	g := NewWithT(t)
	d := endpoint("10.0.0.1")
	m := made(t, &d)
	for _, members := range [][]string{{}, {"10.0.0.2"}} {
		d.Members = endpoint(members...).Members

		plan := Follow(d, m.observe(Query{Owner: d.Owner, Facts: FullPools | Forwardings}), m.caps)

		g.Expect(brief(plan)).To(Equal([]string{"update lb-pool tcp-6443"}))
		g.Expect(m.run(stepsOf(plan)[0])).To(Succeed())
	}
}

// TestServicesAndTheEndpointDoNotAffectEachOther holds what keeps both on one gateway: other addresses, other
// names, and removals that do not touch the other's objects.
func TestServicesAndTheEndpointDoNotAffectEachOther(t *testing.T) {
	for _, oneArm := range []*Range{nil, arm()} {
		g := NewWithT(t)
		service := ourService()
		control := endpoint("10.0.0.1")
		service.OneArm = oneArm
		control.OneArm = oneArm
		control.Owner = loadbalancer.EndpointOf(service.Owner.Cluster)
		m := made(t, &service)
		_, err := m.converge(&control, -1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.next(service).Steps).To(BeEmpty())
		g.Expect(m.next(control).Steps).To(BeEmpty())
		vips := map[netip.Addr]loadbalancer.Owner{}
		for _, vs := range m.services {
			marker, _ := ParseMarker(vs.Description)
			for _, a := range vs.VIPs {
				g.Expect(vips[a]).To(Or(BeZero(), Equal(marker.Owner)))
				vips[a] = marker.Owner
			}
		}

		gone := service
		gone.Absent = true
		_, err = m.converge(&gone, -1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.next(control).Steps).To(BeEmpty())

		m = made(t, &service)
		_, err = m.converge(&control, -1)
		g.Expect(err).NotTo(HaveOccurred())
		control.Absent = true
		_, err = m.converge(&control, -1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.next(service).Steps).To(BeEmpty())
		g.Expect(m.sets).NotTo(BeEmpty())
	}
}

func TestTheMarkerOfAnEndpointIsNotThatOfAService(t *testing.T) {
	g := NewWithT(t)
	m := Marker{Owner: loadbalancer.EndpointOf("c1"), Listener: "tcp-6443", Wrote: "abc"}

	read, ok := ParseMarker("text before " + m.String() + " and after")

	g.Expect(ok).To(BeTrue())
	g.Expect(read).To(Equal(m))
	g.Expect(read.Owner.IsEndpoint()).To(BeTrue())
	g.Expect(read.Owner.WholeCluster()).To(BeFalse())
	g.Expect(m.String()).NotTo(ContainSubstring("service="))
	_, stray := StrayOf(loadbalancer.EndpointOf("c2"), "n", m.String())
	g.Expect(stray).To(BeFalse(), "endpoints of two clusters are no copies of one")
}

func TestAGatewayWithoutALoadBalancerIsNamed(t *testing.T) {
	g := NewWithT(t)
	m := newModel(func(m *model) { m.caps.Disabled = true })

	for _, d := range []Desired{ourService(), endpoint()} {
		plan := m.next(d)
		g.Expect(plan.Refusals).To(ConsistOf(And(HaveField("Reason", Unsupported),
			HaveField("Message", ContainSubstring(`"edge" has no load balancer`)))))
	}
}

func TestEngineGroupsAndSpacesAreNamedByNameOrURN(t *testing.T) {
	for _, named := range []func(*Desired){
		func(d *Desired) {
			d.EngineGroup = "large"
			d.IPSpace = "public"
		},
		func(d *Desired) {
			d.EngineGroup = "seg-2"
			d.IPSpace = "space-1"
		},
	} {
		g := NewWithT(t)
		d := endpoint()
		named(&d)
		m := made(t, &d, withSpaces)

		g.Expect(m.services[0].EngineGroup.Name).To(Equal("large"))
		g.Expect(m.next(d).Steps).To(BeEmpty())
	}
}
