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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// rivalProblem returns why the machine must not use the VM in its spec: its cluster uses the ID of another cluster, or
// another VCDMachine owns the VM. The marker of the VM is no proof, because copied objects have the same marker.
func rivalProblem(ctx context.Context, c client.Client, in *inputs) (phases.Result, error) {
	if out, err := ownership.Refuse(ctx, c, in.vcdCluster); err != nil || out != phases.Done {
		return out, err
	}
	owner, err := otherOwner(ctx, c, in.vcdMachine)
	if err != nil || owner == nil {
		return phases.Done, err
	}
	return phases.Fail(intervals.Remedy, infrav1.VMNotOwnedReason,
		"%s owns the VM with instance ID %s: delete this copy, which does not delete the VM, and recreate it without spec.providerID and spec.recordedState",
		nameOf(owner, in.vcdMachine), owner.Spec.RecordedState.InstanceID), nil
}

// nameOf returns how a message on another VCDMachine refers to m. The message must not reveal names from other
// namespaces.
func nameOf(m, on *infrav1.VCDMachine) string {
	if m.Namespace == on.Namespace {
		return "VCDMachine " + m.Name
	}
	return "A VCDMachine of another namespace"
}

// otherOwner returns the VCDMachine that owns the VM instead of m; nil if no other VCDMachine has a better claim.
func otherOwner(ctx context.Context, c client.Client, m *infrav1.VCDMachine) (*infrav1.VCDMachine, error) {
	rivals, err := ownership.Rivals(ctx, c, m)
	if err != nil || len(rivals) == 0 {
		return nil, err
	}
	mine, err := ownershipClaim(ctx, c, m)
	if err != nil {
		return nil, err
	}
	for _, rival := range rivals {
		theirs, err := ownershipClaim(ctx, c, rival)
		if err != nil {
			return nil, err
		}
		if theirs.Precedes(mine) {
			return rival, nil
		}
	}
	return nil, nil
}

// ownershipClaim returns the claim of a VCDMachine to its VM. A machine whose cluster is not found gets the benefit of the
// doubt.
func ownershipClaim(ctx context.Context, c client.Client, m *infrav1.VCDMachine) (ownership.Claim, error) {
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

// wasComplete reports whether the machine was provisioned in this management cluster. It returns false if the status
// was lost since.
func wasComplete(m *infrav1.VCDMachine) bool {
	return ptr.Deref(m.Status.Initialization.Provisioned, false)
}

// mustKeepVM reports whether the deletion of the machine must not touch the VM, its vApp and its addresses, because they
// belong, or may belong, to another VCDMachine.
func mustKeepVM(ctx context.Context, c client.Client, in *inputs) (bool, error) {
	m := in.vcdMachine
	if in.vcdCluster != nil && !ownership.IsOriginalMachine(ownership.Claim{Machine: m}) {
		out, err := ownership.Refuse(ctx, c, in.vcdCluster)
		if err != nil || out != phases.Done {
			return true, err // The VM belongs to a machine of the cluster that owns the ID.
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

// mayOwn reports whether the VM of m may belong to a rival that is not being deleted. Either the rival was provisioned
// here, or both were moved or restored and m was not provisioned since. A move or a restore loses the status, so the
// recorded state is the proof then.
func mayOwn(m, rival *infrav1.VCDMachine) bool {
	if !rival.DeletionTimestamp.IsZero() || rival.Spec.ProviderID != m.Spec.ProviderID {
		return false
	}
	restored := m.Spec.RecordedState.InstanceID != string(m.UID) && !wasComplete(m)
	return wasComplete(rival) || restored && rival.Spec.RecordedState.PoweredOnAt != nil
}
