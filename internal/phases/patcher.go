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

// begin makes the patcher compare with the object as it is now.
func (p *Patcher) begin() error {
	helper, err := patch.NewHelper(p.obj, p.client)
	if err != nil {
		return fmt.Errorf("preparing to patch %s: %w", klog.KObj(p.obj), err)
	}
	p.helper = helper
	return nil
}

// Save stores what has changed so far, now rather than at the end.
func (p *Patcher) Save(ctx context.Context) error {
	if err := p.helper.Patch(ctx, p.obj); err != nil {
		return fmt.Errorf("storing %s: %w", klog.KObj(p.obj), err)
	}
	return p.begin()
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
