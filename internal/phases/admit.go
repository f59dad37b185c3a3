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

// admit adds the finalizer and the Paused condition to the object of a patcher, and prepares the patcher for later
// changes. It returns false if the pass must end, because the object was just changed or is paused.
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
		controllerutil.RemoveFinalizer(obj, capvcdFinalizers[finalizer]) // replaced by the finalizer of this provider
	}
	return true, nil
}

// capvcdFinalizers maps the finalizers of this provider to those that CAPVCD set on its objects. An object that is
// being deleted cannot get another finalizer, so it keeps that of CAPVCD until it is released.
var capvcdFinalizers = map[string]string{
	infrav1.ClusterFinalizer: infrav1.CAPVCDClusterFinalizer,
	infrav1.MachineFinalizer: infrav1.CAPVCDMachineFinalizer,
}

// Holds reports whether obj has a finalizer of this provider, or CAPVCD's counterpart.
func Holds(obj client.Object, finalizer string) bool {
	return controllerutil.ContainsFinalizer(obj, finalizer) || controllerutil.ContainsFinalizer(obj, capvcdFinalizers[finalizer])
}

// Release removes a finalizer of this provider, and CAPVCD's counterpart, from obj. The patcher stores the change.
func Release(obj client.Object, finalizer string) {
	controllerutil.RemoveFinalizer(obj, finalizer)
	controllerutil.RemoveFinalizer(obj, capvcdFinalizers[finalizer])
}
