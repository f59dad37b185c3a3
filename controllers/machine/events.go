// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// vmCreated records that the VM of m is there.
func vmCreated(r events.EventRecorder, m *infrav1.VCDMachine, vm vcd.Ref) {
	phases.Happened(r, m, "VMCreated", "Created VM "+vm.Name+" ("+vm.ID+")")
}

// vmAdopted records that a VM that CAPVCD made is the machine's.
func vmAdopted(r events.EventRecorder, m *infrav1.VCDMachine, vm vcd.Ref) {
	phases.Happened(r, m, "VMAdopted", "Adopted VM "+vm.Name+" ("+vm.ID+"), which CAPVCD created")
}

// otherKubernetes records that the image of m has another version of Kubernetes than its Machine asks for.
func otherKubernetes(r events.EventRecorder, m *infrav1.VCDMachine, found *checks.Finding) {
	r.Eventf(m, nil, corev1.EventTypeWarning, infrav1.KubernetesVersionMismatchReason,
		infrav1.KubernetesVersionMismatchReason, "%s: %s", found.Message, found.Remedy)
}

// vmPoweredOn records that the VM of m runs.
func vmPoweredOn(r events.EventRecorder, m *infrav1.VCDMachine) {
	phases.Happened(r, m, "VMPoweredOn", "Powered on the VM")
}

// vmPoweredOnAgain records that the VM of m was found powered off and is powered on, the nth time in a row.
func vmPoweredOnAgain(r events.EventRecorder, m *infrav1.VCDMachine, n int) {
	phases.Happened(r, m, "VMPoweredOnAgain",
		fmt.Sprintf("The VM was found powered off: powering it on again (%d of at most %d in a row)", n, maxRevivals))
}

// vmReset records that VCD was asked to reset the VM of m, for the nth time in a remediation.
func vmReset(r events.EventRecorder, m *infrav1.VCDMachine, n int32) {
	phases.Happened(r, m, "VMReset", fmt.Sprintf("Requested reset %d of the VM for its VCDRemediation", n))
}

// diskGrown records that the first disk of the VM of m has the wished size.
func diskGrown(r events.EventRecorder, m *infrav1.VCDMachine, size string) {
	phases.Happened(r, m, "DiskExpanded", "Grew the first disk to "+size+"; its guest has to grow the file system")
}

// vmConsolidated records that the VM of m has disks of its own, which can grow.
func vmConsolidated(r events.EventRecorder, m *infrav1.VCDMachine) {
	phases.Happened(r, m, "VMConsolidated", "Consolidated the VM, a linked clone: its disks can grow")
}

// vmGone records that the VM of m is gone, which the provider did not delete.
func vmGone(r events.EventRecorder, m *infrav1.VCDMachine, vmID string) {
	r.Eventf(m, nil, corev1.EventTypeWarning, infrav1.VMNotFoundReason, infrav1.VMNotFoundReason, "%s",
		"VM "+vmID+" is gone from VCD")
}

// vmBack records that the VM of m, which was declared gone, is there.
func vmBack(r events.EventRecorder, m *infrav1.VCDMachine, vm vcd.Ref) {
	phases.Happened(r, m, "VMFound", "VM "+vm.Name+" ("+vm.ID+") is there again")
}

// goneStopped records that nothing of c counts as gone until a user acknowledges it.
func goneStopped(r events.EventRecorder, c *infrav1.VCDCluster) {
	r.Eventf(c, nil, corev1.EventTypeWarning, infrav1.VMLossUnacknowledgedReason, infrav1.VMLossUnacknowledgedReason, "%s",
		"VMs of several clusters of the site went missing together, so none of this cluster counts as gone: check "+
			"VCD. If those that are missing are gone, annotate VCDCluster "+
			c.Name+" with "+infrav1.GoneAcknowledgedAnnotation+"=true")
}

// vmDeleted records that the VM of m is gone.
func vmDeleted(r events.EventRecorder, m *infrav1.VCDMachine, vmID string) {
	phases.Happened(r, m, "VMDeleted", "Deleted VM "+vmID)
}

// leftoverRemoved records that what a failed creation left behind is being removed.
func leftoverRemoved(r events.EventRecorder, m *infrav1.VCDMachine, what vcd.Ref) {
	phases.Happened(r, m, "FailedCreationCleanedUp", "Removing what a failed creation left behind: "+what.Name+" ("+what.ID+")")
}

// diskDetached records that an independent disk is being detached from the VM of m. It stays in the VDC.
func diskDetached(r events.EventRecorder, m *infrav1.VCDMachine, disk vcd.Ref) {
	phases.Happened(r, m, "DiskDetached", "Detaching independent disk "+disk.Name+" ("+disk.ID+"); it is kept")
}

// bootstrapDataRemoved records that the guest did not remove the bootstrap data and the provider does.
func bootstrapDataRemoved(r events.EventRecorder, m *infrav1.VCDMachine) {
	phases.Happened(r, m, "BootstrapDataRemoved", "Removing the bootstrap data from the VM, which its guest left there")
}

// vmLeftToDuplicate records that the VM of m stays, because it is another VCDMachine's, too.
func vmLeftToDuplicate(r events.EventRecorder, m *infrav1.VCDMachine, vmID string) {
	phases.Happened(r, m, "VMNotOwned", "VM "+vmID+" is another VCDMachine's, too, and is left alone")
}

// vmLeft records that a VM with the name of the machine's is not the provider's, and stays.
func vmLeft(r events.EventRecorder, obj runtime.Object, name string) {
	phases.Happened(r, obj, "VMNotOwned", "VM "+name+" is not this machine's and is left alone")
}
