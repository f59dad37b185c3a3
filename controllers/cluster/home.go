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

// A home is the VDC and the network of a cluster, as found in VCD.
type home struct {
	vdc     vcd.VDC
	network vcd.Network

	by       *session.Machines // clients of the session that found them; other sessions may see other objects
	settings settings.Version
	until    time.Time
}

// isCurrent reports whether a cached home is valid: the cluster was complete once, and nothing that it depends on
// changed.
func (h home) isCurrent(c *infrav1.VCDCluster, by *session.Machines, now time.Time) bool {
	recorded := &c.Spec.RecordedState
	return recorded.OVDCID == h.vdc.ID && c.Status.OVDC != nil &&
		recorded.OVDCNetworkID == h.network.ID && c.Status.OVDCNetwork != nil &&
		h.settings == homeSettings(c) && h.by == by && now.Before(h.until)
}

// homeSettings is the version of the settings that a home depends on. It excludes the endpoint, which a pass sets.
func homeSettings(c *infrav1.VCDCluster) settings.Version {
	without := *c
	without.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
	return settings.Of(&without)
}

// recordHome records the VDC and network of a cluster, whose spec is then immutable. It does not change existing
// records, because a cluster in zones may meanwhile have been found in another zone or network.
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

// identify sets the ID that marks the objects of a cluster in VCD, and records its home. It clears records without an
// ID, which belong to the cluster from which this one was copied.
func identify(c *infrav1.VCDCluster, h home) {
	if c.Spec.InfraID == "" {
		of := &c.Spec.RecordedState
		of.OVDCID = ""
		of.OVDCNetworkID = ""
		of.EndpointGatewayID = ""
		of.EndpointAddresses = nil
		of.VAppMetadata = nil
		c.Spec.InfraID = string(c.UID)
		recordVirtualIPs(c)
	}
	recordHome(c, h)
}

// recordVirtualIPs records the virtual IPs of both families if they come from pools. The host of the endpoint contains
// the first one, but a move drops the status, which contains the second.
func recordVirtualIPs(c *infrav1.VCDCluster) {
	kube := c.Spec.ControlPlaneLoadBalancer.KubeVIP
	if kube != nil && len(kube.SecondaryPoolRefs) > 0 && len(c.Status.VirtualIPs) > 1 {
		c.Spec.RecordedState.EndpointAddresses = slices.Clone(c.Status.VirtualIPs)
	}
}
