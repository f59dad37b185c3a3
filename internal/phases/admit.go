// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// Admit adds the finalizer and the Paused condition. The helper it returns patches what comes after; it is nil when the
// pass ends here: obj was just changed, or is paused.
func Admit(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, obj Object,
	finalizer string,
) (*patch.Helper, error) {
	if added, err := finalizers.EnsureFinalizer(ctx, c, obj, finalizer); added || err != nil {
		return nil, err
	}
	helper, err := patch.NewHelper(obj, c) // before the paused check, which may edit obj
	if err != nil {
		return nil, err
	}
	if isPaused, again, err := paused.EnsurePausedCondition(ctx, c, cluster, obj); isPaused || again || err != nil {
		return nil, err
	}
	return helper, nil
}

// Store writes what changed in obj now rather than at the end, and returns the helper for what comes after.
func Store(ctx context.Context, c client.Client, obj client.Object, helper *patch.Helper) (*patch.Helper, error) {
	if err := helper.Patch(ctx, obj); err != nil {
		return nil, fmt.Errorf("storing %s: %w", klog.KObj(obj), err)
	}
	return patch.NewHelper(obj, c)
}
