// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// reconcileIdentityReady logs in.
func reconcileIdentityReady(ctx context.Context, s *scope) (phases.Outcome, error) {
	if out, err := s.duplicateProblem(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if out, err := s.open(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if c := s.vcdCluster; c.Annotations[infrav1.CredentialsAcceptedAnnotation] != s.session.Version {
		notes.Set(c, infrav1.CredentialsAcceptedAnnotation, s.session.Version)
	}
	return phases.Done, nil
}

// duplicateProblem keeps a cluster that was never ready from working under the id of another.
func (s *scope) duplicateProblem(ctx context.Context) (phases.Outcome, error) {
	return ownership.Refuse(ctx, s.reconciler.Client, s.vcdCluster)
}
