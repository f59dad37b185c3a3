package vcd

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func (s *site) balancer(places ...vcdconfig.Gateway) *Balancer {
	return NewBalancer(BalancerOptions{
		Session: s.sessions.Session, Driver: edge.New(s.sessions.Session, edge.Options{}), ClusterID: "c1", VDCs: []string{"acme-vdc"}, Places: places,
	})
}

func wanted() lb.Desired {
	return lb.Desired{
		Owner: owner, Families: []lb.Family{lb.IPv4}, Members: []netip.Addr{netip.MustParseAddr("192.168.100.10")},
		Listeners: []lb.Listener{{Name: "http", Protocol: lb.TCP, Application: lb.L4, Port: 80, NodePort: 30080}},
	}
}

// settle runs plans until nothing is left to do.
func settle(t *testing.T, b cpi.Balancer, place string, want lb.Desired) lb.Plan {
	t.Helper()
	g := NewWithT(t)
	for range 20 {
		plan, err := b.Plan(t.Context(), place, cpi.PlanRequest{Want: want, Fresh: true})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plan.Refusals).To(BeEmpty())
		if plan.Done() {
			return plan
		}
		if len(plan.Intent) > 0 {
			want.Intent = plan.Intent
		}
		for _, step := range plan.Steps {
			g.Expect(b.Run(t.Context(), place, step)).To(Succeed(), step.String())
		}
	}
	t.Fatal("it is never done")
	return lb.Plan{}
}

func TestBalancerOnTheGatewayOfANetwork(t *testing.T) {
	s := newSite(t, 0, 0)
	id := s.entity(t, "vmware:capvcdCluster:1.1.0", `{"kind":"CAPVCDCluster"}`)
	ledger := NewLedger(LedgerOptions{Session: s.sessions.Session, ID: id, Version: "2.0.0"})
	b := cpi.Recorded(s.balancer(onNetwork("", "nodes")), ledger)

	gateway, err := b.Place(t.Context(), "")
	s.Expect(err).NotTo(HaveOccurred())

	plan := settle(t, b, gateway, wanted())

	s.Expect(plan.Status.Addresses).To(HaveLen(1))
	s.Expect(b.Owners(t.Context(), gateway)).To(ContainElement(HaveField("Name", "web")))
	s.Expect(ledger.write(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).To(And(ContainSubstring(plan.Status.Addresses[0].String()), ContainSubstring("virtual-service"), ContainSubstring("CreatedLoadbalancer")))

	settle(t, b, gateway, lb.Desired{Owner: owner, Absent: true})
	s.Expect(ledger.write(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).To(And(Not(ContainSubstring("virtual-service")), ContainSubstring("DeletedLoadbalancer"), ContainSubstring(`"virtualIPs":[]`)))
}

func TestWhatGoesWhileNobodyWritesItDownLeavesTheRecord(t *testing.T) {
	s := newSite(t, 0, 0)
	id := s.entity(t, "vmware:capvcdCluster:1.1.0", `{"status":{"cpi":{"vcdResourceSet":[{"type":"VApp","id":"v","name":"n"}]}}}`)
	clock := testingclock.NewFakeClock(time.Now())
	b := s.balancer(onNetwork("", "nodes"))
	start := func() *Ledger {
		return NewLedger(LedgerOptions{Session: s.sessions.Session, ID: id, Version: "2.0.0", Clock: clock, Standing: b.Standing})
	}
	before := start()
	gateway, err := b.Place(t.Context(), "")
	s.Expect(err).NotTo(HaveOccurred())
	other := wanted()
	other.Owner.Name, other.Owner.UID = "api", "u2"
	web := settle(t, cpi.Recorded(b, before), gateway, wanted()).Status
	api := settle(t, cpi.Recorded(b, before), gateway, other).Status
	s.Expect(before.write(t.Context())).To(Succeed())
	settle(t, b, gateway, lb.Desired{Owner: owner, Absent: true})

	after := start()
	s.Expect(after.look(t.Context())).To(Succeed())
	s.Expect(after.write(t.Context())).To(Succeed())
	s.Expect(s.content(t, id)).To(ContainSubstring(web.Objects[0].ID), "it is not looked before Services were")
	clock.Step(ledgerFirstLook)
	s.Expect(after.look(t.Context())).To(Succeed())
	s.Expect(after.write(t.Context())).To(Succeed())

	content := s.content(t, id)
	for _, o := range web.Objects {
		s.Expect(content).NotTo(ContainSubstring(o.ID))
	}
	s.Expect(content).NotTo(ContainSubstring(`"` + web.Addresses[0].String() + `"`))
	s.Expect(content).To(And(ContainSubstring(api.Objects[0].ID), ContainSubstring(`"virtualIPs":["`+api.Addresses[0].String()+`"]`)), "what stands stays")
	s.Expect(content).To(ContainSubstring(`{"id":"v","name":"n","type":"VApp"}`), "and so does what others wrote")

	settle(t, cpi.Recorded(b, after), gateway, other)
	clock.Step(ledgerLook)
	s.sim.ResetCounters()
	s.Expect(after.look(t.Context())).To(Succeed())
	s.Expect(s.sim.Counters()).To(HaveLen(1), "where all is known, nothing but the entity is read")
}

func TestPlacesThatAreNot(t *testing.T) {
	s := newSite(t, 0, 0)
	b := s.balancer(onNetwork("", "none"), vcdconfig.Gateway{Name: "edge", EdgeGateway: vcdconfig.EdgeGateway{ID: "none"}})
	for place, text := range map[string]string{"": `network "none"`, "edge": `edge gateway "none"`, "typo": `no gateway "typo"`} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)

			_, err := b.Place(t.Context(), place)

			g.Expect(err).To(And(MatchError(lb.ErrRefused), MatchError(ContainSubstring(text))))
		})
	}
}

func TestTheEdgeGatewayByItsName(t *testing.T) {
	s := newSite(t, 0, 0)
	name := s.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].Name
	byNetwork, byName := s.balancer(onNetwork("", "nodes")), s.balancer(vcdconfig.Gateway{EdgeGateway: vcdconfig.EdgeGateway{ID: name}})

	one, err := byNetwork.Place(t.Context(), "")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(byName.Place(t.Context(), "")).To(Equal(one))
}

func TestWhatTheProviderAddsHelpsWithinAMinute(t *testing.T) {
	s, clock := newSite(t, 0, 0), testingclock.NewFakeClock(time.Now())
	b := NewBalancer(BalancerOptions{
		Session: s.sessions.Session, Driver: edge.New(s.sessions.Session, edge.Options{Clock: clock}), ClusterID: "c1", VDCs: []string{"acme-vdc"},
		Places: []vcdconfig.Gateway{onNetwork("", "nodes")},
	})
	gateway, err := b.Place(t.Context(), "")
	s.Expect(err).NotTo(HaveOccurred())
	outside, crowded := wanted(), wanted()
	outside.Requested = []netip.Addr{netip.MustParseAddr("203.0.113.150")}
	crowded.EngineGroup = "more"
	refusals := func(want lb.Desired) []lb.Finding {
		plan, err := b.Plan(t.Context(), gateway, cpi.PlanRequest{Want: want})
		s.Expect(err).NotTo(HaveOccurred())
		return plan.Refusals
	}
	s.Expect(refusals(outside)).To(ConsistOf(HaveField("Reason", lb.AddressOutside)))
	s.Expect(refusals(crowded)).To(ConsistOf(HaveField("Reason", lb.NoEngineGroup)))
	documents := s.sim.State().Documents
	s.sim.Edit(func(e *vcdsim.Editor) {
		g := &e.Model.Orgs[1].VDCs[0].EdgeGateways[0]
		g.Uplinks[0].Subnets[0].Addresses = append(g.Uplinks[0].Subnets[0].Addresses, vcdsim.Range{From: outside.Requested[0], To: outside.Requested[0]})
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

// onNetwork returns the edge gateway of a network.
func onNetwork(name, network string) vcdconfig.Gateway {
	return vcdconfig.Gateway{Name: name, EdgeGateway: vcdconfig.EdgeGateway{Network: network}}
}
