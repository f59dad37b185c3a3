// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// twoGateways returns a tenant with a second edge gateway, dmz.
func twoGateways() vcdsim.Model {
	model := vcdsim.K8sTenant()
	vdc := &model.Orgs[1].VDCs[0]
	second := vdc.EdgeGateways[0]
	second.Name = "dmz"
	second.Uplinks = []vcdsim.Uplink{{
		Network: "internet",
		Subnets: []vcdsim.UplinkSubnet{{
			Gateway: netip.MustParsePrefix("203.0.113.1/24"),
			Primary: netip.MustParseAddr("203.0.113.200"),
			Addresses: []vcdsim.Range{{
				From: netip.MustParseAddr("203.0.113.200"),
				To:   netip.MustParseAddr("203.0.113.210"),
			}},
		}},
	}}
	vdc.EdgeGateways = append(slices.Clone(vdc.EdgeGateways), second)
	return model
}

func TestAdditionalGatewaysAreConfigured(t *testing.T) {
	w := newCCMEnvOn(t, twoGateways())
	first := gatewayURN(w.Env, 0)
	second := gatewayURN(w.Env, 1)
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{
			{Name: "dmz", EdgeGateway: "dmz", VIPSubnet: "203.0.113.0/24", ArmMode: infrav1.ArmModeOneArm},
			{Name: "own", Network: "nodes"},
		}
	})

	w.pass()

	arm, err := vcdconfig.ParseRange("")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.configured().LoadBalancer.Gateways).To(Equal([]vcdconfig.Gateway{
		{
			Name: "dmz",
			EdgeGateway: vcdconfig.EdgeGateway{
				ID:        second,
				VIPSubnet: netip.MustParsePrefix("203.0.113.0/24"),
				OneArm:    &arm,
			},
		},
		{Name: "own", EdgeGateway: vcdconfig.EdgeGateway{ID: first}},
	}))
	w.Expect(w.vcdClusterNow().Spec.RecordedState.LoadBalancerGatewayIDs).To(Equal([]string{second, first}))

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.EdgeGateways = c.Spec.LoadBalancer.EdgeGateways[1:] })
	w.pass()

	w.Expect(w.configured().LoadBalancer.Gateways).To(HaveLen(1))
	w.Expect(w.vcdClusterNow().Spec.RecordedState.LoadBalancerGatewayIDs).To(Equal([]string{second, first}), "objects may remain there")
}

func TestAnUnusableAdditionalGatewayIsReported(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		gateway infrav1.LoadBalancerGateway
		want    string
	}{
		{name: "a nonexistent edge gateway", gateway: infrav1.LoadBalancerGateway{Name: "dmz", EdgeGateway: "dmz"}, want: "dmz"},
		{name: "a nonexistent network", gateway: infrav1.LoadBalancerGateway{Name: "dmz", Network: "outside"}, want: "outside"},
		{
			name:    "a network without an edge gateway",
			gateway: infrav1.LoadBalancerGateway{Name: "dmz", Network: "storage"},
			want:    "Network storage has no edge gateway",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := vcdsim.K8sTenant()
			model.Orgs[1].VDCs[0].Networks[1].Type = vcdsim.Isolated
			w := newCCMEnvOn(t, model)
			w.changeCluster(func(
				c *infrav1.VCDCluster,
			) {
				c.Spec.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{tt.gateway}
			})

			got := w.pass()

			w.Expect(got.Status).To(Equal(metav1.ConditionFalse))
			w.Expect(got.Reason).To(Equal(infrav1.LoadBalancerInvalidReason))
			w.Expect(got.Message).To(And(ContainSubstring(tt.want), ContainSubstring("spec.loadBalancer.edgeGateways")))
			w.Expect(w.set("-cloud-provider")).To(BeNil())
		})
	}
}

func TestPermissionForLoadBalancersIsRecorded(t *testing.T) {
	w := newCCMEnv(t)
	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.Mode = infrav1.LoadBalancerDisabled })
	w.installed()
	w.Expect(w.vcdClusterNow().Spec.RecordedState.LoadBalancersAllowed).To(BeNil())

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.Mode = infrav1.LoadBalancerEnabled })
	w.pass()
	w.Expect(w.vcdClusterNow().Spec.RecordedState.LoadBalancersAllowed).NotTo(BeNil())

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.Mode = infrav1.LoadBalancerDisabled })
	w.pass()
	w.Expect(w.vcdClusterNow().Spec.RecordedState.LoadBalancersAllowed).NotTo(BeNil(),
		"earlier load balancers may be orphaned")
}

func TestLoadBalancersOnAdditionalGatewaysAreDeletedToo(t *testing.T) {
	w := controllertest.NewBalancedOn(t, twoGateways())
	id := w.VCDCluster().Spec.InfraID
	first := w.Gateway
	w.Balance(id, "web", nil)
	w.Gateway = vcdsim.URN("gateway", w.Sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[1].ID)
	w.Balance(id, "api", nil)
	w.Record(func(r *infrav1.VCDClusterRecordedState) { r.LoadBalancerGatewayIDs = []string{w.Gateway} })
	w.Hurry()

	w.DeleteCluster()

	w.Expect(w.Owners(id)).To(BeEmpty())
	w.Gateway = first
	w.Expect(w.Owners(id)).To(BeEmpty())
}
