// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

// name assigns the machine the name of its VM, its instance ID and its zone, which never change. They are stored before
// anything is created in VCD. The patch fails in a pass that read an outdated object.
func (p *placer) name(ctx context.Context) (phases.Result, error) {
	m := p.inputs.vcdMachine
	if m.Spec.RecordedState.InstanceID != "" && m.Spec.RecordedState.VMName != "" {
		return phases.Done, nil
	}
	name, out := p.vmName()
	if out != phases.Done {
		return out, nil
	}
	before := *m.Spec.RecordedState.DeepCopy()
	record := &m.Spec.RecordedState
	record.VMName = name
	record.InstanceID = cmp.Or(record.InstanceID, string(m.UID))
	if p.zone != nil {
		record.DeploymentZone = p.zone.Name
		record.OVDCID = p.target.vdc.ID
	}
	if err := p.patcher.SaveIfCurrent(ctx); err != nil {
		m.Spec.RecordedState = before
		return phases.Done, fmt.Errorf("storing the name of VM %s: %w", name, err)
	}
	return phases.Done, nil
}

// vmName returns the name of the VM, which is also its host name. It returns the recorded name, even if no instance ID
// is recorded. Otherwise, it renders the naming template, which always results in the same name.
func (p *placer) vmName() (string, phases.Result) {
	if name := p.inputs.vcdMachine.Spec.RecordedState.VMName; name != "" {
		if err := vmname.Check(name); err != nil {
			return "", phases.Stop(infrav1.VMNameInvalidReason, "spec.recordedState.vmName: %v: recreate the machine without this field", err)
		}
		return name, phases.Done
	}
	name, err := p.inputs.renderVMName()
	if err != nil {
		return "", phases.Stop(infrav1.VMNameInvalidReason,
			"%v: correct spec.vmNamingTemplate in the VCDMachineTemplate", err)
	}
	return name, phases.Done
}
