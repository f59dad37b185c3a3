// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// managesCCM reports whether the provider installs a cloud controller manager for c.
func managesCCM(c *infrav1.VCDCluster) bool {
	mode := c.Spec.CloudProvider.Mode
	return mode != infrav1.CloudProviderNone && mode != infrav1.CloudProviderExternal
}

// createsBalancers reports whether the provider installs a cloud controller manager that creates load balancers for c.
func createsBalancers(c *infrav1.VCDCluster) bool {
	return managesCCM(c) && c.Spec.LoadBalancer.Mode != infrav1.LoadBalancerDisabled
}

// usesNAT reports whether load balancers of c are behind DNAT rules.
func usesNAT(c *infrav1.VCDCluster) bool {
	edge := c.Spec.ControlPlaneLoadBalancer.EdgeGateway
	return edge != nil && edge.ArmMode == infrav1.ArmModeOneArm || c.Spec.LoadBalancer.ArmMode == infrav1.ArmModeOneArm ||
		slices.ContainsFunc(c.Spec.LoadBalancer.EdgeGateways,
			func(g infrav1.LoadBalancerGateway) bool { return g.ArmMode == infrav1.ArmModeOneArm })
}

// separates reports whether any VMs are kept on different hosts.
func separates(machines []Machines) bool {
	return slices.ContainsFunc(machines, func(m Machines) bool {
		return m.Spec.AntiAffinity != "" && m.Spec.AntiAffinity != infrav1.AntiAffinityNone
	})
}
