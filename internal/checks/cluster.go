// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// ManagesCCM reports whether the provider installs the cloud controller manager of a cluster.
func ManagesCCM(c *infrav1.VCDCluster) bool {
	mode := c.Spec.CloudProvider.Mode
	return mode == infrav1.CloudProviderManaged || mode == ""
}

// CreatesBalancers reports whether the provider installs a cloud controller manager that creates load balancers.
func CreatesBalancers(c *infrav1.VCDCluster) bool {
	kube := c.Spec.LoadBalancer.KubeVIP
	return ManagesCCM(c) && c.Spec.LoadBalancer.Mode != infrav1.LoadBalancerDisabled && (kube == nil || kube.Class != "")
}

// UsesNAT reports whether load balancers of a cluster may be behind DNAT rules.
func UsesNAT(c *infrav1.VCDCluster) bool {
	spec := c.Spec.LoadBalancer
	inherited := c.Spec.RecordedState.InheritedLoadBalancer.OneArm != infrav1.AddressRange{}
	endpoint := c.Spec.ControlPlaneLoadBalancer.EdgeGateway
	return endpoint != nil && endpoint.ArmMode == infrav1.ArmModeOneArm || spec.ArmMode == infrav1.ArmModeOneArm ||
		inherited || slices.ContainsFunc(spec.EdgeGateways,
		func(g infrav1.LoadBalancerGateway) bool { return g.ArmMode == infrav1.ArmModeOneArm })
}

// EndpointRouted reports an endpoint of type EdgeGateway without an edge gateway. The endpoint uses the edge gateway of
// its network, but the network is not connected to one.
func EndpointRouted(network string, gateway vcd.Ref) *Finding {
	if gateway.ID != "" {
		return nil
	}
	return finding(infrav1.EdgeGatewayNotFoundReason, "connect the network to an edge gateway, or set one in spec.controlPlaneLoadBalancer.edgeGateway.name of the VCDCluster",
		"network %s is not connected to an edge gateway, which the endpoint requires", network)
}
