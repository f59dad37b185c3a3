// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Admit adds the finalizer and the Paused condition. The patcher it returns stores what comes after; it is nil when the
// pass ends here: obj was just changed, or is paused.
func Admit(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, obj Object,
	finalizer string,
) (*Patcher, error) {
	if added, err := finalizers.EnsureFinalizer(ctx, c, obj, finalizer); added || err != nil {
		return nil, err
	}
	patcher, err := NewPatcher(c, obj) // before the paused check, which may edit obj
	if err != nil {
		return nil, err
	}
	if isPaused, again, err := paused.EnsurePausedCondition(ctx, c, cluster, obj); isPaused || again || err != nil {
		return nil, err
	}
	return patcher, nil
}
