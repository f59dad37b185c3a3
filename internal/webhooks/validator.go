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

// validator is the policy of all kinds; a kind adds its rules.
type validator[T client.Object] struct {
	kind string
	// finalizer is what a controller put on an object that existed before; empty: controllers put none.
	finalizer string
	// spec returns what is validated: an update that does not change it is always admitted.
	spec func(obj T) any
	// rules returns what is wrong with an object.
	rules func(obj T) field.ErrorList
	// created returns what is wrong with a new object only; may be nil.
	created func(obj T) field.ErrorList
	// changes returns what may not be changed; may be nil.
	changes func(ctx context.Context, oldObj, newObj T) (field.ErrorList, error)
	// always returns what is also refused of an object that existed before; may be nil.
	always func(obj T) field.ErrorList
	// recorded returns what is wrong with what a controller recorded, also of an object that is deleted; may be nil.
	recorded func(ctx context.Context, oldObj, newObj T) field.ErrorList
	// reserved returns what only the controllers may have changed, also of an object that is deleted; may be nil.
	reserved func(oldObj, newObj T) field.ErrorList
	// own reports whether the controllers make the request; nil: that is not known, and what is reserved is admitted.
	own func(ctx context.Context) (bool, error)
	// warnings returns what is allowed but unwise; may be nil.
	warnings func(obj T) admission.Warnings
}

var _ admission.Validator[*infrav1.VCDCluster] = &validator[*infrav1.VCDCluster]{}

// ValidateCreate implements admission.Validator. An object that existed before, on another management cluster or before
// a restore, is admitted as it was: moves and restores keep its finalizer.
func (v *validator[T]) ValidateCreate(_ context.Context, obj T) (admission.Warnings, error) {
	return v.creation(obj)
}

// creation validates a new object.
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

// ValidateUpdate implements admission.Validator. What was wrong before may stay: the rules of a newer release must not
// stop the controllers from writing an object that an older one admitted. Of an object that is deleted only annotations
// are validated.
func (v *validator[T]) ValidateUpdate(ctx context.Context, oldObj, newObj T) (admission.Warnings, error) {
	errs := switchErrors(oldObj.GetAnnotations(), newObj.GetAnnotations(), annotationsPath)
	if v.recorded != nil {
		errs = append(errs, v.recorded(ctx, oldObj, newObj)...)
	}
	taken, err := v.taken(ctx, oldObj, newObj)
	if err != nil {
		return nil, err
	}
	errs = append(errs, taken...)
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

// taken returns what another user changed although only the controllers may.
func (v *validator[T]) taken(ctx context.Context, oldObj, newObj T) (field.ErrorList, error) {
	if v.reserved == nil || v.own == nil {
		return nil, nil
	}
	errs := v.reserved(oldObj, newObj)
	if len(errs) == 0 {
		return nil, nil
	}
	own, err := v.own(ctx)
	if own || err != nil {
		return nil, err
	}
	return errs, nil
}

// ValidateDelete implements admission.Validator. Deletions are always admitted; the webhooks are not registered for
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

// without returns those errors that were not there before.
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

// templateUnchanged refuses any change of a template, but for the topology controller's dry runs, which ask what a
// change would be.
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
