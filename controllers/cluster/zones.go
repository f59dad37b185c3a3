// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// failureDomains are the zones that a cluster selects.
type failureDomains struct {
	usable   []placement.Zone // sorted by name
	excluded []string         // reasons why other zones are not usable, sorted by name of the zone
	pending  []string         // names of zones that are not validated yet
	unseen   bool             // whether validation against VCD excluded zones for control planes
	found    bool             // whether this pass has looked for zones
}

// findFailureDomains finds and publishes the zones for machines, unless an earlier phase of the pass did. Published
// zones stay while no zone is usable, because without any, machines would be created without a failure domain.
func findFailureDomains(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster, f *failureDomains) error {
	if f.found || c.Spec.FailureDomainSelector == nil {
		return nil
	}
	if err := f.find(ctx, reader, c); err != nil {
		return err
	}
	f.found = true
	if f.waits(c) || !slices.ContainsFunc(f.usable, placement.Zone.ControlPlane) {
		return nil
	}
	c.Status.FailureDomains = nil
	for _, z := range f.usable {
		c.Status.FailureDomains = append(c.Status.FailureDomains, clusterv1.FailureDomain{
			Name:         z.Name,
			ControlPlane: ptr.To(z.ControlPlane()),
			Attributes:   map[string]string{"region": z.Domain.Spec.Region, "zone": z.Domain.Spec.Zone},
		})
	}
	return nil
}

// waits reports whether the first zones of a cluster are not all validated yet. They are published together.
func (f *failureDomains) waits(c *infrav1.VCDCluster) bool {
	return len(f.pending) > 0 && len(c.Status.FailureDomains) == 0
}

// find determines which of the selected zones are usable.
func (f *failureDomains) find(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster) error {
	list := &infrav1.VCDDeploymentZoneList{}
	if err := reader.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	selected, err := placement.Select(c, list.Items)
	if err != nil {
		return err
	}
	for i := range selected {
		z := &selected[i]
		domain, out, err := zones.DomainOf(ctx, reader, z)
		if err != nil {
			return err
		}
		out = cmp.Or(zones.Mismatch(c, z), out)
		if z.Status.OVDC != nil {
			out = cmp.Or(out, zones.Replaced(c, z.Name, z.Status.OVDC.ID))
		}
		if out != phases.Done {
			f.excluded = append(f.excluded, out.Message)
			continue
		}
		f.add(placement.Zone{VCDDeploymentZone: z, Domain: domain})
	}
	return nil
}

// add adds a zone that matches the cluster.
func (f *failureDomains) add(z placement.Zone) {
	switch {
	case !z.DeletionTimestamp.IsZero():
		f.excluded = append(f.excluded, "VCDDeploymentZone "+z.Name+" is being deleted")
	case z.Status.Usable == nil:
		f.pending = append(f.pending, z.Name)
	case !*z.Status.Usable:
		f.excluded = append(f.excluded, "check VCDDeploymentZone "+z.Name)
		f.unseen = f.unseen || z.ControlPlane()
	default:
		f.usable = append(f.usable, z)
	}
}

// problem returns why there is no usable zone for control planes.
func (f *failureDomains) problem() string {
	switch {
	case len(f.usable) > 0:
		return "No usable zone that spec.failureDomainSelector selects allows control planes: set spec.controlPlane of one zone to true, or label another zone"
	case len(f.excluded) > 0:
		return "No zone that spec.failureDomainSelector selects is usable: " + strings.Join(f.excluded, "; ")
	}
	return "spec.failureDomainSelector selects no VCDDeploymentZone in the namespace: create or label one"
}

// report adds the excluded zones to the condition of a cluster whose zones are published.
func (f *failureDomains) report(r events.EventRecorder, c *infrav1.VCDCluster) {
	switch {
	case c.Spec.FailureDomainSelector == nil:
		c.Status.FailureDomains = nil
		phases.Drop(c, infrav1.FailureDomainsReadyCondition)
	case len(f.excluded) > 0 && conditions.IsTrue(c, infrav1.FailureDomainsReadyCondition):
		phases.Report(c, infrav1.FailureDomainsReadyCondition, phases.Note(infrav1.FailureDomainsExcludedReason,
			"Excluded zones get no new machines: %s", strings.Join(f.excluded, "; ")), r)
	}
}
