// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A where is the home of vApps with the session to work there.
type where struct {
	vapp.Home

	session *session.Session
	vdc     vcd.VDC
}

// homesOf returns where the cluster has, or may have, vApps: in its own VDC, unless it is in zones only, and in zones.
func homesOf(c *infrav1.VCDCluster, name string) []vapp.Home {
	inZones := vapp.Zones(c, name)
	if c.Spec.OVDC == "" && c.Annotations[infrav1.VAppCreatedAnnotation] == "" && c.Spec.FailureDomainSelector != nil {
		return inZones
	}
	return append([]vapp.Home{{First: vapp.Name(c, name)}}, inZones...)
}

// openIn logs in where vApps of the cluster are: with the identity of the zone, or with that of the cluster if the zone
// is gone.
func (s *scope) openIn(ctx context.Context, home vapp.Home) (where, phases.Outcome, error) {
	at := where{Home: home}
	if home.Zone == "" {
		out, err := s.open(ctx)
		if err == nil && out == phases.Done {
			at.session = s.session
			at.vdc, out, err = session.VDCOf(ctx, s.session, s.vcdCluster)
		}
		return at, out, err
	}
	at.vdc = vcd.VDC{Ref: vcd.Ref{ID: home.VDC, Name: home.VDC}}
	zone, out, err := zones.Find(ctx, s.reconciler.Client, s.vcdCluster, home.Zone)
	switch {
	case err != nil:
		return at, phases.Done, err
	case out == phases.Done:
		at.vdc.Name = zone.Domain.Spec.OVDC
		at.session, out, err = s.reconciler.Identities.OpenZone(ctx, s.reconciler.Sessions, zone.VCDDeploymentZone)
		return at, out, err
	}
	out, err = s.open(ctx)
	at.session = s.session
	return at, out, err
}

// first returns the first of several outcomes that is not done, after all were tried.
type first struct {
	out phases.Outcome
	err error
}

func (f *first) add(out phases.Outcome, err error) {
	if f.out == phases.Done {
		f.out = out
	}
	f.err = errors.Join(f.err, err)
}
