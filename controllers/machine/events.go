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

// vmCreated records that the VM of m was created.
func vmCreated(r events.EventRecorder, m *infrav1.VCDMachine, vm vcd.Ref) {
	phases.Happened(r, m, "VMCreated", "Created VM "+vm.Name+" ("+vm.ID+")")
}

// vmAdopted records that the machine adopted a VM that CAPVCD created.
func vmAdopted(r events.EventRecorder, m *infrav1.VCDMachine, vm vcd.Ref) {
	phases.Happened(r, m, "VMAdopted", "Adopted VM "+vm.Name+" ("+vm.ID+"), which CAPVCD created")
}

// versionMismatch records that the Kubernetes version of the image of m differs from the version of its Machine.
func versionMismatch(r events.EventRecorder, m *infrav1.VCDMachine, found *checks.Finding) {
	r.Eventf(m, nil, corev1.EventTypeWarning, infrav1.KubernetesVersionMismatchReason,
		infrav1.KubernetesVersionMismatchReason, "%s: %s", found.Message, found.Remedy)
}

// vmPoweredOn records that the VM of m was powered on.
func vmPoweredOn(r events.EventRecorder, m *infrav1.VCDMachine) {
	phases.Happened(r, m, "VMPoweredOn", "Powered on the VM")
}

// vmPoweredOnAgain records that the VM of m was found powered off and was powered on again; n counts the attempts in a
// row.
func vmPoweredOnAgain(r events.EventRecorder, m *infrav1.VCDMachine, n int) {
	phases.Happened(r, m, "VMPoweredOnAgain",
		fmt.Sprintf("Powered on the VM again after it was found powered off (attempt %d of %d in a row)", n, maxRevivals))
}

// vmReset records that a reset of the VM of m was requested for a VCDRemediation; n is its number.
func vmReset(r events.EventRecorder, m *infrav1.VCDMachine, n int32) {
	phases.Happened(r, m, "VMReset", fmt.Sprintf("Requested reset %d of the VM for a VCDRemediation", n))
}

// hardwareUpdated records that the CPUs and memory of the VM of m were changed in place.
func hardwareUpdated(r events.EventRecorder, m *infrav1.VCDMachine, vm vcd.VM) {
	phases.Happened(r, m, "HardwareUpdated",
		fmt.Sprintf("Changed the VM to %d CPUs and %d MiB of memory", vm.CPUs, vm.MemoryMiB))
}

// vmRestarting records that the VM of m is restarted because its new CPUs or memory cannot be added while it runs.
func vmRestarting(r events.EventRecorder, m *infrav1.VCDMachine) {
	phases.Happened(r, m, "VMRestarting", "Restarting the VM to change its CPUs and memory")
}

// hardwareRejected records that VCD rejected new CPUs or memory of the VM of m.
func hardwareRejected(r events.EventRecorder, m *infrav1.VCDMachine, why string) {
	r.Eventf(m, nil, corev1.EventTypeWarning, infrav1.HardwareRejectedReason, infrav1.HardwareRejectedReason, "%s", why)
}

// diskExpanded records that the first disk of the VM of m was expanded.
func diskExpanded(r events.EventRecorder, m *infrav1.VCDMachine, size string) {
	phases.Happened(r, m, "DiskExpanded", "Expanded the first disk to "+size+"; the guest must expand its file system")
}

// vmConsolidated records that the VM of m was consolidated, so its disks can be expanded.
func vmConsolidated(r events.EventRecorder, m *infrav1.VCDMachine) {
	phases.Happened(r, m, "VMConsolidated", "Consolidated the VM, a linked clone; its disks can now be expanded")
}

// vmGone records that the VM of m no longer exists, although the provider did not delete it.
func vmGone(r events.EventRecorder, m *infrav1.VCDMachine, vmID string) {
	r.Eventf(m, nil, corev1.EventTypeWarning, infrav1.VMNotFoundReason, infrav1.VMNotFoundReason, "%s",
		"VM "+vmID+" no longer exists in VCD")
}

// vmFound records that the VM of m, which was declared as deleted, reappeared.
func vmFound(r events.EventRecorder, m *infrav1.VCDMachine, vm vcd.Ref) {
	phases.Happened(r, m, "VMFound", "VM "+vm.Name+" ("+vm.ID+") reappeared in VCD")
}

// vmLossUnacknowledged records that no missing VM of c is treated as deleted until a user acknowledges the loss.
func vmLossUnacknowledged(r events.EventRecorder, c *infrav1.VCDCluster) {
	r.Eventf(c, nil, corev1.EventTypeWarning, infrav1.VMLossUnacknowledgedReason, infrav1.VMLossUnacknowledgedReason, "%s",
		"VMs of several clusters of the site went missing at the same time, so the provider treats none of them as deleted. Check VCD. If the missing VMs are deleted, annotate VCDCluster "+c.Name+" with "+
			infrav1.GoneAcknowledgedAnnotation+"=true")
}

// withdrawalUnconfirmed records that the VM of m is powered off although load balancers may still send requests to it.
func withdrawalUnconfirmed(r events.EventRecorder, m *infrav1.VCDMachine, node string) {
	r.Eventf(m, nil, corev1.EventTypeWarning, "WithdrawalUnconfirmed", "WithdrawalUnconfirmed", "%s",
		fmt.Sprintf("The cloud controller manager did not confirm in %s that load balancers send no more requests to Node %s. The deletion continues, and requests may fail until health monitors notice it. Check the cloud controller manager of the workload cluster", withdrawalLimit, node))
}

// vmDeleted records that the VM of m was deleted.
func vmDeleted(r events.EventRecorder, m *infrav1.VCDMachine, vmID string) {
	phases.Happened(r, m, "VMDeleted", "Deleted VM "+vmID)
}

// creationCleanedUp records that the removal of an object of a failed creation was requested.
func creationCleanedUp(r events.EventRecorder, m *infrav1.VCDMachine, what vcd.Ref) {
	phases.Happened(r, m, "FailedCreationCleanedUp", "Requested the removal of an object of a failed creation: "+
		what.Name+" ("+what.ID+")")
}

// diskDetached records that the detachment of an independent disk from the VM of m was requested. The disk is retained.
func diskDetached(r events.EventRecorder, m *infrav1.VCDMachine, disk vcd.Ref) {
	phases.Happened(r, m, "DiskDetached", "Requested to detach independent disk "+disk.Name+" ("+disk.ID+
		"), which is retained")
}

// bootstrapDataRemoved records that the removal of bootstrap data was requested because the guest did not remove it.
func bootstrapDataRemoved(r events.EventRecorder, m *infrav1.VCDMachine) {
	phases.Happened(r, m, "BootstrapDataRemoved", "Requested the removal of bootstrap data that the guest did not remove")
}

// vmShared records that the VM of m was not deleted because it also belongs to another VCDMachine.
func vmShared(r events.EventRecorder, m *infrav1.VCDMachine, vmID string) {
	phases.Happened(r, m, "VMNotOwned", "VM "+vmID+" also belongs to another VCDMachine and was not deleted")
}

// vmNotOwned records that a VM with the name of the machine does not belong to it and was not deleted.
func vmNotOwned(r events.EventRecorder, obj runtime.Object, name string) {
	phases.Happened(r, obj, "VMNotOwned", "VM "+name+" does not belong to this machine and was not deleted")
}
