// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// switches are the annotations with which users make decisions, mostly during a deletion. Values other than "true" have
// no effect.
var switches = []string{
	infrav1.KeepLoadBalancersAnnotation, infrav1.KeepVAppAnnotation, infrav1.VMGoneAnnotation,
	infrav1.DriftInReadyAnnotation,
}

// switchErrors rejects switches in the annotations at a path that are set to a value without effect, unless they had
// that value before.
func switchErrors(before, annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range switches {
		value, set := annotations[key]
		was, known := before[key]
		if set && (!known || value != was) && !slices.Contains([]string{"true", "false", ""}, value) {
			errs = append(errs, field.NotSupported(path.Key(key), value, []string{"true", "false"}))
		}
	}
	return append(errs, acknowledgementErrors(before, annotations, path)...)
}

// acknowledgementErrors rejects a value of gone-acknowledged without effect, unless it was set before. The effective
// value is "true", which the controller replaces with the time.
func acknowledgementErrors(before, annotations map[string]string, path *field.Path) field.ErrorList {
	key := infrav1.GoneAcknowledgedAnnotation
	value, set := annotations[key]
	_, err := time.Parse(time.RFC3339, value)
	if !set || value == "true" || err == nil || value == before[key] {
		return nil
	}
	return field.ErrorList{field.NotSupported(path.Key(key), value, []string{"true"})}
}

// switchesInTemplate rejects switches that a template sets to a value without effect. It accepts a template with an
// owner, which may have existed before on another management cluster.
func switchesInTemplate(template client.Object, annotations map[string]string) field.ErrorList {
	if len(template.GetOwnerReferences()) > 0 {
		return nil
	}
	return switchErrors(nil, annotations, annotationsInTemplate)
}

var (
	annotationsPath       = field.NewPath("metadata", "annotations")
	annotationsInTemplate = field.NewPath("spec", "template", "metadata", "annotations")
)
