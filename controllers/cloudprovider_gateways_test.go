package controllers

import (
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// twoGateways is a tenant with a second edge gateway, named dmz.
func twoGateways() vcdsim.Model {
	model := vcdsim.K8sTenant()
	vdc := &model.Orgs[1].VDCs[0]
	second := vdc.EdgeGateways[0]
	second.Name, second.Uplinks = "dmz", []vcdsim.Uplink{{Network: "internet", Subnets: []vcdsim.UplinkSubnet{{
		Gateway: netip.MustParsePrefix("203.0.113.1/24"), Primary: netip.MustParseAddr("203.0.113.200"),
		Addresses: []vcdsim.Range{{From: netip.MustParseAddr("203.0.113.200"), To: netip.MustParseAddr("203.0.113.210")}},
	}}}}
	vdc.EdgeGateways = append(slices.Clone(vdc.EdgeGateways), second)
	return model
}

// configured returns the configuration that the cloud controller manager is given.
func (w *ccmWorld) configured() addons.Config {
	var config addons.Config
	for _, object := range w.objects() {
		if object.GetKind() != "ConfigMap" {
			continue
		}
		data, ok := object.Object["data"].(map[string]any)
		w.Expect(ok).To(BeTrue())
		text, ok := data[addons.ConfigKey].(string)
		w.Expect(ok).To(BeTrue())
		w.Expect(yaml.UnmarshalStrict([]byte(text), &config)).To(Succeed())
	}
	return config
}

func TestTheCloudProviderIsToldOfFurtherGateways(t *testing.T) {
	w := newCCMWorldOn(t, twoGateways())
	first, second := w.gatewayURN(0), w.gatewayURN(1)
	w.changeCluster(func(c *infrav1.VCDCluster) {
		c.Spec.LoadBalancer.Gateways = []infrav1.LoadBalancerGateway{
			{Name: "dmz", EdgeGateway: "dmz", VIPSubnet: "203.0.113.0/24", OneArm: &infrav1.OneArmSpec{}}, {Name: "own", Network: "nodes"},
		}
	})

	w.pass()

	arm := addons.DefaultOneArm()
	w.Expect(w.configured().LoadBalancer.Gateways).To(Equal([]addons.GatewayConfig{
		{Name: "dmz", EdgeGateway: second, VIPSubnet: "203.0.113.0/24", OneArm: &arm}, {Name: "own", EdgeGateway: first},
	}))
	w.Expect(w.vcdClusterNow().Annotations).To(HaveKeyWithValue(infrav1.LoadBalancerGatewaysAnnotation, second+","+first))

	w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.Gateways = c.Spec.LoadBalancer.Gateways[1:] })
	w.pass()

	w.Expect(w.configured().LoadBalancer.Gateways).To(HaveLen(1))
	w.Expect(w.vcdClusterNow().Annotations).To(HaveKeyWithValue(infrav1.LoadBalancerGatewaysAnnotation, second+","+first), "something may be there still")
}

func TestAFurtherGatewayThatCannotBeUsedIsSaid(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		gateway infrav1.LoadBalancerGateway
		want    string
	}{
		{"an edge gateway that is not there", infrav1.LoadBalancerGateway{Name: "dmz", EdgeGateway: "dmz"}, "dmz"},
		{"a network that is not there", infrav1.LoadBalancerGateway{Name: "dmz", Network: "outside"}, "outside"},
		{"a network without an edge gateway", infrav1.LoadBalancerGateway{Name: "dmz", Network: "storage"}, "Network storage has no edge gateway"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := vcdsim.K8sTenant()
			model.Orgs[1].VDCs[0].Networks[1].Type = vcdsim.Isolated
			w := newCCMWorldOn(t, model)
			w.changeCluster(func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.Gateways = []infrav1.LoadBalancerGateway{tt.gateway} })

			got := w.pass()

			w.Expect(got.Status).To(Equal(metav1.ConditionFalse))
			w.Expect(got.Reason).To(Equal(infrav1.LoadBalancerInvalidReason))
			w.Expect(got.Message).To(And(ContainSubstring(tt.want), ContainSubstring("spec.loadBalancer.gateways")))
			w.Expect(w.set("-cloud-provider")).To(BeNil())
		})
	}
}

func TestLoadBalancersGoFromFurtherGatewaysToo(t *testing.T) {
	w := newBalancedOn(t, twoGateways())
	id, first := w.vcdCluster().Spec.InfraID, w.gateway
	w.balance(id, "web", nil)
	w.gateway = vcdsim.URN("gateway", w.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[1].ID)
	w.balance(id, "api", nil)
	c := w.vcdCluster()
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, infrav1.LoadBalancerGatewaysAnnotation, w.gateway)
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.hurry()

	w.deleteCluster()

	w.Expect(w.owners(id)).To(BeEmpty())
	w.gateway = first
	w.Expect(w.owners(id)).To(BeEmpty())
}
