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
	edge := c.Spec.Endpoint.EdgeGateway
	return edge != nil && edge.OneArm != nil || c.Spec.LoadBalancer.OneArm != nil ||
		slices.ContainsFunc(c.Spec.LoadBalancer.Gateways,
			func(g infrav1.LoadBalancerGateway) bool { return g.OneArm != nil })
}

// separates reports whether any VMs are kept on different hosts.
func separates(spec infrav1.AntiAffinitySpec) bool {
	wants := func(a infrav1.AntiAffinity) bool { return a != "" && a != infrav1.AntiAffinityNone }
	return wants(spec.ControlPlane) || wants(spec.MachineDeployments) ||
		slices.ContainsFunc(spec.Overrides, func(o infrav1.AntiAffinityOverride) bool { return wants(o.Policy) })
}

// addressesOf returns the addresses of the endpoint of c, or its name.
func addressesOf(c *infrav1.VCDCluster) []string {
	if kube := c.Spec.Endpoint.KubeVIP; kube != nil && len(kube.Addresses) > 0 {
		return kube.Addresses
	}
	if host := c.Spec.ControlPlaneEndpoint.Host; host != "" {
		return []string{host}
	}
	return nil
}

// announcesByBGP reports whether kube-vip announces the virtual IPs of c to routers.
func announcesByBGP(c *infrav1.VCDCluster) bool {
	kube := c.Spec.Endpoint.KubeVIP
	return kube != nil && kube.BGP != nil
}
