// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// access resolves the zone and the VDC of the machine's VM, and logs in there. If the zone of a VM that ran before, or
// of a machine that is being deleted, is gone, it falls back to the identity of the cluster. A new VM is never created
// outside a zone that cannot be used.
type access struct {
	client     client.Client
	identities identities.Resolver
	sessions   session.Opener
	inputs     *inputs

	zone   *placement.Zone  // set by findZone; nil: the machine has no zone, or the zone can no longer be used
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

// findZone looks up the zone of the machine. A zone that cannot be used is a problem only until the VM ran once, and
// not during a deletion.
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
	case !a.inputs.hasRun() && a.inputs.vcdMachine.DeletionTimestamp.IsZero():
		return out.NoAccess(), nil
	}
	return phases.Done, nil
}

// logIn logs in with the identity of the zone, or with that of the cluster if no zone is set.
func (a *access) logIn(ctx context.Context) (out phases.Result, err error) {
	if a.zone == nil {
		return a.logInToCluster(ctx)
	}
	a.opened, out, err = a.identities.OpenZone(ctx, a.sessions, a.zone.VCDDeploymentZone)
	return out, err
}

// logInToCluster logs in with the identity of the cluster. The endpoint of the cluster is always written with this
// identity, because that of the machine's zone may only have rights on VMs.
func (a *access) logInToCluster(ctx context.Context) (out phases.Result, err error) {
	a.opened, out, err = a.identities.Open(ctx, a.sessions, a.inputs.vcdCluster)
	return out, err
}

// findVDC resolves the VDC in which the VM was created. It does not look up a recorded VDC.
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

// openForDeletion logs in at the location of the VM of a machine that is being deleted.
func openForDeletion(ctx context.Context, s *scope) (phases.Result, error) {
	a := newAccess(s)
	out, err := phases.Sequence(ctx, a.findZone, a.logIn, a.findVDC)
	s.zone = a.zone
	s.session = a.opened
	s.target.vdc = a.vdc
	return out, err
}
