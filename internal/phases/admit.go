// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
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
	if obj.GetDeletionTimestamp().IsZero() {
		controllerutil.RemoveFinalizer(obj, ofCAPVCD[finalizer]) // ours replaces it
	}
	return patcher, nil
}

// ofCAPVCD are the finalizers of objects that CAPVCD made, by ours. A deleted object can get no other finalizer, so it
// keeps that of CAPVCD until it is released.
var ofCAPVCD = map[string]string{
	infrav1.ClusterFinalizer: infrav1.CAPVCDClusterFinalizer,
	infrav1.MachineFinalizer: infrav1.CAPVCDMachineFinalizer,
}

// Holds reports whether obj has a finalizer of ours, or the one that CAPVCD wrote instead.
func Holds(obj client.Object, finalizer string) bool {
	return controllerutil.ContainsFinalizer(obj, finalizer) || controllerutil.ContainsFinalizer(obj, ofCAPVCD[finalizer])
}

// Release removes a finalizer of ours from obj, and the one that CAPVCD wrote instead. The patcher stores it.
func Release(obj client.Object, finalizer string) {
	controllerutil.RemoveFinalizer(obj, finalizer)
	controllerutil.RemoveFinalizer(obj, ofCAPVCD[finalizer])
}
