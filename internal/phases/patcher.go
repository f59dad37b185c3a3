// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Patcher stores what a reconcile changes in an object. A change of the spec, which is where controllers record what
// they did, is stored before the status: the API server then knows a further generation of the object, and the status is
// of that one.
type Patcher struct {
	client client.Client
	obj    Object
	stored Object        // obj as it was stored last
	helper *patch.Helper // since then
}

// begin makes the patcher compare with the object as it is now.
func (p *Patcher) begin() error { return p.compareWith(p.obj, p.client) }

// compareWith makes the patcher compare with a state of the object that is stored.
func (p *Patcher) compareWith(stored Object, c client.Client) error {
	helper, err := patch.NewHelper(stored, c)
	if err != nil {
		return fmt.Errorf("preparing to patch %s: %w", klog.KObj(p.obj), err)
	}
	p.helper = helper
	p.stored = copyOf(stored)
	return nil
}

// Save stores what has changed so far, now rather than at the end.
func (p *Patcher) Save(ctx context.Context) error {
	if err := p.saveSpec(ctx); err != nil {
		return err
	}
	if err := p.helper.Patch(ctx, p.obj); err != nil {
		return fmt.Errorf("storing %s: %w", klog.KObj(p.obj), err)
	}
	return p.begin()
}

// SaveIfCurrent stores what has changed so far in metadata and spec, unless the object changed since it was read: then
// it returns a conflict.
func (p *Patcher) SaveIfCurrent(ctx context.Context) error {
	change, err := p.change()
	if err != nil || change == nil {
		return err
	}
	return p.patchSpec(ctx, change, p.stored.GetResourceVersion())
}

// saveSpec stores metadata and spec if the spec changed.
func (p *Patcher) saveSpec(ctx context.Context) error {
	change, err := p.change()
	if err != nil || change["spec"] == nil {
		return err
	}
	return p.patchSpec(ctx, change, "")
}

// change returns what has changed, as a merge patch; nil is nothing.
func (p *Patcher) change() (map[string]any, error) {
	if reflect.DeepEqual(p.stored, p.obj) {
		return nil, nil
	}
	data, err := client.MergeFrom(p.stored).Data(p.obj)
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", klog.KObj(p.obj), err)
	}
	change := map[string]any{}
	if err := json.Unmarshal(data, &change); err != nil {
		return nil, fmt.Errorf("comparing %s: %w", klog.KObj(p.obj), err)
	}
	return change, nil
}

// patchSpec stores what a change has of metadata and spec. It fails if the object has another resource version than the
// one given, if there is one.
func (p *Patcher) patchSpec(ctx context.Context, change map[string]any, resourceVersion string) error {
	delete(change, "status")
	if resourceVersion != "" {
		metadata, _ := change["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata["resourceVersion"] = resourceVersion
		change["metadata"] = metadata
	}
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("storing %s: %w", klog.KObj(p.obj), err)
	}
	answer := copyOf(p.obj)
	if err := p.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("storing %s: %w", klog.KObj(p.obj), err)
	}
	p.obj.SetResourceVersion(answer.GetResourceVersion())
	if was := p.obj.GetGeneration(); answer.GetGeneration() == was+1 { // Another change is for the next pass.
		moveTo(p.obj, was+1)
	}
	return p.specIsStored(answer)
}

// specIsStored makes the patcher compare with metadata and spec as they are now, and with the status as it was stored
// last. The API server returned answer for the object.
func (p *Patcher) specIsStored(answer Object) error {
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
	return p.compareWith(stored, &answered{Client: p.client, answer: answer})
}

// moveTo makes an object, and its conditions of the generation that it has, of another one.
func moveTo(obj Object, generation int64) {
	conditions := obj.GetConditions()
	for i := range conditions {
		if conditions[i].ObservedGeneration == obj.GetGeneration() {
			conditions[i].ObservedGeneration = generation
		}
	}
	obj.SetConditions(conditions)
	obj.SetGeneration(generation)
}

// finish stores what has changed at the end of a reconcile, which owns some conditions: they are overwritten even if
// another client has changed them meanwhile.
func (p *Patcher) finish(ctx context.Context, owned []string) error {
	return ignoreGone(p.obj, p.helper.Patch(ctx, p.obj, patch.WithOwnedConditions{Conditions: owned}))
}

// ignoreGone drops the errors of writing to an object that is gone because its last finalizer was removed, by this pass
// or by one that a cache which lags behind has not seen.
func ignoreGone(obj client.Object, err error) error {
	if obj.GetDeletionTimestamp().IsZero() {
		return err
	}
	if all, ok := errors.AsType[kerrors.Aggregate](err); ok { // The patch helper wraps what FilterOut inspects.
		err = all
	}
	return kerrors.FilterOut(err, apierrors.IsNotFound)
}

// An answered client has what the API server returned for an object that was just written, and returns it when the
// object is read: a cache may not have it yet. What is read again is read from the cache.
type answered struct {
	client.Client
	answer Object
}

// Get implements client.Reader.
func (a *answered) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if a.answer == nil {
		return a.Client.Get(ctx, key, obj, opts...)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.answer)
	a.answer = nil
	if err != nil {
		return fmt.Errorf("reading what was written to %s: %w", key, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
		return fmt.Errorf("reading what was written to %s: %w", key, err)
	}
	return nil
}

func copyOf(obj Object) Object {
	copied, _ := obj.DeepCopyObject().(Object) // of the same type
	return copied
}
