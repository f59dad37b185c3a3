// SPDX-License-Identifier: Apache-2.0

package verifysite_test

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/verifysite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A switched is an assumption with the two values that the simulator uses.
type switched struct {
	name string
	ways []any // empty: true and false
}

// A site is a model with a user, and the assumptions that it can detect.
type site struct {
	name     string
	model    vcdsim.Model
	user     string
	slow     bool // tasks are just long enough for another request
	prepare  func(t *testing.T, to *target)
	switches []switched
}

func bothWays(names ...string) []switched {
	all := make([]switched, 0, len(names))
	for _, name := range names {
		all = append(all, switched{name: name})
	}
	return all
}

// without returns the tenant with a user whose role lacks some rights.
func without(rights ...string) vcdsim.Model {
	m := vcdsim.K8sTenant()
	role := m.Orgs[1].Roles[0]
	role.Name = "less"
	role.Rights = slices.DeleteFunc(slices.Clone(role.Rights), func(r string) bool { return slices.Contains(rights, r) })
	m.Orgs[1].Roles = append(m.Orgs[1].Roles, role)
	m.Orgs[1].Users = append(m.Orgs[1].Users, vcdsim.User{Name: "less", Password: "password", Role: role.Name})
	return m
}

// balancerOf changes the settings of the load balancer of a model's first gateway.
func balancerOf(m vcdsim.Model, field string, value any) vcdsim.Model {
	balancer := m.Orgs[1].VDCs[0].EdgeGateways[0].LoadBalancer
	fields := map[string]any{}
	for name, old := range balancer.Fields {
		fields[name] = old
	}
	fields[field] = value
	balancer.Fields = fields
	return m
}

// withVMs adds VMs of other users, with addresses on the first network of the VDC.
func withVMs(m vcdsim.Model) vcdsim.Model {
	m.Orgs[1].VDCs[0].Fleet = vcdsim.Fleet{VApps: 1, VMsPerVApp: 2, Owner: "admin"}
	return m
}

// allocated allocates a floating IP to the organization.
func allocated(t *testing.T, to *target) {
	t.Helper()
	spaces, err := to.session.IPSpaces.Public(t.Context())
	to.Expect(err).NotTo(HaveOccurred())
	task, err := to.session.IPSpaces.Allocate(t.Context(), spaces[0].ID, netip.MustParseAddr("198.51.100.10"))
	to.Expect(err).NotTo(HaveOccurred())
	_, err = to.session.Tasks.Wait(t.Context(), task, nil)
	to.Expect(err).NotTo(HaveOccurred())
}

// sites returns the sites on which the probed assumptions are switched.
func sites() []site {
	return []site{
		{
			name:  "tenant with slow tasks",
			model: vcdsim.K8sTenant(),
			user:  "capvcd",
			slow:  true,
			switches: bothWays("VMWaitsForVApp", "VAppWaitsForVM", "VMWriteLocksVApp", "BusyTextTenant", "CancelUndoesCompose",
				"GatewayWritesExclude", "BusyGatewayConfiguresAll"),
		},
		{
			name:  "tenant",
			model: vcdsim.K8sTenant(),
			user:  "capvcd",
			switches: append(bothWays(
				"EntitiesAdmitNull", "EmptyHardwareKeepsItems", "RunningVMKeepsHardware", "DeployedBlocksDelete", "VAppStaysDeployed",
				"AttachedDiskBlocksDelete", "RunningBlocksNetworkRemoval", "UsedNetworkStays", "EmptyPageBeyondEnd",
				"QueryPageSizeIsCut", "LinkedClonesKeepSize", "IOPSIgnoredWithoutLimits", "HrefFilterIsText", "PoolAddressKept", "UplinkAddressMustBeOwn",
				"SharedVIPStays", "TenantProfilesNeedOrg",
			),
				switched{"MaxNetworkName", []any{128, 200, 120, 0}},
				switched{"MaxNetworkDescription", []any{1024, 2000, 0}},
				switched{"EdgeRuleCreateSince", []any{"38.1", "37.3", "39.0"}},
				switched{"EdgeRuleTopSince", []any{"39.0", "38.1"}},
			),
		},
		{
			name:     "network with used addresses",
			model:    withVMs(vcdsim.K8sTenant()),
			user:     "capvcd",
			switches: bothWays("UsedAddressesAreFiltered"),
		},
		{
			name:     "user without the right to extra configuration",
			model:    without("vApp: Allow All Extra Config"),
			user:     "less",
			switches: bothWays("ExtraConfigTakesRight"),
		},
		{
			name:     "user without the right to the type",
			model:    without("vmware:capvcdCluster: Full Access"),
			user:     "less",
			switches: bothWays("EntitiesTakeRights"),
		},
		{
			name:     "load balancer that preserves client addresses",
			model:    vcdsim.CloudProvider(),
			user:     "capvcd",
			switches: bothWays("NewerFieldsRefused"),
		},
		{
			name:     "load balancer without an IPv6 service network",
			model:    balancerOf(vcdsim.CloudProvider(), "ipv6ServiceNetworkDefinition", ""),
			user:     "capvcd",
			switches: bothWays("IPv6NeedsServiceNetwork"),
		},
		{
			name:     "load balancer with the feature set STANDARD",
			model:    balancerOf(vcdsim.K8sTenant(), "supportedFeatureSet", "STANDARD"),
			user:     "capvcd",
			switches: bothWays("PremiumFeaturesRefused"),
		},
		{
			name:     "gateway with IP Spaces",
			model:    vcdsim.IPSpaces(),
			user:     "capvcd",
			prepare:  allocated,
			switches: bothWays("SpaceAddressMustBeAllocated", "AllocationsNeedType"),
		},
		{
			name:     "gateway in a data center group",
			model:    vcdsim.VDCGroupTenant(),
			user:     "capvcd",
			switches: bothWays("GroupOwnsFirewallGroups"),
		},
	}
}

func TestARunDetectsTheBehaviorOfTheSite(t *testing.T) {
	var all []string
	for _, s := range sites() {
		for _, x := range s.switches {
			all = append(all, x.name)
		}
		t.Run(s.name, func(t *testing.T) {
			profile := vcdsim.Instant
			if s.slow {
				profile = quick
			}
			to := newTarget(t, s.model, s.user, func(cfg *vcdsim.Config) { cfg.Profile = profile })
			if s.prepare != nil {
				s.prepare(t, to)
			}
			for _, x := range s.switches {
				t.Run(x.name, func(t *testing.T) { to.verifyBothValues(t, x) })
			}
			to.Expect(to.sim.Unhandled()).To(BeEmpty())
		})
	}
	g := NewWithT(t)
	for _, row := range verifysite.Table() {
		if row.Probed() {
			g.Expect(all).To(ContainElement(row.Name), "each probe is tested with both values")
		}
	}
}

// verifyBothValues switches an assumption of the simulator, and verifies the site with each value.
func (to *target) verifyBothValues(t *testing.T, x switched) {
	t.Helper()
	g := NewWithT(t)
	ways := x.ways
	if len(ways) == 0 {
		ways = []any{true, false}
	}
	existing := to.left()
	var before any
	to.sim.Edit(func(e *vcdsim.Editor) { before = field(e, x.name).Interface() })
	set := func(way any) {
		to.sim.Edit(func(e *vcdsim.Editor) { field(e, x.name).Set(reflect.ValueOf(way)) })
	}
	defer set(before)
	for _, way := range ways {
		set(way)
		finding := to.verify(t, options(x.name))[x.name]
		g.Expect(finding.Site).To(Equal(text(way)), "%+v", finding)
		g.Expect(finding.How).NotTo(BeEmpty())
		g.Expect(finding.Reason).To(BeEmpty())
		g.Expect(to.left()).To(Equal(existing))
	}
}
