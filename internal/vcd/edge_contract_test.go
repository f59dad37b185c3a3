// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// newEdge returns a target on the simulator with another model.
func newEdge(t *testing.T, model vcdsim.Model, mods ...func(*vcdsim.Config)) *target {
	t.Helper()
	return newSimulated(t, vcdsim.Config{Model: model, Profile: vcdsim.Instant, Seed: 1},
		vcd.PoolOptions{TaskPoll: 4 * time.Millisecond, RequestsPerSecond: 10000, Burst: 10000}, mods...)
}

// edgeOf returns the gateway of the target's network.
func (to *target) edgeOf(t *testing.T, s *vcd.Session) string {
	t.Helper()
	g := NewWithT(t)
	vdc, err := s.VDCs.FindVDC(t.Context(), to.vdc)
	g.Expect(err).NotTo(HaveOccurred())
	network, err := s.Networks.FindNetwork(t.Context(), vdc, to.network)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(network.EdgeGateway.ID).To(HavePrefix("urn:vcloud:gateway:"))
	return network.EdgeGateway.ID
}

// done waits for a task and returns its owner.
func done(t *testing.T, s *vcd.Session, task vcd.Task, err error) vcd.Task {
	t.Helper()
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	ended, err := s.Tasks.Wait(t.Context(), task, time.After(time.Minute))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ended.Err).NotTo(HaveOccurred())
	g.Expect(ended.State).To(Equal(vcd.TaskSucceeded))
	return ended
}

func TestTheGatewayOfANetwork(t *testing.T) {
	for name, model := range map[string]vcdsim.Model{
		"of a VDC":       vcdsim.K8sTenant(),
		"of a VDC group": vcdsim.VDCGroupTenant(),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			to := newEdge(t, model)
			s := to.session(t)

			gateway, err := s.Gateways.Gateway(t.Context(), to.edgeOf(t, s))

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(gateway.Name).To(Equal("acme-vdc-gateway"))
			g.Expect(gateway.Status).To(Equal(vcd.Realized))
			g.Expect(gateway.UsesIPSpaces).To(BeFalse())
			g.Expect(gateway.Owner.Name).To(BeElementOf("acme-vdc", "acme-group"))
			g.Expect(gateway.Uplinks).To(HaveLen(1))
			g.Expect(gateway.Uplinks[0].Subnets).To(Equal([]vcd.UplinkSubnet{{
				Prefix:  netip.MustParsePrefix("203.0.113.0/24"),
				Gateway: netip.MustParseAddr("203.0.113.1"),
				Primary: netip.MustParseAddr("203.0.113.10"),
				Enabled: true,
				Ranges: []vcd.AddressRange{{
					From: netip.MustParseAddr("203.0.113.10"),
					To:   netip.MustParseAddr("203.0.113.99"),
				}},
			}}))
			settings, err := s.Balancers.Settings(t.Context(), gateway.ID)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(settings).To(Equal(vcd.BalancerSettings{Known: true, Enabled: true, Premium: true, LacksIPv6: true}))
		})
	}
}

func TestFeaturesOfTheAgreedVersion(t *testing.T) {
	g := NewWithT(t)
	to := newEdge(t, vcdsim.K8sTenant())

	features, err := to.session(t).Features(t.Context())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(features.SharedVIP && features.MemberGroups && features.AllocateByValue &&
		features.TransparentMode).To(BeTrue())
}

// A balancer is a pool with a virtual service on a gateway.
type balancer struct{ gateway, pool, service string }

func (to *target) balancer(t *testing.T, s *vcd.Session, name, address string) balancer {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	edge := to.edgeOf(t, s)
	groups, err := s.Balancers.EngineGroups(ctx, edge)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(groups).To(HaveLen(1))
	g.Expect(groups[0].Max).To(BeNumerically(">", groups[0].Deployed))
	task, err := s.Balancers.CreatePool(ctx, vcd.ServerPool{
		Ref:         vcd.Ref{Name: name},
		Description: "pool of " + name,
		Gateway:     vcd.Ref{ID: edge},
		Algorithm:   "ROUND_ROBIN",
		DefaultPort: 30080,
		Monitors:    []string{"TCP"},
		Sticky:      true,
		Members: []vcd.PoolMember{
			{Address: netip.MustParseAddr("192.168.100.11"), Port: 30080},
			{Address: netip.MustParseAddr("192.168.100.12"), Port: 30080},
		},
	})
	pool := done(t, s, task, err).Owner
	g.Expect(pool).To(HavePrefix("urn:vcloud:loadBalancerPool:"))
	task, err = s.Balancers.CreateVirtualService(ctx, vcd.VirtualService{
		Ref:         vcd.Ref{Name: name},
		Description: "service of " + name,
		Gateway:     vcd.Ref{ID: edge},
		Pool:        vcd.Ref{ID: pool},
		EngineGroup: groups[0].Ref,
		Address:     netip.MustParseAddr(address),
		Ports:       []vcd.ServicePort{{From: 80}},
		Application: vcd.L4,
	})
	service := done(t, s, task, err).Owner
	g.Expect(service).To(HavePrefix("urn:vcloud:loadBalancerVirtualService:"))
	return balancer{edge, pool, service}
}

func TestLifecycleOfALoadBalancer(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newEdge(t, vcdsim.K8sTenant())
	s := to.session(t)
	b := to.balancer(t, s, "web", "203.0.113.20")

	services, err := s.Balancers.VirtualServices(ctx, b.gateway)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(services).To(HaveLen(1))
	full, err := s.Balancers.VirtualService(ctx, b.service)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(services[0]).To(Equal(full), "lists contain the whole virtual service")
	g.Expect(full.Address).To(Equal(netip.MustParseAddr("203.0.113.20")))
	g.Expect(full.Ports).To(Equal([]vcd.ServicePort{{From: 80, To: 80, Profile: vcd.TCPProxy}}))
	g.Expect(full.Application).To(Equal(vcd.L4))
	g.Expect(full.Description).To(Equal("service of web"))
	g.Expect(full.Pool.ID).To(Equal(b.pool))

	pools, err := s.Balancers.Pools(ctx, b.gateway)
	g.Expect(err).NotTo(HaveOccurred())
	pool, err := s.Balancers.Pool(ctx, b.pool)
	g.Expect(err).NotTo(HaveOccurred())
	shown := func(p vcd.ServerPool) []any {
		return []any{p.Ref, p.Description, p.Status, p.MemberCount, p.ByGroup, p.Monitored}
	}
	g.Expect(pools).To(HaveLen(1))
	g.Expect(shown(pools[0])).To(Equal(shown(pool)))
	g.Expect(pool.MemberCount).To(Equal(2))
	g.Expect(pool.Members).To(HaveLen(2))
	g.Expect([]any{
		pool.Monitors, pool.Sticky, pool.DefaultPort,
		pool.Algorithm,
	}).To(Equal([]any{[]string{"TCP"}, true, 30080, "ROUND_ROBIN"}))

	used, err := s.Gateways.UsedAddresses(ctx, b.gateway)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(used).To(ContainElement(vcd.UsedAddress{
		Address:  netip.MustParseAddr("203.0.113.20"),
		Category: "Load_Balancer",
	}))

	_, err = s.Balancers.DeletePool(ctx, b.pool)
	g.Expect(err).To(MatchError(vcd.ErrInvalid), "a pool in use is kept")
	task, err := s.Balancers.DeleteVirtualService(ctx, b.service)
	done(t, s, task, err)
	task, err = s.Balancers.DeletePool(ctx, b.pool)
	done(t, s, task, err)
	g.Expect(s.Balancers.Pools(ctx, b.gateway)).To(BeEmpty())
	g.Expect(s.Balancers.VirtualServices(ctx, b.gateway)).To(BeEmpty())
	_, err = s.Balancers.DeletePool(ctx, b.pool)
	g.Expect(err).To(MatchError(vcd.ErrForbidden), "VCD responds the same for deleted and forbidden objects")
}

// ptr returns a pointer to a value.
func ptr[T any](v T) *T { return &v }

func TestChangesKeepForeignFields(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newEdge(t, vcdsim.K8sTenant())
	s := to.session(t)
	b := to.balancer(t, s, "web", "203.0.113.20")
	to.sim.Edit(func(e *vcdsim.Editor) {
		e.Document(b.pool, func(body map[string]any) {
			body["gracefulTimeoutPeriod"] = 0
			body["minimumHealthMonitorsUp"] = 9007199254740993.0
			body["comment"] = `<&> ä "x"`
			first := body["members"].([]any)[0].(map[string]any)
			first["ratio"] = 7
			first["enabled"] = false
			body["healthMonitors"].([]any)[0].(map[string]any)["name"] = "mine"
		})
	})

	task, err := s.Balancers.UpdatePool(ctx, b.pool, vcd.PoolChange{
		DefaultPort: ptr(30081),
		Members: &[]vcd.PoolMember{
			{Address: netip.MustParseAddr("192.168.100.11"), Port: 30081},
			{Address: netip.MustParseAddr("192.168.100.13"), Port: 30081},
		},
		Monitors: []string{"TCP"},
		Sticky:   ptr(true),
	})
	done(t, s, task, err)

	to.sim.Edit(func(e *vcdsim.Editor) {
		e.Document(b.pool, func(body map[string]any) {
			g.Expect(body).To(HaveKeyWithValue("gracefulTimeoutPeriod", 0.0))
			g.Expect(body).To(HaveKeyWithValue("comment", `<&> ä "x"`))
			members := body["members"].([]any)
			g.Expect(members).To(HaveLen(2))
			g.Expect(members[0]).To(And(HaveKeyWithValue("ratio", 7.0), HaveKeyWithValue("enabled", false),
				HaveKeyWithValue("port", 30081.0)))
			g.Expect(members[1]).To(And(HaveKeyWithValue("ratio", 1.0), HaveKeyWithValue("enabled", true),
				HaveKeyWithValue("ipAddress", "192.168.100.13")))
		})
	})
	to.sim.ResetCounters()
	task, err = s.Balancers.UpdatePool(ctx, b.pool, vcd.PoolChange{DefaultPort: ptr(30081), Monitors: []string{"TCP"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(task.State).To(Equal(vcd.TaskSucceeded))
	_, calls := to.calls()
	g.Expect(calls).To(HaveLen(1), "unchanged objects are not written: %v", calls)

	task, err = s.Balancers.UpdatePool(ctx, b.pool, vcd.PoolChange{Sticky: ptr(false), NoMonitors: []string{"TCP"}})
	done(t, s, task, err)
	pool, err := s.Balancers.Pool(ctx, b.pool)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]any{pool.Sticky, pool.Monitors, pool.Description}).To(Equal([]any{false, []string(nil), "pool of web"}))

	task, err = s.Balancers.UpdateVirtualService(ctx, b.service, vcd.VirtualServiceChange{
		Address:     ptr(netip.MustParseAddr("203.0.113.21")),
		Ports:       &[]vcd.ServicePort{{From: 81, Profile: vcd.UDPFastPath}},
		Description: ptr("d"),
	})
	done(t, s, task, err)
	vs, err := s.Balancers.VirtualService(ctx, b.service)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]any{vs.Address.String(), vs.Ports[0].From, vs.Ports[0].Profile, vs.Description, vs.Pool.ID}).
		To(Equal([]any{"203.0.113.21", 81, vcd.UDPFastPath, "d", b.pool}))
}

func TestPoolsWithIPSets(t *testing.T) {
	t.Run("of a gateway", func(t *testing.T) { testPoolsByIPSet(t, vcdsim.K8sTenant(), "urn:vcloud:gateway:") })
	t.Run("of a VDC group", func(t *testing.T) {
		testPoolsByIPSet(t, vcdsim.VDCGroupTenant(), "urn:vcloud:vdcGroup:")
	})
}

func testPoolsByIPSet(t *testing.T, model vcdsim.Model, ownedBy string) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	to := newEdge(t, model)
	s := to.session(t)
	edge := to.edgeOf(t, s)
	gateway, err := s.Gateways.Gateway(ctx, edge)
	g.Expect(err).NotTo(HaveOccurred())
	owner := gateway.GroupOwner()
	g.Expect(owner).To(HavePrefix(ownedBy))
	task, err := s.Firewall.CreateIPSet(ctx,
		vcd.IPSet{
			Ref:         vcd.Ref{Name: "nodes"},
			Description: "d",
			Owner:       vcd.Ref{ID: owner},
			Addresses:   []netip.Addr{netip.MustParseAddr("192.168.100.11")},
		})
	set := done(t, s, task, err).Owner
	task, err = s.Balancers.CreatePool(ctx,
		vcd.ServerPool{
			Ref:         vcd.Ref{Name: "web"},
			Gateway:     vcd.Ref{ID: edge},
			DefaultPort: 30080,
			MemberGroup: vcd.Ref{ID: set},
		})
	pool := done(t, s, task, err).Owner
	g.Expect(s.Balancers.Pools(ctx, edge)).To(ConsistOf(And(HaveField("ByGroup", true), HaveField("MemberCount", 1))))

	to.sim.ResetCounters()
	want := []netip.Addr{netip.MustParseAddr("192.168.100.12"), netip.MustParseAddr("192.168.100.11")}
	task, err = s.Firewall.UpdateIPSet(ctx, set, vcd.IPSetChange{Addresses: &want})
	done(t, s, task, err)
	total, calls := to.calls()
	g.Expect(total).To(Equal(2), "one read and one write: %v", calls)

	g.Expect(s.Firewall.IPSet(ctx, set)).To(HaveField("Addresses", ConsistOf(want[1], want[0])))
	g.Expect(s.Firewall.IPSets(ctx,
		owner)).To(ConsistOf(And(HaveField("Name", "nodes"), HaveField("Description", "d"),
		HaveField("Addresses", BeNil()))))
	task, err = s.Balancers.UpdatePool(ctx, pool,
		vcd.PoolChange{Members: &[]vcd.PoolMember{{Address: want[0], Port: 1}}})
	done(t, s, task, err)
	g.Expect(s.Balancers.Pool(ctx, pool)).To(And(HaveField("MemberGroup", vcd.Ref{}), HaveField("Members", HaveLen(1))))
	task, err = s.Balancers.UpdatePool(ctx, pool, vcd.PoolChange{MemberGroup: &set})
	done(t, s, task, err)
	g.Expect(s.Balancers.Pool(ctx, pool)).To(And(HaveField("MemberGroup.ID", set), HaveField("Members", BeEmpty())))
	_, err = s.Firewall.DeleteIPSet(ctx, set)
	g.Expect(err).To(MatchError(vcd.ErrInvalid))
	task, err = s.Balancers.DeletePool(ctx, pool)
	done(t, s, task, err)
	task, err = s.Firewall.DeleteIPSet(ctx, set)
	done(t, s, task, err)
	g.Expect(s.Firewall.IPSets(ctx, owner)).To(BeEmpty())
}

func TestPortForwardings(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newEdge(t, vcdsim.K8sTenant())
	s := to.session(t)
	edge := to.edgeOf(t, s)
	gateway, err := s.Gateways.Gateway(ctx, edge)
	g.Expect(err).NotTo(HaveOccurred())
	task, err := s.NAT.CreatePortProfile(ctx, gateway,
		vcd.PortProfile{Ref: vcd.Ref{Name: "p"}, Description: "d", Protocol: "UDP", Port: 53})
	profile := done(t, s, task, err).Owner
	g.Expect(s.NAT.PortProfiles(ctx)).To(ConsistOf(vcd.PortProfile{
		Ref:         vcd.Ref{ID: profile, Name: "p"},
		Description: "d",
		Scope:       "TENANT",
		Status:      vcd.Realized,
		Protocol:    "UDP",
		Port:        53,
	}))
	task, err = s.NAT.UpdatePortProfile(ctx, gateway, profile,
		vcd.PortProfileChange{Port: &vcd.ProfilePort{Protocol: "TCP", Port: 80}})
	done(t, s, task, err)
	task, err = s.NAT.CreateDNAT(ctx, edge, vcd.NATRule{
		Ref:         vcd.Ref{Name: "r"},
		Description: "d",
		External:    "203.0.113.30",
		Internal:    "192.168.8.2",
		Port:        80,
		Profile:     vcd.Ref{ID: profile},
	})
	owner := done(t, s, task, err).Owner
	rules, err := s.NAT.Rules(ctx, edge)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rules).To(ConsistOf(vcd.NATRule{
		Ref:         vcd.Ref{ID: rules[0].ID, Name: "r"},
		Description: "d",
		Type:        "DNAT",
		Enabled:     true,
		External:    "203.0.113.30",
		Internal:    "192.168.8.2",
		Port:        80,
		Profile:     vcd.Ref{ID: profile, Name: "p"},
	}))
	g.Expect(owner).To(Equal(edge), "VCD does not return the ID of a new rule")
	task, err = s.NAT.UpdateDNAT(ctx, edge, rules[0].ID, vcd.DNATChange{Port: ptr(81), Internal: ptr("192.168.8.3")})
	done(t, s, task, err)
	g.Expect(s.NAT.Rules(ctx,
		edge)).To(ConsistOf(And(HaveField("Port", 81), HaveField("Internal", "192.168.8.3"),
		HaveField("External", "203.0.113.30"))))
	_, err = s.NAT.DeletePortProfile(ctx, profile)
	g.Expect(err).To(MatchError(vcd.ErrInvalid), "a profile in use is kept")
	task, err = s.NAT.DeleteRule(ctx, edge, rules[0].ID)
	done(t, s, task, err)
	task, err = s.NAT.DeletePortProfile(ctx, profile)
	done(t, s, task, err)
	g.Expect(s.NAT.Rules(ctx, edge)).To(BeEmpty())
	g.Expect(s.NAT.PortProfiles(ctx)).To(BeEmpty())
}

func TestLongListsAreComplete(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newEdge(t, vcdsim.K8sTenant())
	s := to.session(t)
	edge := to.edgeOf(t, s)
	gateway, err := s.Gateways.Gateway(ctx, edge)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range 130 {
		task, err := s.NAT.CreateDNAT(ctx, edge,
			vcd.NATRule{
				Ref:      vcd.Ref{Name: fmt.Sprint("r", i)},
				External: "203.0.113.30",
				Internal: "192.168.8.2",
				Port:     1000 + i,
			})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(task.ID).NotTo(BeEmpty())
		_, err = s.NAT.CreatePortProfile(ctx, gateway,
			vcd.PortProfile{Ref: vcd.Ref{Name: fmt.Sprint("p", i)}, Protocol: "TCP", Port: i + 1})
		g.Expect(err).NotTo(HaveOccurred())
	}
	to.sim.ResetCounters()

	g.Expect(s.NAT.Rules(ctx, edge)).To(HaveLen(130))
	g.Expect(s.NAT.PortProfiles(ctx)).To(HaveLen(130))

	total, calls := to.calls()
	g.Expect(total).To(Equal(4), "two pages each: %v", calls)
}

func TestFloatingIPs(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newEdge(t, vcdsim.IPSpaces())
	s := to.session(t)
	edge := to.edgeOf(t, s)
	g.Expect(s.Gateways.Gateway(ctx, edge)).To(HaveField("UsesIPSpaces", true))
	suggestions, err := s.IPSpaces.Suggestions(ctx, edge)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(suggestions).To(HaveLen(1))
	space, err := s.IPSpaces.Space(ctx, suggestions[0].Space.ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(space.Type).To(Equal(vcd.SpacePublic))
	g.Expect(space.Ranges).To(Equal([]vcd.AddressRange{{
		From: netip.MustParseAddr("198.51.100.10"),
		To:   netip.MustParseAddr("198.51.100.109"),
	}}))

	address := netip.MustParseAddr("198.51.100.42")
	task, err := s.IPSpaces.Allocate(ctx, space.ID, address)
	task = done(t, s, task, err)
	id := vcd.AllocatedID(task, address)
	g.Expect(id).NotTo(BeEmpty())
	g.Expect(s.IPSpaces.FloatingIPs(ctx,
		space.ID)).To(Equal([]vcd.FloatingIP{{ID: id, Address: address, Usage: vcd.Unused}}))
	_, err = s.IPSpaces.Allocate(ctx, space.ID, address)
	g.Expect(err).To(MatchError(vcd.ErrInvalid), "it is not allocated twice")

	task, err = s.IPSpaces.Mark(ctx, space.ID, id, func(now vcd.FloatingIP) (vcd.UsageState, string, error) {
		g.Expect(now.Address).To(Equal(address))
		return vcd.UsedManual, "mine", nil
	})
	done(t, s, task, err)
	g.Expect(s.IPSpaces.FloatingIP(ctx, space.ID,
		id)).To(Equal(vcd.FloatingIP{ID: id, Address: address, Usage: vcd.UsedManual, Description: "mine"}))
	no := errors.New("no")
	_, err = s.IPSpaces.Mark(ctx, space.ID, id,
		func(vcd.FloatingIP) (vcd.UsageState, string, error) { return "", "", no })
	g.Expect(err).To(MatchError(no))
	task, err = s.IPSpaces.Mark(ctx, space.ID, id, func(now vcd.FloatingIP) (vcd.UsageState, string, error) {
		return vcd.Unused, now.Description, nil
	})
	done(t, s, task, err)
	task, err = s.IPSpaces.Release(ctx, space.ID, id)
	done(t, s, task, err)
	g.Expect(s.IPSpaces.FloatingIPs(ctx, space.ID)).To(BeEmpty())

	blocks := newEdge(t, vcdsim.K8sTenant())
	s = blocks.session(t)
	_, err = s.IPSpaces.Suggestions(ctx, blocks.edgeOf(t, s))
	g.Expect(err).To(MatchError(vcd.ErrForbidden))
}
