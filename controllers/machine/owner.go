// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

// ownsVM reports whether a VM belongs to the machine, so that it may be changed. The proof is the marker in its
// description. CAPVCD did not mark VMs: a VM that it created has the machine's name, or the recorded URN after the
// adoption, and is in the vApp that CAPVCD created for the cluster. Before the adoption, a URN alone is no proof,
// because a copied VCDMachine has the same URN.
func ownsVM(ctx context.Context, metadata marks.VAppMetadata, in *inputs, vm vcd.VM) (bool, error) {
	if in.hasMarker(vm.Description) {
		return true, nil
	}
	if !in.createdByCAPVCD() {
		return false, nil
	}
	isAdopted := in.vcdMachine.Spec.RecordedState.PoweredOnAt != nil
	isRecorded := in.vmID() == "" || vm.ID == in.vmID()
	if !isRecorded || !isAdopted && vm.Name != in.vmName() {
		return false, nil
	}
	return marks.OwnsUnmarkedVM(ctx, metadata, in.vcdCluster.Spec.InfraID, vm)
}

// createdByCAPVCD reports whether CAPVCD created the VM of the machine, if the VM exists. This provider records its own
// requests before it sends them.
func (i *inputs) createdByCAPVCD() bool {
	return i.vcdCluster != nil && ownership.ByCAPVCD(i.vcdCluster) &&
		i.vcdMachine.Spec.RecordedState.CreationRequestedAt == nil
}

// vmName returns the recorded name of the VM. While no name is recorded, it returns the name that CAPVCD gave the VM,
// derived from the naming template; empty if that is unknown.
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

// renderVMName returns the name of the VM according to the naming template.
func (i *inputs) renderVMName() (string, error) {
	return vmname.Render(i.vcdMachine.Spec.VMNamingTemplate, vmname.Input{
		Cluster:    i.cluster.Name,
		Machine:    vmname.ObjectOf(i.machine),
		VCDMachine: vmname.ObjectOf(i.vcdMachine),
	})
}
