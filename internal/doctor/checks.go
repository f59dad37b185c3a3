// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A check is a row of the table of checks.
type check struct {
	name  string
	needs []string // checks that must have found no problem
	run   func(*survey, context.Context) findings
	once  bool // runs once for the site, not for each VDC
}

// table returns all checks, in the order of the report.
func table() []check {
	const access, rights, vdc, network, template = "access", "rights", "vdc", "network", "template"
	return []check{
		{name: access, run: (*survey).access, once: true},
		{name: rights, needs: []string{access}, run: (*survey).checkRights, once: true},
		{name: "identities", run: (*survey).identities, once: true},
		{name: "lease", needs: []string{access}, run: (*survey).lease, once: true},
		{name: vdc, needs: []string{access}, run: (*survey).findVDC},
		{name: "storage", needs: []string{vdc}, run: (*survey).storage},
		{name: "policy", needs: []string{vdc}, run: (*survey).findPolicies},
		{name: network, needs: []string{vdc}, run: (*survey).findNetworks},
		{name: template, needs: []string{access}, run: (*survey).findTemplates},
		{name: "disk", needs: []string{vdc, template}, run: (*survey).disks},
		{name: "capacity", needs: []string{vdc, template}, run: (*survey).capacity},
		{name: "endpoint", needs: []string{network}, run: (*survey).endpoint},
		{name: "name", needs: []string{vdc}, run: (*survey).name},
		{name: "gateway", needs: []string{vdc}, run: (*survey).edgeGateways},
		{name: "entity", needs: []string{access}, run: (*survey).entity, once: true},
	}
}

// A survey holds the plan and the results of checks that later checks need. Its methods are the rows of the table. Each
// passes on the inputs of its check and stores the results.
type survey struct {
	open Opener
	plan Plan

	session   *vcd.Session            // set by access
	rights    heldRights              // set by checkRights
	at        place                   // set by findVDC
	policies  map[string]vcd.Policy   // sizing policies by the name in the plan; set by findPolicies
	networks  networks                // set by findNetworks
	templates map[string]vcd.Template // by catalog and name in the plan; set by findTemplates
}

func (s *survey) access(ctx context.Context) (f findings) {
	s.session, f = logIn(ctx, s.open)
	return f
}

func (s *survey) checkRights(ctx context.Context) (f findings) {
	s.rights, f = checkRights(ctx, s.session, s.plan)
	return f
}

func (s *survey) identities(ctx context.Context) findings {
	f := checkIdentities(ctx, s.plan.Logins)
	f.join(checkExtraConfig(s.plan.Identity, s.plan.Machines))
	return f
}

func (s *survey) lease(ctx context.Context) findings { return checkLease(ctx, s.session) }

func (s *survey) findVDC(ctx context.Context) (f findings) {
	s.at, f = findVDC(ctx, s.session.VDCs, s.plan)
	return f
}

func (s *survey) storage(ctx context.Context) findings {
	return checkStorage(ctx, s.session.VDCs, s.at.vdc, s.plan.Machines)
}

func (s *survey) findPolicies(ctx context.Context) (f findings) {
	s.policies, f = findPolicies(ctx, s.session.VDCs, s.at.vdc, s.plan.Machines)
	return f
}

func (s *survey) findNetworks(ctx context.Context) (f findings) {
	s.networks, f = findNetworks(ctx, s.session.Networks, s.at.vdc, s.plan)
	f.join(checkIPv6(ctx, s.session.Gateways, s.networks, s.plan))
	return f
}

func (s *survey) findTemplates(ctx context.Context) (f findings) {
	s.templates, f = findTemplates(ctx, s.session.Templates, s.at, s.plan.Machines)
	return f
}

func (s *survey) disks(ctx context.Context) findings {
	f := checkDisks(s.plan.Machines, s.templates, s.at.vdc, s.rights)
	f.join(checkIOPS(ctx, s.session.VDCs, s.at.vdc, s.plan.Machines, s.templates))
	return f
}

func (s *survey) capacity(ctx context.Context) findings {
	want := loads{
		machines:  s.plan.Machines,
		templates: s.templates,
		policies:  s.policies,
	}
	return checkCapacity(s.at, want.sum(ctx, s.session.VDCs, s.at), len(want.machines) > 0)
}

func (s *survey) endpoint(ctx context.Context) findings {
	return checkEndpoint(ctx, s.session, s.plan, s.networks.byName)
}

func (s *survey) name(ctx context.Context) findings {
	return checkName(ctx, s.session.VApps, s.at.vdc, s.plan)
}

func (s *survey) edgeGateways(ctx context.Context) findings {
	return checkGateways(ctx, s.session, s.plan.Cluster, s.networks)
}

func (s *survey) entity(ctx context.Context) findings {
	return checkEntity(ctx, s.session, s.plan.Cluster, s.rights)
}
