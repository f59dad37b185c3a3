// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
)

// givingUp is how long the former holder may announce the address after it lost the lease: it notices the loss when it
// renews the lease, and then retries until its deadline.
const givingUp = kubevip.RetryPeriod + kubevip.RenewDeadline + time.Second

// moveFrom gives the lease to another node if the node holds it. It returns when to continue, like handOver.
func (r *Reconciler) moveFrom(ctx context.Context, node string, cluster *clusterv1.Cluster, vcdCluster *infrav1.VCDCluster,
	machine *clusterv1.Machine,
) (again time.Duration, err error) {
	guest, err := r.Workload(ctx, client.ObjectKeyFromObject(cluster))
	if err != nil {
		return 0, err
	}
	lease := &coordinationv1.Lease{}
	err = guest.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: kubevip.LeaseName}, lease)
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil // The endpoint has changed: kube-vip does not announce it.
	case err != nil:
		return 0, err
	case ptr.Deref(lease.Spec.HolderIdentity, "") != node:
		return r.untilGivenUp(lease), nil
	}
	next, err := r.successor(ctx, machine)
	if err != nil {
		return 0, err
	}
	if next == "" {
		ctrl.LoggerFrom(ctx).Info("No other node can take the virtual IP, so the deletion of the Machine continues", "node", node)
		return 0, nil
	}
	if err := r.assign(ctx, guest, lease, next); err != nil {
		return 0, err
	}
	handedOver(r.Recorder, vcdCluster, node, next)
	return poll, nil
}

// untilGivenUp returns when to look again whether another node holds the lease and the former holder has given up the
// address. It returns 0 if so.
func (r *Reconciler) untilGivenUp(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.AcquireTime == nil || lease.Spec.RenewTime == nil {
		return 0
	}
	left := lease.Spec.AcquireTime.Add(givingUp).Sub(r.now())
	switch {
	case left > 0:
		return min(left, poll)
	case lease.Spec.RenewTime.Equal(lease.Spec.AcquireTime):
		return poll // The new holder has not renewed it yet.
	}
	return 0
}

// successor returns the node that gets the virtual IP: the youngest ready one of a Machine that stays. Empty means that
// there is none.
func (r *Reconciler) successor(ctx context.Context, leaving *clusterv1.Machine) (node string, err error) {
	machines := &clusterv1.MachineList{}
	err = r.Client.List(ctx, machines, client.InNamespace(leaving.Namespace), index.OfCluster(leaving.Spec.ClusterName))
	if err != nil {
		return "", fmt.Errorf("listing the Machines of Cluster %s: %w", leaving.Spec.ClusterName, err)
	}
	candidates := slices.DeleteFunc(machines.Items, func(m clusterv1.Machine) bool {
		return !util.IsControlPlaneMachine(&m) || !m.DeletionTimestamp.IsZero() || m.Status.NodeRef.Name == "" ||
			!conditions.IsTrue(&m, clusterv1.MachineNodeReadyCondition)
	})
	if len(candidates) == 0 {
		return "", nil
	}
	youngest := slices.MaxFunc(candidates, func(a, b clusterv1.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return youngest.Status.NodeRef.Name, nil
}

// assign makes a node the holder of the lease. kube-vip on that node finds the lease within its retry period and adds
// the address. It does not change the time of the acquisition, which tells how long the former holder may announce the address.
func (r *Reconciler) assign(ctx context.Context, guest client.Client, lease *coordinationv1.Lease, node string) error {
	changed := lease.DeepCopy()
	now := metav1.NewMicroTime(r.now())
	changed.Spec.HolderIdentity = ptr.To(node)
	changed.Spec.AcquireTime = &now
	changed.Spec.RenewTime = &now
	changed.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	ctrl.LoggerFrom(ctx).Info("Moving the virtual IP", "lease", klog.KObj(lease), "from",
		ptr.Deref(lease.Spec.HolderIdentity, ""), "to", node)
	return guest.Update(ctx, changed)
}
