// SPDX-License-Identifier: Apache-2.0

// Package zones looks up the zones of machines and their VDCs.
package zones

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Find returns the named zone for machines of a cluster, or the problem that prevents its use. The problem is also
// retried after a while, because not all reconcilers watch zones.
func Find(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster, name string) (placement.Zone, phases.Result, error) {
	zone := placement.Zone{VCDDeploymentZone: &infrav1.VCDDeploymentZone{}}
	err := reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, zone.VCDDeploymentZone)
	switch {
	case apierrors.IsNotFound(err):
		return zone, phases.Fail(intervals.Remedy, infrav1.FailureDomainNotFoundReason,
			"VCDDeploymentZone %s does not exist in namespace %s: create it, or correct spec.failureDomain of the Machine and of its owner", name, c.Namespace), nil
	case err != nil:
		return zone, phases.Done, fmt.Errorf("getting VCDDeploymentZone %s: %w", name, err)
	}
	if out := Mismatch(c, zone.VCDDeploymentZone); out != phases.Done {
		return zone, out, nil
	}
	var out phases.Result
	zone.Domain, out, err = DomainOf(ctx, reader, zone.VCDDeploymentZone)
	return zone, out, err
}

// Mismatch returns a problem if a zone is for another site or organization than a cluster.
func Mismatch(c *infrav1.VCDCluster, z *infrav1.VCDDeploymentZone) phases.Result {
	return problems.OfFinding(checks.Zone(c, z))
}

// Replaced returns a problem if a zone now refers to another VDC, given by its URN, than the one with the cluster's
// objects. The old VDC was deleted or renamed, and the new one got its name.
func Replaced(c *infrav1.VCDCluster, zone, vdc string) phases.Result {
	home := vapp.HomeIn(c, "", zone)
	if home.VDC == "" || home.VDC == vdc {
		return phases.Done
	}
	return phases.Fail(intervals.Remedy, infrav1.FailureDomainMismatchReason,
		"spec.ovdc of the VCDFailureDomain of VCDDeploymentZone %s now refers to VDC %s, but the objects of the cluster in this zone are in VDC %s: create a VCDFailureDomain and a VCDDeploymentZone with other names for the new VDC. If the cluster has no objects left in the old VDC, remove spec.recordedState.zones.%s of the VCDCluster",
		zone, vdc, home.VDC, zone)
}

// DomainOf returns the failure domain that a zone refers to, or the problem that prevents its use.
func DomainOf(ctx context.Context, reader client.Reader, z *infrav1.VCDDeploymentZone) (*infrav1.VCDFailureDomain, phases.Result, error) {
	domain := &infrav1.VCDFailureDomain{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: z.Namespace, Name: z.Spec.FailureDomain}, domain)
	switch {
	case apierrors.IsNotFound(err):
		return nil, phases.Fail(intervals.Remedy, infrav1.FailureDomainNotFoundReason,
			"VCDFailureDomain %s in spec.failureDomain of VCDDeploymentZone %s does not exist: create it, or create another zone", z.Spec.FailureDomain, z.Name), nil
	case err != nil:
		return nil, phases.Done, fmt.Errorf("getting VCDFailureDomain %s: %w", z.Spec.FailureDomain, err)
	}
	return domain, phases.Done, nil
}

// Admits returns a problem if no new machine of a cluster may be created in a zone.
func Admits(c *infrav1.VCDCluster, z *infrav1.VCDDeploymentZone) phases.Result {
	if !z.DeletionTimestamp.IsZero() {
		return phases.Fail(intervals.Remedy, infrav1.FailureDomainNotFoundReason,
			"VCDDeploymentZone %s is being deleted: assign another failure domain to the Machine", z.Name)
	}
	selected, err := placement.Select(c, []infrav1.VCDDeploymentZone{*z})
	if err != nil {
		return phases.Stop(infrav1.FailureDomainNotSelectedReason, "%v", err)
	}
	if len(selected) == 0 {
		return phases.Fail(intervals.Remedy, infrav1.FailureDomainNotSelectedReason,
			"spec.failureDomainSelector of VCDCluster %s does not select VCDDeploymentZone %s: label the zone, or assign another failure domain to the Machine", c.Name, z.Name)
	}
	return phases.Done
}

// VDC finds the VDC of a failure domain. A disabled VDC is a problem.
func VDC(ctx context.Context, s *session.Session, choice placement.Choice) (vcd.VDC, phases.Result, error) {
	vdc, err := s.FindVDC(ctx, choice.Name)
	if err != nil {
		out, err := problems.OfField(err, checks.VDC, choice.Field)
		return vcd.VDC{}, out, err
	}
	return vdc, problems.OfFinding(checks.VDCEnabled(vdc, choice.Field)), nil
}
