// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

// name gives the machine the name of its VM, the id that marks it and its zone, for life. All are stored before
// anything is created in VCD, by a patch that a pass which saw an old object cannot make.
func (p *placer) name(ctx context.Context) (phases.Result, error) {
	m := p.inputs.vcdMachine
	if m.Annotations[infrav1.InstanceIDAnnotation] != "" && m.Annotations[infrav1.VMNameAnnotation] != "" {
		return phases.Done, nil
	}
	name, out := p.vmName()
	if out != phases.Done {
		return out, nil
	}
	before := m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[infrav1.VMNameAnnotation] = name
	if p.zone != nil {
		m.Annotations[infrav1.DeploymentZoneAnnotation] = p.zone.Name
		m.Annotations[infrav1.OVDCIDAnnotation] = p.target.vdc.ID
	}
	if m.Annotations[infrav1.InstanceIDAnnotation] == "" {
		m.Annotations[infrav1.InstanceIDAnnotation] = string(m.UID)
	}
	status := m.Status.DeepCopy()
	version := m.ResourceVersion
	if err := p.client.Patch(ctx, m,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return phases.Done, fmt.Errorf("storing the name of VM %s: %w", name, err)
	}
	m.Status = *status
	m.ResourceVersion = version // The patch at the end starts from what was read.
	return phases.Done, nil
}

// vmName returns the name of the VM, which is its host name too: one that the machine has already, be it without an
// instance id, else the one that its template gives, which is always the same.
func (p *placer) vmName() (string, phases.Result) {
	if name := p.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation]; name != "" {
		if err := vmname.Check(name); err != nil {
			return "", phases.Stop(infrav1.VMNameInvalidReason, "Annotation %s: %v: make the machine anew without it",
				infrav1.VMNameAnnotation, err)
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
