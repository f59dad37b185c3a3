// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// openSite finds the zone of the machine and logs in with its identity. A VM that ran is worked with when its zone is
// gone, too, with the identity of the cluster. Nothing is created anywhere instead of in a zone that cannot be used.
func openSite(ctx context.Context, r *Reconciler, in *inputs) (*session.Session, *placement.Zone, phases.Result, error) {
	zone, out, err := findZone(ctx, r.Client, in)
	if err != nil || out != phases.Done {
		return nil, nil, out, err
	}
	if zone == nil {
		opened, out, err := openCluster(ctx, r, in)
		return opened, nil, out, err
	}
	opened, out, err := r.Identities.OpenZone(ctx, r.Sessions, zone.VCDDeploymentZone)
	return opened, zone, out, err
}

// findZone returns the zone of the machine, nil if it has none, or if it ran and its zone cannot be used any more.
func findZone(ctx context.Context, c client.Client, in *inputs) (*placement.Zone, phases.Result, error) {
	name := in.zoneName()
	if name == "" {
		return nil, phases.Done, nil
	}
	zone, out, err := zones.Find(ctx, c, in.vcdCluster, name)
	switch {
	case err != nil:
		return nil, phases.Done, err
	case out == phases.Done:
		return &zone, phases.Done, nil
	case !in.cameUp() && in.vcdMachine.DeletionTimestamp.IsZero():
		return nil, out.NoAccess(), nil
	}
	return nil, phases.Done, nil
}

// openCluster logs in with the identity of the cluster. Its endpoint is written with it: that of the machine's zone may
// have rights on VMs only.
func openCluster(ctx context.Context, r *Reconciler, in *inputs) (*session.Session, phases.Result, error) {
	return r.Identities.Open(ctx, r.Sessions, in.vcdCluster)
}

// openForDeletion logs in where the VM is, for a machine that is being deleted.
func openForDeletion(ctx context.Context, s *scope) (out phases.Result, err error) {
	s.session, s.zone, out, err = openSite(ctx, s.reconciler, &s.inputs)
	if err != nil || out != phases.Done {
		return out, err
	}
	s.target.vdc, out, err = vdcOf(ctx, s.session, &s.inputs, s.zone)
	return out, err
}

// vdcOf returns the VDC that the VM was created in.
func vdcOf(ctx context.Context, opened *session.Session, in *inputs, zone *placement.Zone) (vcd.VDC, phases.Result, error) {
	id := in.vcdMachine.Annotations[infrav1.OVDCIDAnnotation]
	switch {
	case id == "":
		return session.VDCOf(ctx, opened, in.vcdCluster)
	case zone != nil:
		return vcd.VDC{Ref: vcd.Ref{ID: id, Name: zone.Domain.Spec.OVDC}}, phases.Done, nil
	}
	return vcd.VDC{Ref: vcd.Ref{ID: id, Name: id}}, phases.Done, nil
}
