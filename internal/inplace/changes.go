// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A field is a field of a VCDMachineSpec that can change while the VM exists.
type field struct {
	name string
	// allows reports whether the change is possible in place.
	allows func(current, desired *infrav1.VCDMachineSpec) bool
}

// fields are the fields that can change in place. All other changes replace the machine.
var fields = []field{
	{
		name: "cpus",
		allows: func(current, desired *infrav1.VCDMachineSpec) bool {
			return desired.CPUs > 0 && hasNoPolicy(current, desired)
		},
	},
	{
		name: "memory",
		allows: func(current, desired *infrav1.VCDMachineSpec) bool {
			return desired.Memory != nil && hasNoPolicy(current, desired)
		},
	},
	{
		name: "diskSize",
		allows: func(current, desired *infrav1.VCDMachineSpec) bool {
			// The size in the template is not known here, so that a first size may be below it.
			return current.DiskSize != nil && desired.DiskSize != nil && desired.DiskSize.Cmp(*current.DiskSize) >= 0
		},
	},
	{name: "powerOffPolicy", allows: always},
	{name: "powerOffMode", allows: always},
	{name: "shutdownTimeoutSeconds", allows: always},
}

func always(_, _ *infrav1.VCDMachineSpec) bool { return true }

// hasNoPolicy reports whether the machine has its own CPUs and memory, before and after the change.
func hasNoPolicy(current, desired *infrav1.VCDMachineSpec) bool {
	return current.SizingPolicy == "" && desired.SizingPolicy == ""
}

// changes returns the values, by field, that turn the current spec of a machine into the desired one as far as that is
// possible in place. A value of nil removes the field. The values are those of the request, so that Cluster API finds no
// difference in their notation.
func changes(current, desired map[string]any) (map[string]any, error) {
	var from, to infrav1.VCDMachineSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(current, &from); err != nil {
		return nil, fmt.Errorf("reading the current spec: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(desired, &to); err != nil {
		return nil, fmt.Errorf("reading the desired spec: %w", err)
	}
	found := map[string]any{}
	for _, f := range fields {
		if !reflect.DeepEqual(current[f.name], desired[f.name]) && f.allows(&from, &to) {
			found[f.name] = desired[f.name]
		}
	}
	return found, nil
}

// patchFor returns the patch that makes the possible changes of an object of a kind, whose path leads to the spec of a
// machine. It returns an empty patch for other kinds, and if there are none.
func patchFor(current, desired runtime.RawExtension, kind string, path ...string) (runtimehooksv1.Patch, error) {
	from, ok, err := specOf(current, kind, path)
	if err != nil || !ok {
		return runtimehooksv1.Patch{}, err
	}
	to, ok, err := specOf(desired, kind, path)
	if err != nil || !ok {
		return runtimehooksv1.Patch{}, err
	}
	found, err := changes(from, to)
	if err != nil || len(found) == 0 {
		return runtimehooksv1.Patch{}, err
	}
	patch := map[string]any{}
	if err := unstructured.SetNestedMap(patch, found, path...); err != nil {
		return runtimehooksv1.Patch{}, fmt.Errorf("writing a patch: %w", err)
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return runtimehooksv1.Patch{}, fmt.Errorf("writing a patch: %w", err)
	}
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: body}, nil
}

// specOf returns the spec of a machine in an object. It returns false for an object of another kind or version.
func specOf(object runtime.RawExtension, kind string, path []string) (map[string]any, bool, error) {
	found := &unstructured.Unstructured{}
	if err := json.Unmarshal(object.Raw, found); err != nil {
		return nil, false, fmt.Errorf("reading an object of the request: %w", err)
	}
	if found.GroupVersionKind() != infrav1.GroupVersion.WithKind(kind) {
		return nil, false, nil
	}
	spec, ok, err := unstructured.NestedMap(found.Object, path...)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s %s: %w", kind, found.GetName(), err)
	}
	return spec, ok, nil
}
