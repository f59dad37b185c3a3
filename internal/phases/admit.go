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

// admit adds the finalizer and the condition Paused to the object of a patcher, and makes the patcher ready to store what
// comes after. It reports false when the pass ends here: the object was just changed, or is paused.
func admit(ctx context.Context, patcher *Patcher, cluster *clusterv1.Cluster, finalizer string) (bool, error) {
	if finalizer == "" {
		patcher.begin()
		return true, nil
	}
	obj := patcher.obj
	if added, err := finalizers.EnsureFinalizer(ctx, patcher.client, obj, finalizer); added || err != nil {
		return false, err
	}
	patcher.begin() // before the paused check, which may edit obj
	isPaused, again, err := paused.EnsurePausedCondition(ctx, patcher.client, cluster, obj)
	if isPaused || again || err != nil {
		return false, err
	}
	if obj.GetDeletionTimestamp().IsZero() {
		controllerutil.RemoveFinalizer(obj, ofCAPVCD[finalizer]) // ours replaces it
	}
	return true, nil
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
