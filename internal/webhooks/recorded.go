// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// recordedAnnotations are what the identity of a machine's VM hangs on. The controller writes each once. They are
// annotations because those survive a move to another management cluster, where the object is created with them.
var recordedAnnotations = []string{
	infrav1.InstanceIDAnnotation, infrav1.VMNameAnnotation, infrav1.PoweredOnAnnotation,
	infrav1.DeploymentZoneAnnotation, infrav1.OVDCIDAnnotation,
}

// recordedErrors returns what is wrong with the annotations that identify the VM of a machine.
func recordedErrors(m *infrav1.VCDMachine) field.ErrorList {
	var errs field.ErrorList
	for _, key := range recordedAnnotations {
		value, ok := m.Annotations[key]
		if !ok {
			continue
		}
		at := annotationsPath.Key(key)
		switch _, err := time.Parse(time.RFC3339, value); {
		case key == infrav1.PoweredOnAnnotation && err != nil:
			errs = append(errs, field.Invalid(at, value, "is no time: the controller writes it, leave it out"))
		case value == "" || strings.ContainsAny(value, " \t\n"):
			errs = append(errs, field.Invalid(at, value, "must be a word: the controller writes it, leave it out"))
		}
	}
	return errs
}

// recordedChangeErrors refuses changes of the annotations that identify the VM of a machine. An instance id that is
// added is the object's own: any other would make it the owner of another machine's VM.
func recordedChangeErrors(_ context.Context, before, m *infrav1.VCDMachine) field.ErrorList {
	var errs field.ErrorList
	for _, key := range recordedAnnotations {
		at := annotationsPath.Key(key)
		if was, had := before.Annotations[key]; had {
			is, has := m.Annotations[key]
			if has && was != is || !has && !movedAway(m) {
				errs = append(errs, field.Forbidden(at, "is immutable: it identifies the VM of the machine"))
			}
			continue
		}
		if problem := addedProblem(m, key); problem != "" {
			errs = append(errs, field.Forbidden(at, problem+": the controller writes it"))
		}
	}
	return append(errs, without(recordedErrors(m), recordedErrors(before))...)
}

// movedAway reports whether clusterctl move is about to delete m. It replaces all annotations by its own for that.
func movedAway(m *infrav1.VCDMachine) bool {
	_, ok := m.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return ok && len(m.Annotations) == 1
}

// addedProblem returns why an annotation cannot be added.
func addedProblem(m *infrav1.VCDMachine, key string) string {
	value, added := m.Annotations[key]
	switch {
	case added && key == infrav1.InstanceIDAnnotation && value != string(m.UID):
		return "must be the UID of the VCDMachine"
	case added && key == infrav1.PoweredOnAnnotation && m.Spec.ProviderID == "":
		return "needs a VM, and the VCDMachine has none"
	}
	return ""
}

// recordedInTemplateErrors refuses to give all machines of a template the identity of one VM, or to declare the VMs of
// all gone: they would be left in VCD.
func recordedInTemplateErrors(t *infrav1.VCDMachineTemplate) field.ErrorList {
	var errs field.ErrorList
	for _, key := range append(slices.Clone(recordedAnnotations), infrav1.VMGoneAnnotation) {
		if _, ok := t.Spec.Template.ObjectMeta.Annotations[key]; ok {
			errs = append(errs, field.Forbidden(annotationsInTemplate.Key(key), "is of one machine: leave it out"))
		}
	}
	return errs
}
