// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// endpointSet records that the control-plane endpoint of c was set.
func endpointSet(r events.EventRecorder, c *infrav1.VCDCluster) {
	phases.Happened(r, c, "EndpointSet", "The control-plane endpoint is "+c.Spec.ControlPlaneEndpoint.String())
}

// clusterAdopted records that c adopted a vApp that CAPVCD created.
func clusterAdopted(r events.EventRecorder, c *infrav1.VCDCluster, vApp vcd.Ref) {
	phases.Happened(r, c, "VAppAdopted", "Adopted vApp "+vApp.Name+" ("+vApp.ID+"), which CAPVCD created")
}

// vipMayBeFiltered records that the network of c has a SpoofGuard profile that may filter the virtual IP.
func vipMayBeFiltered(r events.EventRecorder, c *infrav1.VCDCluster, network, profile string) {
	r.Eventf(c, nil, corev1.EventTypeWarning, "VirtualIPMayBeFiltered", "VirtualIPMayBeFiltered", "%s",
		phases.Shorten("Network "+network+" has the SpoofGuard profile "+profile+": if it is enabled, NSX drops traffic from the virtual IP. Ask the provider to allow several addresses for each port, or to assign NSX's default profile"))
}

// gatewayChanged records that the network of c moved to another edge gateway.
func gatewayChanged(r events.EventRecorder, c *infrav1.VCDCluster, gateway vcd.Ref) {
	phases.Happened(r, c, "EdgeGatewayChanged",
		"The network of the cluster moved to edge gateway "+gateway.Name+"; load balancers on the previous edge gateway are deleted with the cluster")
}

// vAppDeleted records that a vApp of c was deleted.
func vAppDeleted(r events.EventRecorder, c *infrav1.VCDCluster, name string) {
	phases.Happened(r, c, "VAppDeleted", "vApp "+name+" is deleted")
}

// diskDeleted records that the deletion of an independent disk of c was requested, as set in its policy.
func diskDeleted(r events.EventRecorder, c *infrav1.VCDCluster, disk vcd.Ref) {
	phases.Happened(r, c, "DiskDeleted", "Deleting independent disk "+notes.DiskText(disk))
}

// disksRetained records that independent disks of c were retained.
func disksRetained(r events.EventRecorder, c *infrav1.VCDCluster, disks []string) {
	phases.Happened(r, c, "DisksRetained", "Retained the independent disks that are marked as the cluster's or were detached from its VMs, unless they have been deleted since: "+phases.Few(disks))
}

// sharedRetained records that VCD objects with the ID of c were not deleted, because they may belong to another
// cluster.
func sharedRetained(r events.EventRecorder, c *infrav1.VCDCluster) {
	phases.Happened(r, c, "SharedResourcesRetained",
		"Another VCDCluster has spec.infraID "+c.Spec.InfraID+" too; objects with this ID in VCD were not deleted")
}

// vmLossAcknowledged records that a user acknowledged that missing VMs of c are deleted.
func vmLossAcknowledged(r events.EventRecorder, c *infrav1.VCDCluster) {
	phases.Happened(r, c, "VMLossAcknowledged",
		"A user acknowledged with annotation "+infrav1.GoneAcknowledgedAnnotation+" that the missing VMs of the cluster are deleted. VMs that go missing later need another acknowledgement")
}
