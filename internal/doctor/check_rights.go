// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// heldRights are the rights of the user.
type heldRights struct {
	names   map[string]bool // nil: unknown
	missing bool            // a required right is missing
}

// has reports whether the user has a right, or the rights of the user are unknown. The entity right of administrators
// includes the one of users.
func (h heldRights) has(right string) bool {
	return h.names == nil || h.names[right] ||
		right == "vmware:capvcdCluster: Full Access" && h.names["vmware:capvcdCluster: Administrator Full access"]
}

// Rights returns a finding for each right that a cluster requires and the user lacks. An error means that VCD did not
// respond.
func Rights(ctx context.Context, in *vcd.Session, c *infrav1.VCDCluster) ([]Finding, error) {
	_, f := checkRights(ctx, in, Plan{Cluster: c})
	var missing []Finding
	for _, found := range f.list {
		found.Check = "rights"
		missing = append(missing, found.Finding)
	}
	return missing, f.lost
}

// checkRights compares the rights of the user with those that the cluster of the plan requires. A plan without a
// cluster is checked like a cluster with an empty spec.
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
		f.warn("compare the role with docs/security/permissions.md manually", "the rights of the role are not readable for the user")
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
				f.missingRight(severity, in.Org(), row, right)
			}
		}
	}
	f.fact("%d rights", len(names))
	return held, f
}

// missingRight adds a finding about a right that the users of an organization lack.
func (f *findings) missingRight(severity Severity, org string, row rights.Row, right string) {
	f.add(severity, fmt.Sprintf("add the right to the role of the user, and to a rights bundle that is published to organization %s", org), "right %q is missing for %s; without it, %s", right,
		rights.Plain(row.For), rights.Plain(row.Without))
}

// needs reports whether the cluster of a plan requires the rights for a purpose, and how severe their absence is. Other
// checks report the rights whose need does not follow from the spec.
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
		return Problem, hasAffinityRules(plan.Machines)
	case rights.Entity, rights.GrowDisks, rights.Sometimes:
	}
	return "", false
}

// hasAffinityRules reports whether any machines request affinity or anti-affinity rules.
func hasAffinityRules(machines []Machines) bool {
	return slices.ContainsFunc(machines, func(m Machines) bool {
		return m.Spec.Affinity != nil || m.Spec.AntiAffinity != "" && m.Spec.AntiAffinity != infrav1.AntiAffinityNone
	})
}
