// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/adoption"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/doctor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/leaks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func (p *program) adoptCommand() *cobra.Command {
	dryRun := false
	c := &cobra.Command{
		Use:   "adopt --dry-run",
		Short: "Preview the adoption of clusters that CAPVCD created",
		Long: `Compares the clusters that VMware's CAPVCD created, in all namespaces of the management clusters that --context names,
with the objects in VCD that have their IDs. Clusters of other organizations are skipped: log in to each organization
in turn. For each object, it shows whether the provider adopts it, creates it, or ignores it because its ownership is
not proved, and which rights are missing. The command is read-only; the manager adopts clusters automatically. Run it
before or after the provider replaces CAPVCD.`,
		Example: "  " + p.name + " adopt --dry-run --config vcd.yaml --context mgmt-1",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !dryRun {
				return errors.New("the manager adopts clusters automatically: set --dry-run for a preview")
			}
			return p.adopt(c.Context())
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "Preview only. Required.")
	return c
}

// An adoptReport is the output of adopt in JSON.
type adoptReport struct {
	Objects []adoption.Row   `json:"objects"`
	Rights  []doctor.Finding `json:"rights"`
	Hidden  []string         `json:"hidden"`
	Skipped []string         `json:"skipped"` // clusters of other sites and organizations
}

func (p *program) adopt(ctx context.Context) error {
	clusters, err := p.listCAPVCDClusters(ctx)
	if err != nil {
		return err
	}
	if len(clusters) == 0 {
		return errors.New("nothing to adopt: CAPVCD created none of the VCDClusters")
	}
	session, logout, err := p.open(ctx, request{})
	if err != nil {
		return err
	}
	defer logout()
	report := adoptReport{}
	here, skipped := partition(clusters, session)
	for _, c := range skipped {
		report.Skipped = append(report.Skipped, fmt.Sprintf("%s: organization %s of %s", c, c.Org, c.Site))
	}
	if len(here) == 0 {
		return fmt.Errorf("nothing to adopt in organization %s of %s: log in to that of a cluster: %s", session.Org(), session.Site(),
			strings.Join(report.Skipped, ", "))
	}
	inventory, err := leaks.Take(ctx, session, time.Now())
	if err != nil {
		return err
	}
	report.Hidden = inventory.Hidden
	for _, c := range here {
		report.Objects = append(report.Objects, adoption.Compare(c, clusters, inventory.Objects)...)
	}
	if report.Rights, err = missingRights(ctx, session, here); err != nil {
		return err
	}
	return p.printAdoption(report)
}

// partition splits clusters into those in the organization of a session and others, whose objects it cannot see.
func partition(clusters []adoption.Cluster, in *vcd.Session) (here, others []adoption.Cluster) {
	for _, c := range clusters {
		if c.In(in.Site(), in.Org()) {
			here = append(here, c)
		} else {
			others = append(others, c)
		}
	}
	return here, others
}

// listCAPVCDClusters returns the clusters of CAPVCD in all selected management clusters.
func (p *program) listCAPVCDClusters(ctx context.Context) ([]adoption.Cluster, error) {
	contexts := p.access.contexts
	if len(contexts) == 0 {
		contexts = []string{""}
	}
	var all []adoption.Cluster
	for _, name := range contexts {
		c, _, err := p.connect(name)
		if err != nil {
			return nil, err
		}
		clusters, err := adoption.Read(ctx, c, name)
		if err != nil {
			return nil, err
		}
		all = append(all, clusters...)
	}
	return all, nil
}

// missingRights returns the missing rights of the user that clusters with an endpoint on an edge gateway require.
func missingRights(ctx context.Context, in *vcd.Session, clusters []adoption.Cluster) ([]doctor.Finding, error) {
	c := &infrav1.VCDCluster{}
	edge := &infrav1.EdgeGatewayEndpoint{}
	if slices.ContainsFunc(clusters, func(c adoption.Cluster) bool { return c.OneArm }) {
		edge.ArmMode = infrav1.ArmModeOneArm
	}
	c.Spec.CloudProvider.Mode = infrav1.CloudProviderExternal
	c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{
		Type:        infrav1.EndpointEdgeGateway,
		EdgeGateway: edge,
	}
	return doctor.Rights(ctx, in, c)
}

func (p *program) printAdoption(report adoptReport) error {
	if p.output == "json" {
		report.Objects = nonNil(report.Objects)
		report.Rights = nonNil(report.Rights)
		report.Hidden = nonNil(report.Hidden)
		report.Skipped = nonNil(report.Skipped)
		if err := p.printJSON(report); err != nil {
			return err
		}
		return report.verdict()
	}
	p.warnOfHidden(report.Hidden)
	for _, cluster := range report.Skipped {
		fmt.Fprintf(p.errors, "Skipped %s: log in to this organization to check it\n", printable(cluster))
	}
	for _, f := range report.Rights {
		fmt.Fprintf(p.errors, "%s: %s: %s\n", f.Severity, printable(f.Message), printable(f.Remedy))
	}
	t := newTable(p.out, "CLUSTER", "KIND", "NAME", "STATE", "REMARK")
	for _, row := range report.Objects {
		t.row(row.Cluster, row.Kind, row.Name, string(row.State), orDash(row.Why))
	}
	if err := t.flush(); err != nil {
		return err
	}
	return report.verdict()
}

// verdict returns [errFindings] if a user must act before the adoption.
func (r adoptReport) verdict() error {
	inDoubt := slices.ContainsFunc(r.Objects, func(row adoption.Row) bool { return row.State == adoption.Doubt })
	lacksRights := slices.ContainsFunc(r.Rights, func(f doctor.Finding) bool { return f.Severity == doctor.Problem })
	if inDoubt || lacksRights || len(r.Hidden) > 0 {
		return errFindings
	}
	return nil
}
