// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A home is the VDC and the network that a cluster is in, as they were found.
type home struct {
	vdc     vcd.VDC
	network vcd.Network

	by         *session.Machines // the session that found them: another may see others
	generation int64
	until      time.Time
}

// isCurrent reports whether a cached home counts: the cluster was complete once, and nothing that it depends on changed.
func (h home) isCurrent(c *infrav1.VCDCluster, by *session.Machines, now time.Time) bool {
	return c.Annotations[infrav1.OVDCIDAnnotation] == h.vdc.ID && c.Status.OVDC != nil &&
		c.Annotations[infrav1.OVDCNetworkIDAnnotation] == h.network.ID && c.Status.OVDCNetwork != nil &&
		h.generation == c.Generation && h.by == by && now.Before(h.until)
}

// recordHome records where a cluster is whose spec cannot be changed any more. What is recorded stays: a cluster in
// zones may have been found in another one, or in another network, meanwhile.
func recordHome(c *infrav1.VCDCluster, h home) {
	if recorded := placement.RecordedVDC(c); recorded != "" && recorded != h.vdc.ID {
		return
	}
	notes.Set(c, infrav1.OVDCIDAnnotation, h.vdc.ID)
	if c.Annotations[infrav1.OVDCNetworkIDAnnotation] == "" {
		notes.Set(c, infrav1.OVDCNetworkIDAnnotation, h.network.ID)
	}
}

// identify gives a cluster the id that its objects in VCD carry, and records where it is. What was recorded without an
// id is of the cluster that this one was copied from.
func identify(c *infrav1.VCDCluster, h home) {
	if c.Spec.InfraID == "" {
		for _, key := range []string{
			infrav1.OVDCIDAnnotation, infrav1.OVDCNetworkIDAnnotation, infrav1.EndpointGatewayAnnotation,
			infrav1.EndpointAddressesAnnotation,
		} {
			delete(c.Annotations, key)
		}
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
		notes.Set(c, infrav1.EndpointAddressesAnnotation, strings.Join(c.Status.VirtualIPs, ","))
	}
}
