// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkName looks for a foreign vApp with the name that the first vApp of the cluster gets.
func checkName(ctx context.Context, s *survey) {
	c := s.plan.Cluster
	if c == nil || c.Spec.VApp.Layout == infrav1.VAppPerMachine {
		return
	}
	name := s.plan.vAppName()
	vApp, err := s.session.VApps.FindVApp(ctx, s.vdc, name)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return
	case err != nil:
		s.unread(err, "looking up vApp "+name, "check again later")
		return
	}
	marker, marked := vcd.ParseMarker(vApp.Description)
	if marked && c.Spec.InfraID != "" && marker.Cluster == c.Spec.InfraID {
		return
	}
	s.problem("set another name in spec.vApp.name of the VCDCluster, or rename the vApp",
		"VDC %s has a vApp %s that is not the cluster's: it is never adopted", s.vdc.Name, name)
}

// checkEntity checks that the type of the cluster's runtime defined entity is there.
func checkEntity(ctx context.Context, s *survey) {
	c := s.plan.Cluster
	if c == nil || c.Spec.RDE.Mode != infrav1.RDEProject {
		return
	}
	versions, err := s.session.Entities.TypeVersions(ctx, "vmware", "capvcdCluster")
	switch {
	case err != nil:
		s.unread(err, "listing types of entities", "check again later")
	case len(versions) == 0:
		s.problem("let the provider register it and publish its rights, or set spec.rde.mode of the VCDCluster to None",
			"the site has no type vmware:capvcdCluster, or hides it")
	default:
		for _, row := range rights.Table() {
			if row.Need == rights.Entity && !s.holds(row.Rights[0]) {
				s.lacks(Problem, row, row.Rights[0])
			}
		}
	}
}
