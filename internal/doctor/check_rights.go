// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// heldRights are the rights of the user.
type heldRights struct {
	names   map[string]bool // nil: unknown
	missing bool            // some right that is needed
}

// has reports whether the user has a right, or it is not known which it has. That of administrators contains the one of
// users.
func (h heldRights) has(right string) bool {
	return h.names == nil || h.names[right] ||
		right == "vmware:capvcdCluster: Full Access" && h.names["vmware:capvcdCluster: Administrator Full access"]
}

// Rights returns which rights the user lacks that a cluster takes. An error means that VCD gave no answer.
func Rights(ctx context.Context, in *vcd.Session, c *infrav1.VCDCluster) ([]Finding, error) {
	_, f := checkRights(ctx, in, Plan{Cluster: c})
	var missing []Finding
	for _, found := range f.list {
		found.Check = "rights"
		missing = append(missing, found.Finding)
	}
	return missing, f.lost
}

// checkRights compares the rights of the user with those that a cluster takes; nil: any.
func checkRights(ctx context.Context, in *vcd.Session, plan Plan) (heldRights, findings) {
	var held heldRights
	var f findings
	names, known, err := in.Rights(ctx)
	switch {
	case err != nil:
		f.unread(err, "reading the rights of the user", "run doctor again later")
		return held, f
	case in.IsProvider():
		f.fact("a user of the organization System has all rights")
		return held, f
	case !known:
		f.warn("compare the role with docs/security/permissions.md manually", "the rights of the role are not "+
			"readable for the user")
		return held, f
	}
	held.names = map[string]bool{}
	for _, name := range names {
		held.names[name] = true
	}
	for _, row := range rights.Table() {
		severity, needed := needs(row.Need, plan)
		for _, right := range row.Rights {
			if needed && !held.has(right) {
				held.missing = true
				f.lacks(severity, in.Org(), row, right)
			}
		}
	}
	f.fact("%d rights", len(names))
	return held, f
}

// lacks adds that a right is missing for the users of an organization.
func (f *findings) lacks(severity Severity, org string, row rights.Row, right string) {
	f.add(severity, fmt.Sprintf("add the right to the role of the user, and to a rights bundle that is published to "+
		"organization %s", org), "right %q is missing for %s; without it, %s", right,
		rights.Plain(row.For), rights.Plain(row.Without))
}

// needs reports whether a cluster of a plan takes a right for something. Those that its spec does not show, other checks report.
func needs(need rights.Need, plan Plan) (severity Severity, needed bool) {
	c := plan.Cluster
	if c == nil {
		c = &infrav1.VCDCluster{}
	}
	balancers := checks.CreatesBalancers(c) || c.Spec.ControlPlaneLoadBalancer.Type == infrav1.EndpointEdgeGateway
	switch need {
	case rights.Always:
		return Problem, true
	case rights.Balancers:
		return Problem, balancers
	case rights.NAT:
		if checks.UsesNAT(c) {
			return Problem, true
		}
		return Warning, balancers
	case rights.Firewall, rights.Certificates, rights.Spaces:
		return Warning, balancers
	case rights.AntiAffinity:
		return Problem, ruled(plan.Machines)
	case rights.Entity, rights.GrowDisks, rights.Sometimes:
	}
	return "", false
}
