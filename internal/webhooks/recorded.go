// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// CRD rules protect the state that the controllers record for a machine. This file contains the rules that the CRD
// cannot express.

// recordedChangeErrors rejects an instance ID other than the UID of the object, which would make the object the owner
// of another machine's VM. It also rejects the loss of recorded state that identifies the VM, for requests in CAPVCD's
// versions.
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

// goneInTemplateErrors rejects a template that declares the VMs of all its machines gone, because these VMs would
// remain in VCD.
func goneInTemplateErrors(t *infrav1.VCDMachineTemplate) field.ErrorList {
	if _, ok := t.Spec.Template.ObjectMeta.Annotations[infrav1.VMGoneAnnotation]; !ok {
		return nil
	}
	return field.ErrorList{
		field.Forbidden(annotationsInTemplate.Key(infrav1.VMGoneAnnotation), "belongs to a single machine: remove the field"),
	}
}
