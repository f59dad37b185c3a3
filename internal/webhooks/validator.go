// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/cluster-api/util/topology"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// validator implements the admission policy of all kinds. Each kind adds its rules.
type validator[T client.Object] struct {
	kind string
	// finalizer is the finalizer by which objects that existed before are recognized. It is empty if controllers add
	// none.
	finalizer string
	// spec returns the validated part of an object. An update that does not change it is always admitted.
	spec func(obj T) any
	// rules returns the errors of an object.
	rules func(obj T) field.ErrorList
	// created returns errors that only apply to new objects; may be nil.
	created func(obj T) field.ErrorList
	// changes returns errors for changes that are not allowed; may be nil.
	changes func(ctx context.Context, oldObj, newObj T) (field.ErrorList, error)
	// always returns errors that also apply to objects that existed before; may be nil.
	always func(obj T) field.ErrorList
	// recorded returns errors in recorded state, even if the object is being deleted; may be nil.
	recorded func(ctx context.Context, oldObj, newObj T) field.ErrorList
	// reserved returns errors for changes that only controllers may make, even if the object is being deleted; may be
	// nil.
	reserved func(oldObj, newObj T) field.ErrorList
	// byController reports whether the controllers send the request. If it is nil, the sender is unknown, and reserved
	// changes are admitted.
	byController func(ctx context.Context) (bool, error)
	// warnings returns warnings about settings that are valid but not recommended; may be nil.
	warnings func(obj T) admission.Warnings
}

var _ admission.Validator[*infrav1.VCDCluster] = &validator[*infrav1.VCDCluster]{}

// ValidateCreate implements admission.Validator. Objects that existed before, on another management cluster or before a
// restore, are admitted unchanged. They are recognized by their finalizer, which moves and restores preserve.
func (v *validator[T]) ValidateCreate(_ context.Context, obj T) (admission.Warnings, error) {
	return v.creation(obj)
}

// creation validates the creation of an object.
func (v *validator[T]) creation(obj T) (admission.Warnings, error) {
	warnings := v.warn(obj)
	errs := append(v.rules(obj), switchErrors(nil, obj.GetAnnotations(), annotationsPath)...)
	if v.created != nil {
		errs = append(errs, v.created(obj)...)
	}
	if v.finalizer == "" || !phases.Holds(obj, v.finalizer) {
		return warnings, v.invalid(obj, errs)
	}
	var hard field.ErrorList
	if v.always != nil {
		hard = v.always(obj)
	}
	for _, err := range without(errs, hard) {
		warnings = append(warnings, err.Error())
	}
	return warnings, v.invalid(obj, hard)
}

// ValidateUpdate implements admission.Validator. It ignores errors that existed before the update: the rules of a newer
// release must not keep the controllers from updating an object that an older release admitted. For an object that is
// being deleted, it only validates annotations and recorded state.
func (v *validator[T]) ValidateUpdate(ctx context.Context, oldObj, newObj T) (admission.Warnings, error) {
	errs := switchErrors(oldObj.GetAnnotations(), newObj.GetAnnotations(), annotationsPath)
	if v.recorded != nil {
		errs = append(errs, v.recorded(ctx, oldObj, newObj)...)
	}
	reserved, err := v.reservedErrors(ctx, oldObj, newObj)
	if err != nil {
		return nil, err
	}
	errs = append(errs, reserved...)
	if !newObj.GetDeletionTimestamp().IsZero() || equality.Semantic.DeepEqual(v.spec(oldObj), v.spec(newObj)) {
		return nil, v.invalid(newObj, errs)
	}

	errs = append(errs, without(v.rules(newObj), v.rules(oldObj))...)
	if v.changes != nil {
		changes, err := v.changes(ctx, oldObj, newObj)
		if err != nil {
			return nil, err
		}
		errs = append(errs, changes...)
	}
	return v.warn(newObj), v.invalid(newObj, errs)
}

// reservedErrors returns errors for changes by other users that only the controllers may make.
func (v *validator[T]) reservedErrors(ctx context.Context, oldObj, newObj T) (field.ErrorList, error) {
	if v.reserved == nil || v.byController == nil {
		return nil, nil
	}
	errs := v.reserved(oldObj, newObj)
	if len(errs) == 0 {
		return nil, nil
	}
	own, err := v.byController(ctx)
	if own || err != nil {
		return nil, err
	}
	return errs, nil
}

// ValidateDelete implements admission.Validator. Deletions are always admitted, and the webhooks are not registered for
// them.
func (v *validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) {
	return nil, nil
}

func (v *validator[T]) warn(obj T) admission.Warnings {
	if v.warnings == nil {
		return nil
	}
	return v.warnings(obj)
}

func (v *validator[T]) invalid(obj T, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: infrav1.GroupVersion.Group, Kind: v.kind}, obj.GetName(), errs)
}

// without returns the errors that are not in before.
func without(errs, before field.ErrorList) field.ErrorList {
	known := sets.New[string]()
	for _, err := range before {
		known.Insert(err.Error())
	}
	var fresh field.ErrorList
	for _, err := range errs {
		if !known.Has(err.Error()) {
			fresh = append(fresh, err)
		}
	}
	return fresh
}

// templateUnchanged rejects any change of a template, except in dry runs of the topology controller, which determine
// the effect of a change.
func templateUnchanged(ctx context.Context, obj client.Object, remedy string) (field.ErrorList, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the admission request: %w", err)
	}
	if topology.IsDryRunRequest(request, obj) {
		return nil, nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "template"), "is immutable: "+remedy)}, nil
}
