// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// An access finds where the machine's VM is, or shall be, and logs in there. A VM that ran is worked with when its zone
// is gone, too, with the identity of the cluster. Nothing is created anywhere instead of in a zone that cannot be used.
type access struct {
	client     client.Client
	identities session.Identities
	sessions   session.Opener
	inputs     *inputs

	zone   *placement.Zone  // set by findZone; nil: the machine has none, or it cannot be used any more
	opened *session.Session // set by logIn
	vdc    vcd.VDC          // set by findVDC
}

func newAccess(s *scope) *access {
	return &access{
		client:     s.reconciler.Client,
		identities: s.reconciler.Identities,
		sessions:   s.reconciler.Sessions,
		inputs:     &s.inputs,
	}
}

// findZone finds the zone of the machine.
func (a *access) findZone(ctx context.Context) (phases.Result, error) {
	name := a.inputs.zoneName()
	if name == "" {
		return phases.Done, nil
	}
	zone, out, err := zones.Find(ctx, a.client, a.inputs.vcdCluster, name)
	switch {
	case err != nil:
		return phases.Done, err
	case out == phases.Done:
		a.zone = &zone
	case !a.inputs.cameUp() && a.inputs.vcdMachine.DeletionTimestamp.IsZero():
		return out.NoAccess(), nil
	}
	return phases.Done, nil
}

// logIn logs in with the identity of the zone, or with that of the cluster.
func (a *access) logIn(ctx context.Context) (out phases.Result, err error) {
	if a.zone == nil {
		return a.logInToCluster(ctx)
	}
	a.opened, out, err = a.identities.OpenZone(ctx, a.sessions, a.zone.VCDDeploymentZone)
	return out, err
}

// logInToCluster logs in with the identity of the cluster. Its endpoint is written with it: that of the machine's zone
// may have rights on VMs only.
func (a *access) logInToCluster(ctx context.Context) (out phases.Result, err error) {
	a.opened, out, err = a.identities.Open(ctx, a.sessions, a.inputs.vcdCluster)
	return out, err
}

// findVDC finds the VDC that the VM was created in.
func (a *access) findVDC(ctx context.Context) (out phases.Result, err error) {
	id := a.inputs.vcdMachine.Spec.RecordedState.OVDCID
	switch {
	case id == "":
		a.vdc, out, err = session.VDCOf(ctx, a.opened, a.inputs.vcdCluster)
		return out, err
	case a.zone != nil:
		a.vdc = vcd.VDC{Ref: vcd.Ref{ID: id, Name: a.zone.Domain.Spec.OVDC}}
	default:
		a.vdc = vcd.VDC{Ref: vcd.Ref{ID: id, Name: id}}
	}
	return phases.Done, nil
}

// openForDeletion logs in where the VM is, for a machine that is being deleted.
func openForDeletion(ctx context.Context, s *scope) (phases.Result, error) {
	a := newAccess(s)
	out, err := phases.Sequence(ctx, a.findZone, a.logIn, a.findVDC)
	s.zone = a.zone
	s.session = a.opened
	s.target.vdc = a.vdc
	return out, err
}
