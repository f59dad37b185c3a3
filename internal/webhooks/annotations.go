package webhooks

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// switches are the annotations by which a person decides something, mostly during a deletion. Any value but "true" has
// no effect.
var switches = []string{
	infrav1.KeepLoadBalancersAnnotation, infrav1.KeepVAppAnnotation, infrav1.VMGoneAnnotation,
	infrav1.DriftInReadyAnnotation,
}

// switchErrors returns which switches newObj sets to what has no effect, and oldObj does not.
func switchErrors(oldAnnotations map[string]string, newObj client.Object) field.ErrorList {
	var errs field.ErrorList
	for _, key := range switches {
		value, set := newObj.GetAnnotations()[key]
		before, known := oldAnnotations[key]
		if set && (!known || value != before) && !slices.Contains([]string{"true", "false", ""}, value) {
			errs = append(errs, field.NotSupported(field.NewPath("metadata", "annotations").Key(key), value,
				[]string{"true", "false"}))
		}
	}
	return errs
}
