// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// homeAge is how long the home of a ready cluster is cached, plus or minus a tenth. Its machines notice problems
// sooner.
const homeAge = time.Hour

// reconcileNetwork finds the VDC and the network of the cluster.
func reconcileNetwork(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	r := s.reconciler
	if err := findFailureDomains(ctx, r.Client, c, &s.failureDomains); err != nil {
		return phases.Done, err
	}
	if cached := *r.homes.Of(c.UID); cached.isCurrent(c, s.session.Machines, s.now()) {
		s.home = cached
		recordGateway(r.Recorder, c, cached.network.EdgeGateway)
		return phases.Done, nil
	}
	recordVDCOfCAPVCD(c)
	found, out, err := findHome(ctx, s.session, candidates(c, s.failureDomains.usable))
	if err != nil || out != phases.Done {
		return out, err
	}
	found.by = s.session.Machines
	found.settings = homeSettings(c)
	found.until = s.now().Add(phases.Jitter(homeAge*9/10, string(c.UID)))
	s.home = found
	vdc := found.vdc
	network := found.network
	recordGateway(r.Recorder, c, network.EdgeGateway)
	if recorded := placement.RecordedVDC(c); recorded == "" || recorded == vdc.ID || c.Status.OVDC == nil {
		c.Status.OVDC = &infrav1.ResourceReference{Name: vdc.Name, ID: vdc.ID}
		c.Status.OVDCNetwork = &infrav1.ResourceReference{Name: network.Name, ID: network.ID}
	}
	*r.homes.Of(c.UID) = s.home
	if ownership.Established(c) {
		recordHome(c, s.home)
	}
	return phases.Done, nil
}

// recordVDCOfCAPVCD records the VDC that CAPVCD wrote to the status, because the VDC may have been renamed since.
func recordVDCOfCAPVCD(c *infrav1.VCDCluster) {
	if ownership.ByCAPVCD(c) && placement.RecordedVDC(c) == "" && c.Status.OVDC != nil && c.Status.OVDC.ID != "" {
		c.Spec.RecordedState.OVDCID = c.Status.OVDC.ID
	}
}

// A candidate is a VDC and a network in which load balancers of the cluster may be.
type candidate struct{ vdc, network string }

// candidates returns the VDC and network in the spec, or those recorded, and then those of the usable zones. Zones for
// control planes come first.
func candidates(c *infrav1.VCDCluster, usable []placement.Zone) []candidate {
	var found []candidate
	if vdc, network := placement.VDCName(c), placement.NetworkName(c); vdc != "" && network != "" {
		found = append(found, candidate{vdc, network})
	}
	for _, forControlPlanes := range []bool{true, false} {
		for _, z := range usable {
			network := c.Spec.OVDCNetwork
			if network == "" && len(z.Status.Networks) > 0 {
				network = z.Status.Networks[0].ID
			}
			if z.ControlPlane() == forControlPlanes && z.Status.OVDC != nil && network != "" {
				found = append(found, candidate{z.Status.OVDC.ID, network})
			}
		}
	}
	return found
}

// findHome finds the VDC and network of a cluster. A cluster in zones uses those of the first zone. If they are lost,
// the checks of the endpoint continue with another zone.
func findHome(ctx context.Context, in *session.Session, all []candidate) (home, phases.Result, error) {
	if len(all) == 0 {
		return home{}, phases.Fail(intervals.Remedy, infrav1.NetworkNotFoundReason,
			"No network is set in the VCDCluster or in a zone for control planes: set spec.ovdcNetwork, or spec.placementConstraint.networks of the VCDDeploymentZones"), nil
	}
	var first phases.Result
	for _, at := range all {
		found, out, err := at.find(ctx, in)
		if err != nil || out == phases.Done {
			return found, phases.Done, err
		}
		first = cmp.Or(first, out)
	}
	return home{}, first, nil
}

// find finds the VDC and the network. VCD may hide them from the user, so a failure does not prove that they are gone.
func (at candidate) find(ctx context.Context, in *session.Session) (home, phases.Result, error) {
	vdc, err := in.FindVDC(ctx, at.vdc)
	if err != nil {
		out, err := problems.OfLookup(err, checks.VDC.Reason, checks.VDC.Remedy("spec.ovdc of the VCDCluster")+
			"; if another object now has its name, remove spec.recordedState.ovdcID")
		return home{}, out.NoAccess(), err
	}
	network, err := in.FindNetwork(ctx, vdc, at.network)
	if err != nil {
		out, err := problems.OfLookup(err, checks.Network.Reason,
			checks.Network.Remedy("spec.ovdcNetwork of the VCDCluster")+"; if another object now has its name, remove spec.recordedState.ovdcNetworkID")
		return home{}, out.NoAccess(), err
	}
	return home{vdc: vdc, network: network}, phases.Done, nil
}
