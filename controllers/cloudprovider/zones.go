// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// nodeLocations are the places in VCD in which nodes of a cluster are, or may be created.
type nodeLocations struct {
	zones []vcdconfig.Zone
	vdcs  []string // URNs
	vApps []string // names
}

// findZones returns a step that finds the zones in which nodes of a cluster are, or may be created. A zone that was
// never validated has no nodes.
func findZones(s *scope) func(context.Context) (phases.Result, error) {
	return func(ctx context.Context) (phases.Result, error) {
		return phases.Done, s.where.find(ctx, s.reconciler.Client, s.vcdCluster, s.cluster.Name)
	}
}

func (w *nodeLocations) find(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster, cluster string) error {
	list := &infrav1.VCDDeploymentZoneList{}
	if err := reader.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	selected, err := placement.Select(c, list.Items)
	if err != nil {
		return err
	}
	homes := map[string]vapp.Home{}
	for _, z := range selected {
		if found := z.Status.OVDC; found != nil && zones.Mismatch(c, &z) == phases.Done {
			home := vapp.HomeIn(c, cluster, z.Name)
			home.VDC = found.ID
			homes[z.Name] = home
		}
	}
	for _, home := range vapp.Zones(c, cluster) {
		homes[home.Zone] = home
	}
	*w = nodeLocations{}
	for _, name := range slices.Sorted(maps.Keys(homes)) {
		w.add(c, homes[name])
		if err := w.addTopology(ctx, reader, c, homes[name]); err != nil {
			return err
		}
	}
	return nil
}

// add adds the VDC and the vApps of nodes in a zone.
func (w *nodeLocations) add(c *infrav1.VCDCluster, home vapp.Home) {
	if !slices.Contains(w.vdcs, home.VDC) {
		w.vdcs = append(w.vdcs, home.VDC)
	}
	if vapp.PerMachine(c) {
		return
	}
	for i := range max(1, home.Count) {
		if name := vapp.Numbered(home.First, i+1); !slices.Contains(w.vApps, name) {
			w.vApps = append(w.vApps, name)
		}
	}
}

// addTopology adds the labels for nodes in a zone, unless the zone is gone.
func (w *nodeLocations) addTopology(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster, home vapp.Home) error {
	zone, out, err := zones.Find(ctx, reader, c, home.Zone)
	if err != nil || out != phases.Done {
		return err
	}
	d := zone.Domain.Spec
	found := vcdconfig.Zone{Name: d.Zone, Region: d.Region, VDC: home.VDC, PlacementPolicy: d.PlacementPolicy}
	if !slices.ContainsFunc(w.zones, func(z vcdconfig.Zone) bool {
		return z.VDC == found.VDC && z.PlacementPolicy == found.PlacementPolicy
	}) {
		w.zones = append(w.zones, found)
	}
	return nil
}
