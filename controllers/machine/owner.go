// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

// ownsVM reports whether a VM is the machine's, so that it may be written to. The marker in its description says so.
// CAPVCD marked no VMs: one that it made has the machine's name, or the recorded URN once it is adopted, and is in the
// vApp that CAPVCD made for the cluster. Before the adoption a URN alone is no proof: a copied VCDMachine has it, too.
func ownsVM(ctx context.Context, metadata marks.VAppMetadata, in *inputs, vm vcd.VM) (bool, error) {
	if in.marks(vm.Description) {
		return true, nil
	}
	if !in.madeByCAPVCD() {
		return false, nil
	}
	isAdopted := in.vcdMachine.Spec.RecordedState.PoweredOnAt != nil
	isRecorded := in.vmID() == "" || vm.ID == in.vmID()
	if !isRecorded || !isAdopted && vm.Name != in.vmName() {
		return false, nil
	}
	return marks.OwnsUnmarkedVM(ctx, metadata, in.vcdCluster.Spec.InfraID, vm)
}

// madeByCAPVCD reports whether the VM of the machine, if there is one, was made by CAPVCD: this provider notes its own
// requests before it sends them.
func (i *inputs) madeByCAPVCD() bool {
	return i.vcdCluster != nil && ownership.ByCAPVCD(i.vcdCluster) &&
		i.vcdMachine.Spec.RecordedState.CreationRequestedAt == nil
}

// vmName returns the recorded name of the VM. While none is recorded, it returns the name that CAPVCD gave it, which
// follows from the naming template; empty if that is not known.
func (i *inputs) vmName() string {
	if name := i.vcdMachine.Spec.RecordedState.VMName; name != "" {
		return name
	}
	if i.machine == nil || i.cluster == nil {
		return ""
	}
	name, err := i.renderVMName()
	if err != nil {
		return ""
	}
	return name
}

// renderVMName returns the name that the naming template gives to the VM.
func (i *inputs) renderVMName() (string, error) {
	return vmname.Render(i.vcdMachine.Spec.VMNamingTemplate, vmname.Input{
		Cluster:    i.cluster.Name,
		Machine:    vmname.ObjectOf(i.machine),
		VCDMachine: vmname.ObjectOf(i.vcdMachine),
	})
}
