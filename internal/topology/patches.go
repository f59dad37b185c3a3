// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// applyPatches applies patches in order, and returns the names of those that require a runtime extension.
func applyPatches(patches []clusterv1.ClusterClassPatch, parts []*part) ([]string, error) {
	var external []string
	for _, patch := range patches {
		if patch.External != nil && patch.External.GeneratePatchesExtension != "" {
			external = append(external, patch.Name)
			continue
		}
		var errs []error
		for _, p := range parts {
			if err := p.apply(patch); err != nil {
				errs = append(errs, fmt.Errorf("patch %s of %s %s: %w", patch.Name, p.object.GetKind(), p.origin, err))
			}
		}
		if len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
	}
	return external, nil
}

// apply applies a patch to a part, if the patch is enabled and selects the part.
func (p *part) apply(patch clusterv1.ClusterClassPatch) error {
	definitions := matching(patch.Definitions, p)
	if len(definitions) == 0 {
		return nil
	}
	if enabled, err := p.enables(patch.EnabledIf); err != nil || !enabled {
		return err
	}
	for _, definition := range definitions {
		operations, err := p.operations(definition.JSONPatches)
		if err != nil {
			return err
		}
		if err := p.patch(operations); err != nil {
			return err
		}
	}
	return nil
}

// enables reports whether the condition of a patch renders to true. An empty condition is always true.
func (p *part) enables(condition string) (bool, error) {
	if condition == "" {
		return true, nil
	}
	value, err := p.values.render(condition)
	if err != nil {
		return false, fmt.Errorf("enabledIf: %w", err)
	}
	return value == true, nil
}

// An operation is an operation of a JSON patch.
type operation struct {
	Op    string           `json:"op"`
	Path  string           `json:"path"`
	Value *json.RawMessage `json:"value,omitempty"`
}

// operations returns the operations of JSON patches with the values of their variables and templates.
func (p *part) operations(patches []clusterv1.JSONPatch) ([]operation, error) {
	operations := make([]operation, 0, len(patches))
	for _, patch := range patches {
		next := operation{Op: patch.Op, Path: patch.Path}
		if patch.Op != "remove" {
			value, err := p.values.of(patch)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", patch.Op, patch.Path, err)
			}
			next.Value = &value
		}
		operations = append(operations, next)
	}
	return operations, nil
}

// patch applies operations. They can only change the spec, the labels and the annotations.
func (p *part) patch(operations []operation) error {
	if len(operations) == 0 {
		return nil
	}
	before, err := p.object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	raw, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("reading the operations: %w", err)
	}
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return fmt.Errorf("reading the operations: %w", err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		return err
	}
	patched := &unstructured.Unstructured{}
	if err := patched.UnmarshalJSON(after); err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	p.object.Object["spec"] = patched.Object["spec"]
	p.object.SetLabels(patched.GetLabels())
	p.object.SetAnnotations(patched.GetAnnotations())
	return nil
}
