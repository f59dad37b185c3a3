package controllers

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// maxNote is what the events API takes.
const maxNote = 1024

// problemFound records a problem that a condition tells of.
func problemFound(r events.EventRecorder, obj runtime.Object, condition string, out outcome) {
	r.Eventf(obj, nil, corev1.EventTypeWarning, out.reason, condition, "%s", shorten(out.message))
}

// vmCreated records that the VM of m is there.
func vmCreated(r events.EventRecorder, m *infrav1.VCDMachine, vm vcd.Ref) {
	happened(r, m, "VMCreated", "Created VM "+vm.Name+" ("+vm.ID+")")
}

// vmPoweredOn records that the VM of m runs.
func vmPoweredOn(r events.EventRecorder, m *infrav1.VCDMachine) {
	happened(r, m, "VMPoweredOn", "Powered on the VM")
}

// vmPoweredOnAgain records that the VM of m was found powered off and is powered on, the nth time in a row.
func vmPoweredOnAgain(r events.EventRecorder, m *infrav1.VCDMachine, n int) {
	happened(r, m, "PoweringOnAgain", fmt.Sprintf("The VM was found powered off: powering it on again (%d of at most %d in a row)", n, maxRevivals))
}

// diskGrown records that the first disk of the VM of m has the wished size.
func diskGrown(r events.EventRecorder, m *infrav1.VCDMachine, size string) {
	happened(r, m, "DiskGrown", "Grew the first disk to "+size+"; its guest has to grow the file system")
}

// vmGone records that the VM of m, which nobody asked us to delete, is gone.
func vmGone(r events.EventRecorder, m *infrav1.VCDMachine, vmID string) {
	r.Eventf(m, nil, corev1.EventTypeWarning, infrav1.VMNotFoundReason, infrav1.VMNotFoundReason, "%s", "VM "+vmID+" is gone from VCD")
}

// vmBack records that the VM of m, which was declared gone, is there.
func vmBack(r events.EventRecorder, m *infrav1.VCDMachine, vm vcd.Ref) {
	happened(r, m, "VMBack", "VM "+vm.Name+" ("+vm.ID+") is there again")
}

// goneStopped records that nothing of c counts as gone until a person says so.
func goneStopped(r events.EventRecorder, c *infrav1.VCDCluster) {
	r.Eventf(c, nil, corev1.EventTypeWarning, infrav1.GoneStoppedReason, infrav1.GoneStoppedReason, "%s",
		"VMs of several clusters of the site went missing together, so none of this cluster counts as gone: look at VCD. If those that are missing are gone, annotate VCDCluster "+
			c.Name+" with "+infrav1.GoneAcknowledgedAnnotation+"=true")
}

// goneAcknowledged records that a person said that missing VMs of c are gone.
func goneAcknowledged(r events.EventRecorder, c *infrav1.VCDCluster) {
	happened(r, c, "GoneAcknowledged", "VMs of the cluster that are missing now count as gone: annotation "+infrav1.GoneAcknowledgedAnnotation+" says so")
}

// vmDeleted records that the VM of m is gone.
func vmDeleted(r events.EventRecorder, m *infrav1.VCDMachine, vmID string) {
	happened(r, m, "VMDeleted", "Deleted VM "+vmID)
}

// leftoverRemoved records that what a failed creation left behind is being removed.
func leftoverRemoved(r events.EventRecorder, m *infrav1.VCDMachine, what vcd.Ref) {
	happened(r, m, "LeftoverRemoved", "Removing what a failed creation left behind: "+what.Name+" ("+what.ID+")")
}

// diskDetached records that an independent disk is being detached from the VM of m. It stays in the VDC.
func diskDetached(r events.EventRecorder, m *infrav1.VCDMachine, disk vcd.Ref) {
	happened(r, m, "DiskDetached", "Detaching independent disk "+disk.Name+" ("+disk.ID+"); it is kept")
}

// bootstrapDataRemoved records that the guest did not remove the bootstrap data and we do.
func bootstrapDataRemoved(r events.EventRecorder, m *infrav1.VCDMachine) {
	happened(r, m, "BootstrapDataRemoved", "Removing the bootstrap data from the VM, which its guest left there")
}

// endpointKnown records the control-plane endpoint of c.
func endpointKnown(r events.EventRecorder, c *infrav1.VCDCluster) {
	happened(r, c, "EndpointKnown", "The control-plane endpoint is "+c.Spec.ControlPlaneEndpoint.String())
}

// cloudProviderAdded records that the cloud controller manager is on its way into the workload cluster of c.
func cloudProviderAdded(r events.EventRecorder, c *infrav1.VCDCluster, image string) {
	happened(r, c, "CloudProviderAdded", "Putting the cloud controller manager "+image+" into the workload cluster")
}

// cloudProviderMended records that somebody changed or deleted what belongs to the cloud controller manager of c, and that it is applied anew.
func cloudProviderMended(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	happened(r, c, "CloudProviderMended", "Changed or missing in the workload cluster, and applied anew: "+few(what))
}

// cloudProviderRemoved records what was removed from the workload cluster of c.
func cloudProviderRemoved(r events.EventRecorder, c *infrav1.VCDCluster, what []string) {
	happened(r, c, "CloudProviderRemoved", "Removed from the workload cluster: "+few(what))
}

// balancersDeleted records what of the load balancers of c was removed.
func balancersDeleted(r events.EventRecorder, c *infrav1.VCDCluster, where string, what []string) {
	happened(r, c, "LoadBalancersDeleted", "Removed from "+where+": "+few(what))
}

// balancersLeft records that load balancers of c may be left.
func balancersLeft(r events.EventRecorder, c *infrav1.VCDCluster, why string) {
	r.Eventf(c, nil, corev1.EventTypeWarning, infrav1.LoadBalancersRemainReason, infrav1.LoadBalancersRemainReason, "%s",
		shorten("Load balancers of the cluster may be left in VCD, marked with its id "+c.Spec.InfraID+": "+why))
}

// gatewayChanged records that the network of c is on another edge gateway than before.
func gatewayChanged(r events.EventRecorder, c *infrav1.VCDCluster, gateway vcd.Ref) {
	happened(r, c, "EdgeGatewayChanged", "The network of the cluster is on edge gateway "+gateway.Name+" now: load balancers on the former one go with the cluster")
}

// vAppDeleted records that a vApp of c is gone.
func vAppDeleted(r events.EventRecorder, c *infrav1.VCDCluster, name string) {
	happened(r, c, "VAppDeleted", "vApp "+name+" is deleted")
}

// diskDeleted records that an independent disk of c is being deleted, as its policy wishes.
func diskDeleted(r events.EventRecorder, c *infrav1.VCDCluster, disk vcd.Ref) {
	happened(r, c, "DiskDeleted", "Deleting independent disk "+diskText(disk))
}

// disksLeft records which independent disks of c may still be there.
func disksLeft(r events.EventRecorder, c *infrav1.VCDCluster, disks []string) {
	happened(r, c, "DisksLeft", "Independent disks are kept. Known are those that are marked as the cluster's, and those that were detached from its VMs, "+
		"if nobody deleted them since: "+few(disks))
}

// leftToNamesake records that what carries the id of c stays in VCD, because it may be another cluster's.
func leftToNamesake(r events.EventRecorder, c *infrav1.VCDCluster) {
	happened(r, c, "LeftToNamesake", "Another VCDCluster has spec.infraID "+c.Spec.InfraID+", too: what carries it in VCD is left alone")
}

// vAppLeft records that a vApp has the name of ours but is not ours, and stays.
func vAppLeft(r events.EventRecorder, obj runtime.Object, name string) {
	happened(r, obj, "VAppLeft", "vApp "+name+" is not this cluster's and is left alone")
}

// vAppKept records that a vApp of ours stays, as a person wishes, with VMs that are not ours.
func vAppKept(r events.EventRecorder, obj runtime.Object, name string, foreign []string) {
	happened(r, obj, "VAppKept", "vApp "+name+" is left in VCD with "+few(foreign))
}

// vmLeftToTwin records that the VM of m stays, because it is another VCDMachine's, too.
func vmLeftToTwin(r events.EventRecorder, m *infrav1.VCDMachine, vmID string) {
	happened(r, m, "VMLeft", "VM "+vmID+" is another VCDMachine's, too, and is left alone")
}

// vmLeft records that a VM has the name of ours but is not ours, and stays.
func vmLeft(r events.EventRecorder, obj runtime.Object, name string) {
	happened(r, obj, "VMLeft", "VM "+name+" is not this machine's and is left alone")
}

func happened(r events.EventRecorder, obj runtime.Object, reason, note string) {
	r.Eventf(obj, nil, corev1.EventTypeNormal, reason, reason, "%s", shorten(note))
}

func shorten(note string) string {
	if len(note) <= maxNote {
		return note
	}
	return strings.ToValidUTF8(note[:maxNote-len("…")], "") + "…"
}
