// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A check is a row of the table.
type check struct {
	name  string
	needs []string // checks that must have found no problem
	run   func(context.Context, *survey)
	once  bool // for the site, not for each VDC
}

// checks are all of them, in the order of the report.
func checks() []check {
	const access, rights, vdc, network, template = "access", "rights", CheckVDC, "network", "template"
	return []check{
		{name: access, run: checkAccess, once: true},
		{name: rights, needs: []string{access}, run: checkRights, once: true},
		{name: "identities", run: checkIdentities, once: true},
		{name: "lease", needs: []string{access}, run: checkLease, once: true},
		{name: vdc, needs: []string{access}, run: checkVDC},
		{name: CheckStorage, needs: []string{vdc}, run: checkStorage},
		{name: "policy", needs: []string{vdc}, run: checkPolicies},
		{name: network, needs: []string{vdc}, run: checkNetworks},
		{name: template, needs: []string{access}, run: checkTemplates},
		{name: "disk", needs: []string{vdc, template}, run: checkDisks},
		{name: "capacity", needs: []string{vdc, template}, run: checkCapacity},
		{name: "endpoint", needs: []string{network}, run: checkEndpoint},
		{name: "name", needs: []string{vdc}, run: checkName},
		{name: "gateway", needs: []string{vdc}, run: checkGateways},
		{name: "entity", needs: []string{access}, run: checkEntity, once: true},
	}
}

// A survey is one run: what is planned, and what was read.
type survey struct {
	open    Opener
	plan    Plan
	session *vcd.Session
	check   string // that runs
	report  Report
	lost    error // VCD stopped answering
	failed  bool  // the check that runs found a problem, or cannot be made
	skipped map[string]bool

	held      map[string]bool // rights; nil: unknown
	missing   bool            // some right that is needed
	vdc       vcd.VDC
	capacity  vcd.Capacity
	networks  map[string]vcd.Network  // by the name in the plan
	templates map[string]vcd.Template // by catalog and name in the plan
	policies  map[string]vcd.Policy   // sizing, by the name in the plan
	gateways  []vcd.Ref
}
