// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// reconcileIdentityReady logs in, unless the ID of a cluster that was never ready belongs to another cluster.
func reconcileIdentityReady(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	if out, err := ownership.Refuse(ctx, s.reconciler.Client, c); err != nil || out != phases.Done {
		return out, err
	}
	opened, out, err := s.login.open(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	s.session = opened
	c.Spec.RecordedState.CredentialsAccepted = opened.Version
	return phases.Done, nil
}
