// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// claimProblem returns why the machine may not work with the VM that its spec names: its cluster works
// under the id of another one, or another VCDMachine is the owner of the VM. The marker of the VM cannot show that:
// copied objects name it, too.
func claimProblem(ctx context.Context, c client.Client, in *inputs) (phases.Result, error) {
	if out, err := ownership.Refuse(ctx, c, in.vcdCluster); err != nil || out != phases.Done {
		return out, err
	}
	owner, err := otherOwner(ctx, c, in.vcdMachine)
	if err != nil || owner == nil {
		return phases.Done, err
	}
	return phases.Fail(session.RemedyPoll, infrav1.VMNotOwnedReason,
		"%s owns the VM with instance ID %s: delete this copy, which does not delete the VM, and recreate it "+
			"without spec.providerID and spec.recordedState",
		nameOf(owner, in.vcdMachine), owner.Spec.RecordedState.InstanceID), nil
}

// nameOf names a VCDMachine in messages on another one, unless it is in another namespace.
func nameOf(m, on *infrav1.VCDMachine) string {
	if m.Namespace == on.Namespace {
		return "VCDMachine " + m.Name
	}
	return "A VCDMachine of another namespace"
}

// otherOwner returns the VCDMachine that the VM belongs to rather than to m, nil if there is none.
func otherOwner(ctx context.Context, c client.Client, m *infrav1.VCDMachine) (*infrav1.VCDMachine, error) {
	rivals, err := ownership.Rivals(ctx, c, m)
	if err != nil || len(rivals) == 0 {
		return nil, err
	}
	mine, err := claimOf(ctx, c, m)
	if err != nil {
		return nil, err
	}
	for _, rival := range rivals {
		theirs, err := claimOf(ctx, c, rival)
		if err != nil {
			return nil, err
		}
		if theirs.Precedes(mine) {
			return rival, nil
		}
	}
	return nil, nil
}

// claimOf returns what a VCDMachine proves about its right to a VM. The doubt about a cluster that is not found is its
// machine's benefit.
func claimOf(ctx context.Context, c client.Client, m *infrav1.VCDMachine) (ownership.Claim, error) {
	claim := ownership.Claim{Machine: m}
	cluster, err := util.GetClusterFromMetadata(ctx, c, m.ObjectMeta)
	if client.IgnoreNotFound(err) != nil && !errors.Is(err, util.ErrNoCluster) {
		return claim, fmt.Errorf("getting the Cluster of VCDMachine %s: %w", client.ObjectKeyFromObject(m), err)
	}
	vcdCluster, err := vcdClusterOf(ctx, c, m, cluster)
	if err != nil || vcdCluster == nil {
		return claim, err
	}
	out, err := ownership.Refuse(ctx, c, vcdCluster)
	claim.Refused = out != phases.Done
	return claim, err
}

// wasComplete reports whether a machine was complete here, and its status not lost since.
func wasComplete(m *infrav1.VCDMachine) bool {
	return ptr.Deref(m.Status.Initialization.Provisioned, false)
}

// leavesVM reports whether the deletion of the machine leaves the VM, its vApp and its addresses alone, because they
// are, or may be, another VCDMachine's.
func leavesVM(ctx context.Context, c client.Client, in *inputs) (bool, error) {
	m := in.vcdMachine
	if in.vcdCluster != nil && !ownership.IsOriginalMachine(ownership.Claim{Machine: m}) {
		out, err := ownership.Refuse(ctx, c, in.vcdCluster)
		if err != nil || out != phases.Done {
			return true, err // The VM was created for a machine of the cluster that the id belongs to.
		}
	}
	if owner, err := otherOwner(ctx, c, m); err != nil || owner != nil {
		return owner != nil, err
	}
	rivals, err := ownership.Rivals(ctx, c, m)
	if err != nil {
		return false, err
	}
	for _, rival := range rivals {
		if mayOwn(m, rival) {
			return true, nil
		}
	}
	return false, nil
}

// mayOwn reports whether the VM of m may be that of a rival, which stays: it was complete here, or m was not since both
// were moved or restored. Status is lost by that: then the records are the proof.
func mayOwn(m, rival *infrav1.VCDMachine) bool {
	if !rival.DeletionTimestamp.IsZero() || rival.Spec.ProviderID != m.Spec.ProviderID {
		return false
	}
	restored := m.Spec.RecordedState.InstanceID != string(m.UID) && !wasComplete(m)
	return wasComplete(rival) || restored && rival.Spec.RecordedState.PoweredOnAt != nil
}
