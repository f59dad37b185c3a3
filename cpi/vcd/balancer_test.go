// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// network is the gateway of a network.
func network(name, of string) vcdconfig.Gateway {
	return vcdconfig.Gateway{Name: name, EdgeGateway: vcdconfig.EdgeGateway{Network: of}}
}

func (s *site) balancer(gateways ...vcdconfig.Gateway) *Balancer {
	return s.reportingBalancer(nil, gateways...)
}

func (s *site) reportingBalancer(r *Reporter, gateways ...vcdconfig.Gateway) *Balancer {
	return NewBalancer(BalancerOptions{
		Reporter:  r,
		Session:   s.sessions.Session,
		Driver:    edge.New(s.sessions.Session, edge.Options{}),
		ClusterID: "c1",
		VDCs:      []string{"acme-vdc"},
		Gateways:  gateways,
	})
}

func wanted() service.Desired {
	return service.Desired{
		Desired: loadbalancer.Desired{
			Owner:    owner,
			Families: []loadbalancer.Family{loadbalancer.IPv4},
		},
		Members: []service.Member{{Addresses: []netip.Addr{netip.MustParseAddr("192.168.100.10")}}},
		Ports:   []service.Port{{Name: "http", Protocol: loadbalancer.TCP, Number: 80, NodePort: 30080}},
		Extra:   lb.Desired{Listeners: []lb.Listener{{Application: lb.L4}}},
	}
}

// nothing is the request for no load balancer.
func nothing() service.Desired {
	return service.Desired{Desired: loadbalancer.Desired{
		Owner:  owner,
		Absent: true,
	}}
}

// settle runs plans until nothing is left to do.
func settle(t *testing.T, b cpi.Balancer, place string, want service.Desired) loadbalancer.Plan {
	t.Helper()
	g := NewWithT(t)
	for range 20 {
		p, err := b.Plan(t.Context(), place, cpi.PlanRequest{Want: want, Fresh: true})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.Refusals).To(BeEmpty())
		if p.Done() {
			return p
		}
		if len(p.Intent) > 0 {
			want.Intent = p.Intent
		}
		for _, step := range p.Steps {
			g.Expect(b.Run(t.Context(), place, step)).To(Succeed(), step.String())
		}
	}
	t.Fatal("it is never done")
	return loadbalancer.Plan{}
}

func TestBalancerOnTheGatewayOfANetwork(t *testing.T) {
	s := newSite(t, 0, 0)
	id := s.entity(t, "vmware:capvcdCluster:1.1.0", `{"kind":"CAPVCDCluster"}`)
	reporter := NewReporter(ReporterOptions{Session: s.sessions.Session, ID: id, Version: "2.0.0"})
	b := s.reportingBalancer(reporter, network("", "nodes"))

	gateway, err := b.Locate(t.Context(), "")
	s.Expect(err).NotTo(HaveOccurred())

	made := settle(t, b, gateway, wanted())

	s.Expect(made.Status.Addresses).To(HaveLen(1))
	s.Expect(b.Owners(t.Context(), gateway)).To(ConsistOf(owner), "the set of nodes is the cluster's")
	s.Expect(reporter.write(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).To(And(ContainSubstring(made.Status.Addresses[0].String()),
		ContainSubstring("virtual-service"), ContainSubstring("CreatedLoadbalancer")))

	settle(t, b, gateway, nothing())
	s.Expect(reporter.write(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).To(And(Not(ContainSubstring("virtual-service")), ContainSubstring("DeletedLoadbalancer"),
		ContainSubstring(`"virtualIPs":[]`)))
}

func TestAnUnrecordedRemovalUpdatesTheRecord(t *testing.T) {
	s := newSite(t, 0, 0)
	id := s.entity(t, "vmware:capvcdCluster:1.1.0",
		`{"status":{"cpi":{"vcdResourceSet":[{"type":"VApp","id":"v","name":"n"}]}}}`)
	clock := testingclock.NewFakeClock(time.Now())
	b := s.balancer(network("", "nodes"))
	start := func() (*Reporter, *Balancer) {
		r := NewReporter(ReporterOptions{Session: s.sessions.Session, ID: id, Version: "2.0.0", Clock: clock})
		return r, s.reportingBalancer(r, network("", "nodes"))
	}
	before, reported := start()
	gateway, err := b.Locate(t.Context(), "")
	s.Expect(err).NotTo(HaveOccurred())
	other := wanted()
	other.Owner.Name = "api"
	other.Owner.UID = "u2"
	web := settle(t, reported, gateway, wanted()).Status
	api := settle(t, reported, gateway, other).Status
	s.Expect(before.write(t.Context())).To(Succeed())
	settle(t, b, gateway, nothing())

	after, reported := start()
	s.Expect(after.searchStale(t.Context())).To(Succeed())
	s.Expect(after.write(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).To(ContainSubstring(web.Objects[0].ID), "it is not looked before Services were")
	clock.Step(firstStaleSearch)
	s.Expect(after.searchStale(t.Context())).To(Succeed())
	s.Expect(after.write(t.Context())).To(Succeed())

	content := s.content(t, id)
	for _, o := range web.Objects {
		s.Expect(content).NotTo(ContainSubstring(o.ID))
	}
	s.Expect(content).NotTo(ContainSubstring(`"` + web.Addresses[0].String() + `"`))
	s.Expect(content).To(And(ContainSubstring(api.Objects[0].ID),
		ContainSubstring(`"virtualIPs":["`+api.Addresses[0].String()+`"]`)), "what stands stays")
	s.Expect(content).To(ContainSubstring(`{"id":"v","name":"n","type":"VApp"}`), "and so does what others wrote")

	settle(t, reported, gateway, other)
	clock.Step(staleInterval)
	s.sim.ResetCounters()
	s.Expect(after.searchStale(t.Context())).To(Succeed())
	s.Expect(s.sim.Counters()).To(HaveLen(1), "where all is known, nothing but the entity is read")
}

func TestPlacesThatAreNot(t *testing.T) {
	s := newSite(t, 0, 0)
	b := s.balancer(network("", "none"), vcdconfig.Gateway{Name: "edge", EdgeGateway: vcdconfig.EdgeGateway{ID: "none"}})
	for place, text := range map[string]string{
		"":     `network "none"`,
		"edge": `edge gateway "none"`,
		"typo": `no gateway "typo"`,
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)

			_, err := b.Locate(t.Context(), place)

			g.Expect(err).To(And(MatchError(loadbalancer.ErrRefused), MatchError(ContainSubstring(text))))
		})
	}
}

func TestTheEdgeGatewayByItsName(t *testing.T) {
	s := newSite(t, 0, 0)
	name := s.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].Name
	byNetwork := s.balancer(network("", "nodes"))
	byName := s.balancer(vcdconfig.Gateway{EdgeGateway: vcdconfig.EdgeGateway{ID: name}})

	one, err := byNetwork.Locate(t.Context(), "")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(byName.Locate(t.Context(), "")).To(Equal(one))
}

func TestAddressesThatTheServiceProviderAddsAreUsedWithinAMinute(t *testing.T) {
	s := newSite(t, 0, 0)
	clock := testingclock.NewFakeClock(time.Now())
	b := NewBalancer(BalancerOptions{
		Session:   s.sessions.Session,
		Driver:    edge.New(s.sessions.Session, edge.Options{Clock: clock}),
		ClusterID: "c1",
		VDCs:      []string{"acme-vdc"},
		Gateways:  []vcdconfig.Gateway{network("", "nodes")},
	})
	gateway, err := b.Locate(t.Context(), "")
	s.Expect(err).NotTo(HaveOccurred())
	outside := wanted()
	crowded := wanted()
	outside.Requested = []netip.Addr{netip.MustParseAddr("203.0.113.150")}
	crowded.Extra = lb.Desired{EngineGroup: "more"}
	refusals := func(want service.Desired) []loadbalancer.Finding {
		p, err := b.Plan(t.Context(), gateway, cpi.PlanRequest{Want: want})
		s.Expect(err).NotTo(HaveOccurred())
		return p.Refusals
	}
	s.Expect(refusals(outside)).To(ConsistOf(HaveField("Reason", lb.AddressOutOfRange)))
	s.Expect(refusals(crowded)).To(ConsistOf(HaveField("Reason", lb.EngineGroupUnavailable)))
	documents := s.sim.State().Documents
	s.sim.Edit(func(e *vcdsim.Editor) {
		g := &e.Model.Orgs[1].VDCs[0].EdgeGateways[0]
		g.Uplinks[0].Subnets[0].Addresses = append(g.Uplinks[0].Subnets[0].Addresses,
			vcdsim.Range{From: outside.Requested[0], To: outside.Requested[0]})
		for _, d := range documents {
			if d.Path == "1.0.0/loadBalancer/serviceEngineGroups" {
				e.Document(d.ID, func(body map[string]any) { body["name"] = "more" })
			}
		}
	})

	s.sim.ResetCounters()
	for range 3 {
		s.Expect(refusals(outside)).NotTo(BeEmpty())
	}
	s.Expect(s.sim.Counters()).To(BeEmpty(), "nothing is read twice in a minute")

	clock.Step(time.Minute)
	s.Expect(refusals(outside)).To(BeEmpty())
	s.Expect(refusals(crowded)).To(BeEmpty())
}
