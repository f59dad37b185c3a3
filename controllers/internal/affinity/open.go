package affinity

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// An Access opens sessions for the rules of clusters.
type Access struct {
	Client     client.Reader
	Identities session.Identities
	Sessions   session.Opener
}

// Open logs in to work in a VDC: with the identity of a zone that is in it, or else with that of the cluster.
func (a Access) Open(ctx context.Context, c *infrav1.VCDCluster, vdc string) (*session.Session, phases.Outcome,
	error,
) {
	if vdc != placement.RecordedVDC(c) {
		list := &infrav1.VCDDeploymentZoneList{}
		if err := a.Client.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
			return nil, phases.Done, fmt.Errorf("listing VCDDeploymentZones: %w", err)
		}
		for i := range list.Items {
			z := &list.Items[i]
			if z.Status.OVDC != nil && z.Status.OVDC.ID == vdc && zones.Mismatch(c, z) == phases.Done {
				return a.Identities.OpenZone(ctx, a.Sessions, z)
			}
		}
	}
	return a.Identities.Open(ctx, a.Sessions, c)
}
