// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteAffinityRules ensures that the affinity and anti-affinity rules of the cluster are gone. Most were deleted with
// its machines. If the vApp is kept, rules that VCD does not delete are left, too.
func deleteAffinityRules(ctx context.Context, s *scope) (phases.Result, error) {
	access := affinity.Access{
		Client:     s.reconciler.Client,
		Identities: s.reconciler.Identities,
		Sessions:   s.reconciler.Sessions,
	}
	out, err := affinity.RemoveAll(ctx, access, s.vcdCluster, s.wake)
	switch {
	case errors.Is(err, vcd.ErrLater) || ctx.Err() != nil: // Temporary.
	case vapp.IsKept(s.vcdCluster) && (err != nil || out.IsProblem()):
		return phases.Done, nil //nolint:nilerr // rules stay if the vApp is kept
	case out.IsProblem():
		out.Message += ". To leave rules in VCD, annotate the VCDCluster with " + infrav1.KeepVAppAnnotation + "=true"
	}
	return out, err
}
