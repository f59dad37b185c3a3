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

// endpointKnown records the control-plane endpoint of c.
func endpointKnown(r events.EventRecorder, c *infrav1.VCDCluster) {
	phases.Happened(r, c, "EndpointSet", "The control-plane endpoint is "+c.Spec.ControlPlaneEndpoint.String())
}

// clusterAdopted records that a vApp that CAPVCD made is c's.
func clusterAdopted(r events.EventRecorder, c *infrav1.VCDCluster, vApp vcd.Ref) {
	phases.Happened(r, c, "VAppAdopted", "Adopted vApp "+vApp.Name+" ("+vApp.ID+"), which CAPVCD created")
}

// vipMayBeFiltered records that the network of c has a SpoofGuard profile, which may filter the virtual IP.
func vipMayBeFiltered(r events.EventRecorder, c *infrav1.VCDCluster, network, profile string) {
	r.Eventf(c, nil, corev1.EventTypeWarning, "VirtualIPMayBeFiltered", "VirtualIPMayBeFiltered", "%s",
		phases.Shorten("Network "+network+" has the SpoofGuard profile "+profile+": if it is enabled, NSX drops "+
			"what comes from the virtual IP. Ask the provider to allow several addresses for each port, or for NSX's "+
			"default profile"))
}

// gatewayChanged records that the network of c is on another edge gateway than before.
func gatewayChanged(r events.EventRecorder, c *infrav1.VCDCluster, gateway vcd.Ref) {
	phases.Happened(r, c, "EdgeGatewayChanged",
		"The network of the cluster is on edge gateway "+gateway.Name+
			" now: load balancers on the former one go with the cluster")
}

// vAppDeleted records that a vApp of c is gone.
func vAppDeleted(r events.EventRecorder, c *infrav1.VCDCluster, name string) {
	phases.Happened(r, c, "VAppDeleted", "vApp "+name+" is deleted")
}

// diskDeleted records that an independent disk of c is being deleted, as its policy says.
func diskDeleted(r events.EventRecorder, c *infrav1.VCDCluster, disk vcd.Ref) {
	phases.Happened(r, c, "DiskDeleted", "Deleting independent disk "+notes.DiskText(disk))
}

// disksLeft records which independent disks of c may still be there.
func disksLeft(r events.EventRecorder, c *infrav1.VCDCluster, disks []string) {
	phases.Happened(r, c, "DisksRetained", "Independent disks are kept. Known are those that are marked as the "+
		"cluster's, and those that were detached from its VMs, "+
		"if they were not deleted since: "+phases.Few(disks))
}

// leftToDuplicate records that what carries the id of c stays in VCD, because it may be another cluster's.
func leftToDuplicate(r events.EventRecorder, c *infrav1.VCDCluster) {
	phases.Happened(r, c, "SharedResourcesRetained",
		"Another VCDCluster has spec.infraID "+c.Spec.InfraID+", too: what carries it in VCD is left alone")
}

// goneAcknowledged records that a user acknowledged that missing VMs of c are gone.
func goneAcknowledged(r events.EventRecorder, c *infrav1.VCDCluster) {
	phases.Happened(r, c, "VMLossAcknowledged",
		"A user acknowledged with annotation "+infrav1.GoneAcknowledgedAnnotation+
			" that the VMs of the cluster that are missing now are gone. VMs that go missing later are not covered")
}
