// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
)

// retryAfterSeconds is when Cluster API asks again for the progress of an update.
const retryAfterSeconds = 10

// canUpdateMachine returns the changes of a machine of a control plane that are possible in place.
func canUpdateMachine(request *runtimehooksv1.CanUpdateMachineRequest, response *runtimehooksv1.CanUpdateMachineResponse) error {
	patch, err := patchFor(request.Current.InfrastructureMachine, request.Desired.InfrastructureMachine, "VCDMachine", "spec")
	response.InfrastructureMachinePatch = patch
	return err
}

// canUpdateMachineSet returns the changes of the machines of a MachineSet that are possible in place.
func canUpdateMachineSet(request *runtimehooksv1.CanUpdateMachineSetRequest, response *runtimehooksv1.CanUpdateMachineSetResponse) error {
	patch, err := patchFor(request.Current.InfrastructureMachineTemplate, request.Desired.InfrastructureMachineTemplate,
		"VCDMachineTemplate", "spec", "template", "spec")
	response.InfrastructureMachineTemplatePatch = patch
	return err
}

// updateMachine reports whether the VM of a machine has its desired configuration. The reconciler of VCDMachines changes
// the VM as soon as Cluster API has stored the desired spec.
func updateMachine(request *runtimehooksv1.UpdateMachineRequest, response *runtimehooksv1.UpdateMachineResponse) error {
	m := &infrav1.VCDMachine{}
	if err := json.Unmarshal(request.Desired.InfrastructureMachine.Raw, m); err != nil {
		return fmt.Errorf("reading the infrastructure machine: %w", err)
	}
	if m.GroupVersionKind() != infrav1.GroupVersion.WithKind("VCDMachine") {
		return fmt.Errorf("machine %s is a %s, which this provider cannot update in place", m.Name, m.GroupVersionKind())
	}
	if pending := pendingChange(&m.Spec); pending != "" {
		response.RetryAfterSeconds = retryAfterSeconds
		response.Message = fmt.Sprintf("%s: see the conditions of VCDMachine %s", pending, m.Name)
	}
	return nil
}

// pendingChange returns the change of a VM that is not complete; empty if the VM has its desired configuration. It
// compares the spec with the state that the reconciler recorded in the same object.
func pendingChange(spec *infrav1.VCDMachineSpec) string {
	recorded := spec.RecordedState.VM
	if recorded == nil {
		return "Waiting for the first observation of the VM"
	}
	change := sizes.Change(spec, sizes.Size{CPUs: recorded.CPUs, MemoryMiB: recorded.MemoryMiB, DiskMiB: recorded.DiskMiB})
	switch {
	case spec.RecordedState.Restart.FailedAt != nil:
		return "VCD rejected the new CPUs or memory"
	case spec.RecordedState.Restart.RequestedAt != nil:
		return "Restarting the VM to change its CPUs and memory"
	case change.CPUs > 0:
		return "Changing the CPUs of the VM"
	case change.MemoryMiB > 0:
		return "Changing the memory of the VM"
	case change.DiskMiB > 0:
		return "Expanding the first disk of the VM"
	}
	return ""
}
