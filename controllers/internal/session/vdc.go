// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// VDCOf returns the VDC of a cluster. It uses the recorded URN if there is one.
func VDCOf(ctx context.Context, s *Session, c *infrav1.VCDCluster) (vcd.VDC, phases.Result, error) {
	if id := placement.RecordedVDC(c); id != "" {
		return vcd.VDC{Ref: vcd.Ref{ID: id, Name: c.Spec.OVDC}}, phases.Done, nil
	}
	if found := c.Status.OVDC; found != nil {
		return vcd.VDC{Ref: vcd.Ref{ID: found.ID, Name: found.Name}}, phases.Done, nil
	}
	vdc, err := s.FindVDC(ctx, c.Spec.OVDC)
	if err != nil {
		out, err := problems.OfLookup(err, checks.VDC.Reason, "without it, no deletion can be verified; "+
			checks.VDC.Remedy("spec.ovdc of the VCDCluster"))
		return vcd.VDC{}, out.NoAccess(), err
	}
	return vdc, phases.Done, nil
}
