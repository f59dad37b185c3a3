// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conflictBackoff limits the retries of a status write that conflicts with the write of another client.
var conflictBackoff = wait.Backoff{
	Steps:    5,
	Duration: 100 * time.Millisecond,
	Jitter:   1,
}

// A Patcher stores the changes that a reconcile makes to an object. It stores the spec, which contains the records of
// controllers, before the status, so that the status refers to the resulting generation. The status is stored once, at
// the end, in one request.
type Patcher struct {
	client client.Client
	writes *Writes
	obj    Object
	stored Object // obj as last stored
	latest Object // last response of the API server, perhaps newer than the cache; nil if nothing was written

	compared comparison // the last one, because a pass compares the same states several times
}

// A comparison is the difference between two states of an object.
type comparison struct {
	from, to Object
	patch    []byte // merge patch
}

// begin makes the current object the base of later comparisons.
func (p *Patcher) begin() { p.stored = copyOf(p.obj) }

// Save stores all changes of metadata and spec so far, without waiting for the end of the pass.
func (p *Patcher) Save(ctx context.Context) error { return p.save(ctx, "") }

// SaveIfCurrent stores all changes of metadata and spec so far. It returns a conflict if the object has changed since
// it was read.
func (p *Patcher) SaveIfCurrent(ctx context.Context) error {
	return p.save(ctx, p.stored.GetResourceVersion())
}

// save stores metadata and spec. If resourceVersion is not empty, save fails unless the object still has that version.
func (p *Patcher) save(ctx context.Context, resourceVersion string) error {
	change, err := p.change()
	if err != nil {
		return err
	}
	delete(change, "status")
	if len(change) == 0 {
		return nil
	}
	if resourceVersion != "" {
		metadata, _ := change["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata["resourceVersion"] = resourceVersion
		change["metadata"] = metadata
	}
	answer := copyOf(p.obj)
	patch, err := mergePatch(change)
	if err != nil {
		return err
	}
	if err := p.client.Patch(ctx, answer, patch); err != nil {
		return fmt.Errorf("storing %s: %w", klog.KObj(p.obj), err)
	}
	p.writes.remember(answer)
	p.latest = answer
	p.obj.SetResourceVersion(answer.GetResourceVersion())
	if was := p.obj.GetGeneration(); answer.GetGeneration() == was+1 { // Other changes are left to the next pass.
		moveTo(p.obj, was+1)
	}
	return p.specIsStored()
}

// saveSpec stores metadata and spec if the spec changed.
func (p *Patcher) saveSpec(ctx context.Context) error {
	change, err := p.change()
	if err != nil || change["spec"] == nil {
		return err
	}
	return ignoreGone(p.obj, p.Save(ctx))
}

// finish stores the remaining changes at the end of a reconcile that owns the given conditions. Metadata comes last,
// since it may lose its finalizer.
func (p *Patcher) finish(ctx context.Context, owned []string) error {
	err := ignoreGone(p.obj, p.saveStatus(ctx, owned))
	return errors.Join(err, ignoreGone(p.obj, p.Save(ctx)))
}

// saveStatus stores the status. A merge patch replaces all conditions, so saveStatus keeps those that another client
// changed meanwhile, except for the owned ones.
func (p *Patcher) saveStatus(ctx context.Context, owned []string) error {
	change, err := p.change()
	if err != nil {
		return err
	}
	status, _ := change["status"].(map[string]any)
	delete(status, "conditions")
	moved, err := conditions.NewPatch(p.stored, p.obj)
	switch {
	case err != nil:
		return fmt.Errorf("comparing %s: %w", klog.KObj(p.obj), err)
	case len(moved) == 0 && len(status) == 0:
		return nil
	case len(moved) == 0:
		return p.patchStatus(ctx, copyOf(p.obj), map[string]any{"status": status})
	}
	return retry.RetryOnConflict(conflictBackoff, func() error { return p.mergeStatus(ctx, status, moved, owned) })
}

// mergeStatus stores a change of the status and of its conditions. It returns a conflict if the object was changed
// meanwhile. Conditions that cannot be merged do not keep the rest from being stored.
func (p *Patcher) mergeStatus(ctx context.Context, status map[string]any, moved conditions.Patch, owned []string) error {
	latest, err := p.read(ctx)
	if err != nil {
		return err
	}
	moved = slices.DeleteFunc(slices.Clone(moved), func(op conditions.PatchOperation) bool {
		return !slices.Contains(owned, typeOf(op)) && isOvertaken(op, latest)
	})
	unmerged := moved.Apply(latest, conditions.OwnedConditionTypes(owned))
	if unmerged != nil {
		unmerged = fmt.Errorf("storing %s: %w", klog.KObj(p.obj), unmerged)
	}
	merged := maps.Clone(status)
	if merged == nil {
		merged = map[string]any{}
	}
	merged["conditions"] = latest.GetConditions()
	err = p.patchStatus(ctx, latest, map[string]any{
		"metadata": map[string]any{"resourceVersion": latest.GetResourceVersion()},
		"status":   merged,
	})
	return errors.Join(unmerged, err)
}

// typeOf returns the type of the condition that an operation changes.
func typeOf(op conditions.PatchOperation) string {
	if op.After != nil {
		return op.After.Type
	}
	return op.Before.Type
}

// isOvertaken reports whether an operation only updates the observed generation of a condition that another client has
// changed meanwhile.
func isOvertaken(op conditions.PatchOperation, latest Object) bool {
	if op.Op != conditions.ChangeConditionPatch || !conditions.HasSameStateExceptObservedGeneration(op.Before, op.After) {
		return false
	}
	now := conditions.Get(latest, op.After.Type)
	return now == nil || !conditions.HasSameState(now, op.Before)
}

// patchStatus applies a change of the status to latest, the object as last known to be stored.
func (p *Patcher) patchStatus(ctx context.Context, latest Object, change map[string]any) error {
	patch, err := mergePatch(change)
	if err != nil {
		return err
	}
	if err := p.client.Status().Patch(ctx, latest, patch); err != nil {
		return fmt.Errorf("storing the status of %s: %w", klog.KObj(p.obj), err)
	}
	p.writes.remember(latest)
	return nil
}

// read returns the object as last known to be stored. The first call after a write returns the response to that write,
// because the cache may be older.
func (p *Patcher) read(ctx context.Context) (Object, error) {
	latest := p.latest
	p.latest = nil
	if latest != nil {
		return latest, nil
	}
	latest = copyOf(p.stored)
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(p.obj), latest); err != nil {
		return nil, fmt.Errorf("reading %s: %w", klog.KObj(p.obj), err)
	}
	return latest, nil
}

// change returns the changes since the object was last stored, as a merge patch; nil if there are none. The caller may
// modify it.
func (p *Patcher) change() (map[string]any, error) {
	if reflect.DeepEqual(p.stored, p.obj) {
		return nil, nil
	}
	if p.compared.from != p.stored || !reflect.DeepEqual(p.compared.to, p.obj) {
		patch, err := client.MergeFrom(p.stored).Data(p.obj)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", klog.KObj(p.obj), err)
		}
		p.compared = comparison{p.stored, copyOf(p.obj), patch}
	}
	change := map[string]any{}
	if err := json.Unmarshal(p.compared.patch, &change); err != nil {
		return nil, fmt.Errorf("comparing %s: %w", klog.KObj(p.obj), err)
	}
	return change, nil
}

// specIsStored makes the current metadata and spec the base of later comparisons. The base of the status remains the
// status that was last stored.
func (p *Patcher) specIsStored() error {
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.stored)
	if err != nil {
		return fmt.Errorf("comparing %s: %w", klog.KObj(p.obj), err)
	}
	now, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.obj)
	if err != nil {
		return fmt.Errorf("comparing %s: %w", klog.KObj(p.obj), err)
	}
	now["status"] = was["status"]
	stored := copyOf(p.obj)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(now, stored); err != nil {
		return fmt.Errorf("comparing %s: %w", klog.KObj(p.obj), err)
	}
	p.stored = stored
	return nil
}

// moveTo sets the generation of an object, and of those conditions that observed its current generation.
func moveTo(obj Object, generation int64) {
	moved := obj.GetConditions()
	for i := range moved {
		if moved[i].ObservedGeneration == obj.GetGeneration() {
			moved[i].ObservedGeneration = generation
		}
	}
	obj.SetConditions(moved)
	obj.SetGeneration(generation)
}

// mergePatch encodes a change as a merge patch.
func mergePatch(change map[string]any) (client.Patch, error) {
	data, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

// ignoreGone ignores NotFound for an object that is being deleted: this pass may have removed its last finalizer, or an
// earlier one that a stale cache does not show yet.
func ignoreGone(obj client.Object, err error) error {
	if obj.GetDeletionTimestamp().IsZero() {
		return err
	}
	return client.IgnoreNotFound(err)
}

func copyOf(obj Object) Object {
	copied, _ := obj.DeepCopyObject().(Object) // of the same type
	return copied
}
