// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// An Access opens sessions to read and write the rules of clusters.
type Access struct {
	Client     client.Reader
	Identities identities.Resolver
	Sessions   session.Opener
}

// Open opens a session for a VDC. It logs in with the identity of a zone of the cluster in that VDC, if one can be
// found, otherwise with the identity of the cluster.
func (a Access) Open(ctx context.Context, c *infrav1.VCDCluster, vdc string) (*session.Session, phases.Result, error) {
	for _, home := range vapp.Zones(c, "") {
		if home.VDC != vdc || c.Spec.OVDC != "" && vdc == placement.RecordedVDC(c) {
			continue
		}
		zone, out, err := zones.Find(ctx, a.Client, c, home.Zone)
		switch {
		case err != nil:
			return nil, phases.Done, err
		case out == phases.Done:
			return a.Identities.OpenZone(ctx, a.Sessions, zone.VCDDeploymentZone)
		}
	}
	return a.Identities.Open(ctx, a.Sessions, c)
}
