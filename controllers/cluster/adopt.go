// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileAdopted adopts the vApp that CAPVCD created for the cluster, and records that. It writes nothing to VCD. If
// the vApp does not exist, CAPVCD was interrupted before it created one, and the first machine creates it.
func reconcileAdopted(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	if c.Spec.RecordedState.VAppCount > 0 {
		return phases.Done, nil
	}
	others, err := ownership.Duplicates(ctx, s.reconciler.Client, c)
	if err != nil {
		return phases.Done, err
	}
	if len(others) > 0 {
		return phases.Unsure(intervals.Remedy, infrav1.AdoptionUnverifiedReason,
			"%s has the same ID, %s, so ownership of the objects in VCD is ambiguous: pause both, remove the finalizers of the copy and delete it, then unpause the other", capicluster.NameFor(c, others[0]), c.Spec.InfraID), nil
	}
	name := vapp.Name(c, s.clusterName())
	vApp, err := s.session.FindVApp(ctx, s.home.vdc, name)
	switch {
	case errors.Is(err, vcd.ErrNotFound) && ownership.RanHere(c):
		return phases.Unsure(intervals.Remedy, infrav1.AdoptionUnverifiedReason,
			"VDC %s has no vApp %s, in which CAPVCD created the cluster: restore the name of the vApp if it was renamed, or grant the user access to it", s.home.vdc.Name, name), nil
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Done, nil
	case err != nil:
		return problems.OfRead(err, "Reading vApp "+name)
	}
	owns, err := marks.OwnsVApp(ctx, s.session, c.Spec.InfraID, vApp)
	switch {
	case err != nil:
		return problems.OfRead(err, "Reading the metadata of vApp "+name)
	case !owns:
		return phases.Unsure(intervals.Remedy, infrav1.AdoptionUnverifiedReason,
			"vApp %s does not belong to this cluster: its metadata %s is not %s. Rename the vApp in VCD if it has another owner; correct its metadata if CAPVCD created it for this cluster",
			name, capvcd.MetadataKey, c.Spec.InfraID), nil
	}
	recorded := &c.Spec.RecordedState
	recorded.VAppCount = 1
	if !slices.Contains(recorded.VAppIDs, vApp.ID) {
		recorded.VAppIDs = append(recorded.VAppIDs, vApp.ID)
	}
	clusterAdopted(s.reconciler.Recorder, c, vApp.Ref)
	return phases.Done, nil
}
