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

// name gives the machine the name of its VM, the id that marks it and its zone, for life. All are stored before
// anything is created in VCD, by a patch that a pass which saw an old object cannot make.
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

// vmName returns the name of the VM, which is its host name too: one that the machine has already, be it without an
// instance id, else the one that its template gives, which is always the same.
func (p *placer) vmName() (string, phases.Result) {
	if name := p.inputs.vcdMachine.Spec.RecordedState.VMName; name != "" {
		if err := vmname.Check(name); err != nil {
			return "", phases.Stop(infrav1.VMNameInvalidReason, "spec.recordedState.vmName: %v: recreate the "+
				"machine without this field", err)
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
