// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestWhichCloudControllerManagerCreatesLoadBalancers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		mode    infrav1.CloudProviderMode
		lb      infrav1.LoadBalancerMode
		manages bool
		creates bool
	}{
		{"the one of a cluster without a setting", "", "", true, true},
		{"the provider's load balancers", infrav1.CloudProviderManaged, "", true, true},
		{"the provider without load balancers", infrav1.CloudProviderManaged, infrav1.LoadBalancerDisabled, true, false},
		{"another cloud controller manager", infrav1.CloudProviderExternal, "", false, false},
		{"none", infrav1.CloudProviderNone, "", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := &infrav1.VCDCluster{}
			c.Spec.CloudProvider.Mode = tt.mode
			c.Spec.LoadBalancer.Mode = tt.lb

			g.Expect(checks.ManagesCCM(c)).To(Equal(tt.manages))
			g.Expect(checks.CreatesBalancers(c)).To(Equal(tt.creates))
		})
	}
}

func TestWhichLoadBalancersAreBehindDNATRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		of   func(*infrav1.VCDClusterSpec)
		want bool
	}{
		{name: "none", of: func(*infrav1.VCDClusterSpec) {}},
		{
			name: "the load balancers of a one-arm cluster",
			of: func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.ArmMode = infrav1.ArmModeOneArm
			},
			want: true,
		},
		{
			name: "the load balancers of a further edge gateway",
			of: func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{{ArmMode: infrav1.ArmModeOneArm}}
			},
			want: true,
		},
		{
			name: "the endpoint",
			of: func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.EdgeGateway = &infrav1.EdgeGatewayEndpoint{ArmMode: infrav1.ArmModeOneArm}
			},
			want: true,
		},
		{
			name: "none with an inherited subnet",
			of: func(c *infrav1.VCDClusterSpec) {
				c.RecordedState.InheritedLoadBalancer.VIPSubnet = "203.0.113.0/24"
			},
		},
		{
			name: "the load balancers of an inherited range",
			of: func(c *infrav1.VCDClusterSpec) {
				c.RecordedState.InheritedLoadBalancer.OneArm = infrav1.AddressRange{
					StartIP: "192.168.8.2",
					EndIP:   "192.168.8.100",
				}
			},
			want: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &infrav1.VCDCluster{}
			tt.of(&c.Spec)

			NewWithT(t).Expect(checks.UsesNAT(c)).To(Equal(tt.want))
		})
	}
}

func TestAnEndpointIsOnAnEdgeGateway(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	g.Expect(checks.EndpointRouted("nodes", vcd.Ref{ID: "urn:vcloud:gateway:1"})).To(BeNil())
	g.Expect(checks.EndpointRouted("nodes", vcd.Ref{})).To(HaveValue(And(HaveField("Reason", infrav1.EdgeGatewayNotFoundReason),
		HaveField("Message", "network nodes is not connected to an edge gateway, which the endpoint requires"))))
}
