// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Patcher stores what a reconcile changes in an object.
type Patcher struct {
	client client.Client
	obj    Object
	helper *patch.Helper // since obj was stored last
}

// NewPatcher returns a patcher of obj as it is now.
func NewPatcher(c client.Client, obj Object) (*Patcher, error) {
	helper, err := patch.NewHelper(obj, c)
	if err != nil {
		return nil, fmt.Errorf("preparing to patch %s: %w", klog.KObj(obj), err)
	}
	return &Patcher{
		client: c,
		obj:    obj,
		helper: helper,
	}, nil
}

// Save stores what has changed so far, now rather than at the end.
func (p *Patcher) Save(ctx context.Context) error {
	if err := p.helper.Patch(ctx, p.obj); err != nil {
		return fmt.Errorf("storing %s: %w", klog.KObj(p.obj), err)
	}
	helper, err := patch.NewHelper(p.obj, p.client)
	if err != nil {
		return err
	}
	p.helper = helper
	return nil
}

// Finish stores what has changed at the end of a reconcile, which owns some conditions: they are overwritten even if
// another client has changed them meanwhile.
func (p *Patcher) Finish(ctx context.Context, owned ...string) error {
	return IgnoreGone(p.obj, p.helper.Patch(ctx, p.obj, patch.WithOwnedConditions{Conditions: owned}))
}

// IgnoreGone drops the errors of writing to an object that is gone because its last finalizer was removed, by this pass
// or by one that a cache which lags behind has not seen.
func IgnoreGone(obj client.Object, err error) error {
	if obj.GetDeletionTimestamp().IsZero() {
		return err
	}
	if all, ok := errors.AsType[kerrors.Aggregate](err); ok { // The patch helper wraps what FilterOut inspects.
		err = all
	}
	return kerrors.FilterOut(err, apierrors.IsNotFound)
}
