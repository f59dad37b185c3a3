// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/withdrawal"
)

const (
	// withdrawalLimit is how long the deletion of a VM waits for load balancers at most.
	withdrawalLimit = 30 * time.Second
	// withdrawalPoll is the interval between two reads of a Node.
	withdrawalPoll = time.Second
)

// hasNodeToWithdraw reports whether load balancers of the workload cluster may send requests to the node of the machine.
func hasNodeToWithdraw(s *scope) bool {
	in := &s.inputs
	return s.reconciler.Workload != nil &&
		in.machine != nil && in.machine.Status.NodeRef.Name != "" &&
		in.cluster != nil && in.cluster.DeletionTimestamp.IsZero() && capicluster.Initialized(in.cluster) &&
		!absence.IsDeclared(in.vcdMachine)
}

// withdrawNode waits until no load balancer of the workload cluster sends requests to the node of the machine. The VM is
// not powered off before, except after a limit, because a workload cluster must not prevent a deletion.
func withdrawNode(ctx context.Context, s *scope) (phases.Result, error) {
	m := s.inputs.vcdMachine
	if conditions.IsTrue(m, infrav1.NodeWithdrawnCondition) {
		return phases.Done, nil
	}
	if leaves, err := mustKeepVM(ctx, s.reconciler.Client, &s.inputs); err != nil || leaves {
		return phases.Done, err // The Node belongs to the machine that owns the VM.
	}
	name := s.inputs.machine.Status.NodeRef.Name
	state, err := withdraw(ctx, s.reconciler.Workload, client.ObjectKeyFromObject(s.inputs.cluster), nodeIdentity{
		name:       name,
		providerID: m.Spec.ProviderID,
	}, s.now())
	if err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Cannot exclude the Node from load balancers yet", "node", name, "reason", err.Error())
	}
	if state == nodeWithdrawn {
		return phases.Done, nil
	}
	if left := m.DeletionTimestamp.Add(withdrawalLimit).Sub(s.now()); left > 0 {
		return phases.Wait(min(left, withdrawalPoll), infrav1.WaitingForLoadBalancersReason,
			"Waiting until load balancers send no more requests to Node %s", name), nil
	}
	if state == withdrawalRequested {
		withdrawalUnconfirmed(s.reconciler.Recorder, m, name)
	}
	return phases.Done, nil
}

// A nodeIdentity identifies the Node of a machine.
type nodeIdentity struct {
	name       string
	providerID string
}

// A withdrawalState is the state of a Node with regard to load balancers.
type withdrawalState int

const (
	withdrawalUnknown withdrawalState = iota
	withdrawalRequested
	nodeWithdrawn
)

// withdraw requests the withdrawal of a Node from all load balancers of its cluster, and returns its state. A Node that
// does not exist, belongs to another machine, or is in a cluster without load balancers counts as withdrawn.
func withdraw(ctx context.Context, open workload.Opener, cluster client.ObjectKey, id nodeIdentity,
	now time.Time,
) (withdrawalState, error) {
	guest, err := open(ctx, cluster)
	if apierrors.IsNotFound(err) {
		return nodeWithdrawn, nil // The kubeconfig is deleted.
	}
	if err != nil {
		return withdrawalUnknown, err
	}
	node := &corev1.Node{}
	err = guest.Get(ctx, client.ObjectKey{Name: id.name}, node)
	switch {
	case apierrors.IsNotFound(err):
		return nodeWithdrawn, nil
	case err != nil:
		return withdrawalUnknown, fmt.Errorf("getting Node %s: %w", id.name, err)
	case node.Spec.ProviderID != id.providerID, withdrawal.IsConfirmed(node):
		return nodeWithdrawn, nil
	case withdrawal.IsRequested(node):
		return withdrawalRequested, nil
	}
	if balanced, err := hasLoadBalancers(ctx, guest); err != nil {
		return withdrawalUnknown, err
	} else if !balanced {
		return nodeWithdrawn, nil
	}
	changed := node.DeepCopy()
	withdrawal.Request(changed, now)
	if err := guest.Patch(ctx, changed, client.MergeFrom(node)); err != nil {
		return withdrawalUnknown, fmt.Errorf("excluding Node %s from load balancers: %w", id.name, err)
	}
	return withdrawalRequested, nil
}

// hasLoadBalancers reports whether a workload cluster has Services of type LoadBalancer.
func hasLoadBalancers(ctx context.Context, guest client.Client) (bool, error) {
	services := &corev1.ServiceList{}
	balanced := client.MatchingFields{"spec.type": string(corev1.ServiceTypeLoadBalancer)}
	if err := guest.List(ctx, services, balanced, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing Services of type LoadBalancer: %w", err)
	}
	return len(services.Items) > 0, nil
}
