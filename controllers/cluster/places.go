// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// places are the homes in which a cluster has, or may have, vApps.
type places struct {
	reader      client.Reader
	login       *login
	vcdCluster  *infrav1.VCDCluster
	clusterName string
}

// A place is a home of vApps, with a session for requests about them.
type place struct {
	vapp.Home

	session *session.Session
	vdc     vcd.VDC
}

// homes returns the VDC of the cluster, unless the cluster is only in zones, and then its zones.
func (p places) homes() []vapp.Home {
	c := p.vcdCluster
	inZones := vapp.Zones(c, p.clusterName)
	if c.Spec.OVDC == "" && c.Spec.RecordedState.VAppCount == 0 && c.Spec.FailureDomainSelector != nil {
		return inZones
	}
	return append([]vapp.Home{{First: vapp.Name(c, p.clusterName)}}, inZones...)
}

// open logs in for a home: with the identity of the zone, or with that of the cluster if the zone is gone.
func (p places) open(ctx context.Context, home vapp.Home) (place, phases.Result, error) {
	at := place{Home: home}
	if home.Zone == "" {
		opened, out, err := p.login.open(ctx)
		if err == nil && out == phases.Done {
			at.session = opened
			at.vdc, out, err = session.VDCOf(ctx, opened, p.vcdCluster)
		}
		return at, out, err
	}
	at.vdc = vcd.VDC{Ref: vcd.Ref{ID: home.VDC, Name: home.VDC}}
	zone, out, err := zones.Find(ctx, p.reader, p.vcdCluster, home.Zone)
	switch {
	case err != nil:
		return at, phases.Done, err
	case out == phases.Done:
		at.vdc.Name = zone.Domain.Spec.OVDC
		at.session, out, err = p.login.openZone(ctx, zone.VCDDeploymentZone)
		return at, out, err
	}
	at.session, out, err = p.login.open(ctx)
	return at, out, err
}

// A first collects several results. It keeps the first one that is not Done, and all errors.
type first struct {
	out phases.Result
	err error
}

func (f *first) add(out phases.Result, err error) {
	if f.out == phases.Done {
		f.out = out
	}
	f.err = errors.Join(f.err, err)
}
