// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// What the controllers record of a machine is guarded by rules of the CRD. What those cannot say is here.

// recordedChangeErrors refuses an instance ID that is not the object's own: it would make the object the owner of another
// machine's VM. It also refuses the loss of what identifies the VM, to requests in the versions of CAPVCD.
func recordedChangeErrors(_ context.Context, before, m *infrav1.VCDMachine) field.ErrorList {
	was := &before.Spec.RecordedState
	is := &m.Spec.RecordedState
	var errs field.ErrorList
	if was.InstanceID == "" && is.InstanceID != "" && is.InstanceID != string(m.UID) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "recordedState", "instanceID"),
			"must be the UID of the VCDMachine, which the controller sets"))
	}
	var recorded []fixedField
	for _, f := range []fixedField{
		{"recordedState.instanceID", was.InstanceID, is.InstanceID},
		{"recordedState.vmName", was.VMName, is.VMName},
		{"recordedState.deploymentZone", was.DeploymentZone, is.DeploymentZone},
		{"recordedState.ovdcID", was.OVDCID, is.OVDCID},
		{"recordedState.poweredOnAt", was.PoweredOnAt, is.PoweredOnAt},
		{"recordedState.deleteRequestedAt", was.DeleteRequestedAt, is.DeleteRequestedAt},
		{"recordedState.vmGoneAt", was.VMGoneAt, is.VMGoneAt},
	} {
		if !reflect.ValueOf(f.before).IsZero() {
			recorded = append(recorded, f)
		}
	}
	return append(errs, fixedErrors(recorded, "is immutable: it identifies the VM of the machine")...)
}

// goneInTemplateErrors refuses to declare the VMs of all machines of a template gone: they would be left in VCD.
func goneInTemplateErrors(t *infrav1.VCDMachineTemplate) field.ErrorList {
	if _, ok := t.Spec.Template.ObjectMeta.Annotations[infrav1.VMGoneAnnotation]; !ok {
		return nil
	}
	return field.ErrorList{
		field.Forbidden(annotationsInTemplate.Key(infrav1.VMGoneAnnotation), "belongs to a single machine: "+
			"remove the field"),
	}
}
