// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkName reports a vApp that has the name of the cluster's first vApp but does not belong to the cluster.
func checkName(ctx context.Context, in *vcd.VApps, vdc vcd.VDC, plan Plan) findings {
	var f findings
	c := plan.Cluster
	if c == nil || c.Spec.VApp.Layout == infrav1.VAppPerMachine {
		return f
	}
	name := plan.vAppName()
	vApp, err := in.FindVApp(ctx, vdc, name)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return f
	case err != nil:
		f.unread(err, "looking up vApp "+name, "run doctor again later")
		return f
	}
	owns, err := marks.OwnsVApp(ctx, in, c.Spec.InfraID, vApp)
	switch {
	case err != nil:
		f.unread(err, "reading the metadata of vApp "+name, "run doctor again later")
		return f
	case owns && c.Spec.InfraID != "":
		return f
	}
	f.problem("set another name in spec.vApp.name of the VCDCluster, or rename the vApp",
		"VDC %s has a vApp %s that does not belong to the cluster, so the provider does not adopt it", vdc.Name, name)
	return f
}

// checkEntity checks that the type of the cluster's runtime defined entity exists, and that the user may use it.
func checkEntity(ctx context.Context, in *vcd.Session, c *infrav1.VCDCluster, held heldRights) findings {
	var f findings
	if c == nil || c.Spec.RDE.Mode != infrav1.RDEProject {
		return f
	}
	versions, err := in.Entities.TypeVersions(ctx, "vmware", "capvcdCluster")
	switch {
	case err != nil:
		f.unread(err, "listing types of entities", "run doctor again later")
	case len(versions) == 0:
		f.problem("ask the provider to register it and publish its rights, or set spec.rde.mode of the VCDCluster to None",
			"the type vmware:capvcdCluster does not exist on the site, or is not visible")
	default:
		for _, row := range rights.Table() {
			if row.Need == rights.Entity && !held.has(row.Rights[0]) {
				f.missingRight(Problem, in.Org(), row, row.Rights[0])
			}
		}
	}
	return f
}
