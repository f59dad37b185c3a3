// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A home is the VDC and the network that a cluster is in, as they were found.
type home struct {
	vdc     vcd.VDC
	network vcd.Network

	by       *session.Machines // the session that found them: another may see others
	settings settings.Version
	until    time.Time
}

// isCurrent reports whether a cached home counts: the cluster was complete once, and nothing that it depends on changed.
func (h home) isCurrent(c *infrav1.VCDCluster, by *session.Machines, now time.Time) bool {
	recorded := &c.Spec.RecordedState
	return recorded.OVDCID == h.vdc.ID && c.Status.OVDC != nil &&
		recorded.OVDCNetworkID == h.network.ID && c.Status.OVDCNetwork != nil &&
		h.settings == homeSettings(c) && h.by == by && now.Before(h.until)
}

// homeSettings is the version of the settings that a home depends on: not the endpoint, which a pass completes.
func homeSettings(c *infrav1.VCDCluster) settings.Version {
	without := *c
	without.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
	return settings.Of(&without)
}

// recordHome records where a cluster is whose spec cannot be changed any more. What is recorded stays: a cluster in
// zones may have been found in another one, or in another network, meanwhile.
func recordHome(c *infrav1.VCDCluster, h home) {
	if recorded := placement.RecordedVDC(c); recorded != "" && recorded != h.vdc.ID {
		return
	}
	to := &c.Spec.RecordedState
	to.OVDCID = h.vdc.ID
	if to.OVDCNetworkID == "" {
		to.OVDCNetworkID = h.network.ID
	}
}

// identify gives a cluster the id that its objects in VCD carry, and records where it is. What was recorded without an
// id is of the cluster that this one was copied from.
func identify(c *infrav1.VCDCluster, h home) {
	if c.Spec.InfraID == "" {
		of := &c.Spec.RecordedState
		of.OVDCID = ""
		of.OVDCNetworkID = ""
		of.EndpointGatewayID = ""
		of.EndpointAddresses = nil
		c.Spec.InfraID = string(c.UID)
		recordVirtualIPs(c)
	}
	recordHome(c, h)
}

// recordVirtualIPs stores the virtual IPs of both families that come from pools. The host of the endpoint has the first;
// a move drops the status, which has the second.
func recordVirtualIPs(c *infrav1.VCDCluster) {
	kube := c.Spec.ControlPlaneLoadBalancer.KubeVIP
	if kube != nil && len(kube.SecondaryPoolRefs) > 0 && len(c.Status.VirtualIPs) > 1 {
		c.Spec.RecordedState.EndpointAddresses = slices.Clone(c.Status.VirtualIPs)
	}
}
