// SPDX-License-Identifier: Apache-2.0

// Package virtualip finds the virtual IPs of clusters, which VCD does not know: kube-vip announces them. It also checks
// whether addresses can be virtual IPs of a cluster.
package virtualip

import (
	"net/netip"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
)

// Addresses returns those of some hosts that are addresses.
func Addresses(hosts []string) []netip.Addr {
	var all []netip.Addr
	for _, host := range hosts {
		if addr, err := netip.ParseAddr(host); err == nil {
			all = append(all, addr)
		}
	}
	return all
}

// Of returns the virtual IPs of a cluster, as far as its object shows them.
func Of(c *infrav1.VCDCluster) []netip.Addr {
	if c.Spec.ControlPlaneLoadBalancer.Type != infrav1.EndpointKubeVIP && c.Spec.ControlPlaneLoadBalancer.Type != "" {
		return nil
	}
	all := slices.Concat(Addresses([]string{c.Spec.ControlPlaneEndpoint.Host}), Addresses(c.Status.VirtualIPs))
	if kube := c.Spec.ControlPlaneLoadBalancer.KubeVIP; kube != nil {
		all = append(all, Addresses([]string{kube.SecondaryAddress})...)
	}
	return all
}

// Shares reports whether another cluster is in a network, given by its URN, of the site of c.
func Shares(c, other *infrav1.VCDCluster, network string) bool {
	id := other.Spec.RecordedState.OVDCNetworkID
	if id == "" && other.Status.OVDCNetwork != nil {
		id = other.Status.OVDCNetwork.ID
	}
	return id == network && session.NormalSite(other.Spec.Site) == session.NormalSite(c.Spec.Site)
}

// KubeVIP returns how kube-vip announces the virtual IPs of a cluster; the zero value if its spec does not say.
func KubeVIP(c *infrav1.VCDCluster) infrav1.KubeVIPEndpoint {
	if kube := c.Spec.ControlPlaneLoadBalancer.KubeVIP; kube != nil {
		return *kube
	}
	return infrav1.KubeVIPEndpoint{}
}

// remedy returns how a person gives a cluster another virtual IP.
func remedy(c *infrav1.VCDCluster) string {
	kube := KubeVIP(c)
	host := c.Spec.ControlPlaneEndpoint.Host
	switch _, err := netip.ParseAddr(host); {
	case host == "" && len(kube.PoolRefs) > 0:
		return "take it out of the pools of spec.controlPlaneLoadBalancer.kubeVIP and delete the IPAddressClaims of " +
			"the VCDCluster"
	case err != nil:
		return "correct the record of " + host
	}
	return "choose another in spec.controlPlaneEndpoint"
}
