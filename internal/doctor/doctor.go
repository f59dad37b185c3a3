// SPDX-License-Identifier: Apache-2.0

// Package doctor runs the preflight checks of a cluster in VMware Cloud Director. It finds problems that would keep the
// cluster from working before anything is created. It only reads. Each check is a small function, and inputs that
// several checks need are read once.
//
// [ReadPlan] reads the plan from manifests. [Run] runs the table of checks, for the site and then for each VDC of the
// plan, and reports their findings.
package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Opener opens a session.
type Opener func(context.Context) (*vcd.Session, error)

// Run runs all checks of a plan. It fails if VCD stops responding, and then returns an incomplete report.
func Run(ctx context.Context, open Opener, plan Plan) (Report, error) {
	r := run{skipped: map[string]bool{}}
	r.add("manifest", checkManifest(plan), false)
	site := survey{open: open, plan: plan}
	failed := map[string]bool{}
	if err := r.checks(ctx, &site, true, failed); err != nil {
		return r.report, err
	}
	for _, part := range plan.parts() {
		in := site
		in.plan = part
		if err := r.checks(ctx, &in, false, maps.Clone(failed)); err != nil {
			return r.report, err
		}
	}
	r.summarize()
	return r.report, nil
}

// A run collects the results of checks.
type run struct {
	report  Report
	skipped map[string]bool // checks that need a check that found a problem
}

// checks runs the checks of the site if once is true, otherwise those of the VDC of the survey. It adds checks that
// found a problem, and checks that need them, to failed.
func (r *run) checks(ctx context.Context, s *survey, once bool, failed map[string]bool) error {
	for _, c := range table() {
		if c.once != once {
			continue
		}
		if slices.ContainsFunc(c.needs, func(name string) bool { return failed[name] }) {
			failed[c.name] = true
			r.skipped[c.name] = true
			continue
		}
		f := c.run(s, ctx)
		hasProblem := r.add(c.name, f, s.rights.missing)
		if f.lost != nil {
			return fmt.Errorf("checking %s: %w", c.name, f.lost)
		}
		// Missing rights do not skip other checks. Findings that only follow from missing rights are not reported
		// again.
		failed[c.name] = hasProblem && c.name != "rights"
	}
	return nil
}

// add adds the findings of a check to the report and reports whether any is a problem. It omits duplicates, because
// zones have much in common. If the user lacks rights, it also omits findings that only follow from that.
func (r *run) add(check string, f findings, lacksRights bool) (hasProblem bool) {
	hasProblem = f.stops
	for _, x := range f.list {
		if x.hidden && lacksRights {
			continue
		}
		hasProblem = hasProblem || x.Severity == Problem
		x.Check = check
		if !slices.Contains(r.report.Findings, x.Finding) {
			r.report.Findings = append(r.report.Findings, x.Finding)
		}
	}
	for _, text := range f.facts {
		if fact := check + ": " + text; !slices.Contains(r.report.Facts, fact) {
			r.report.Facts = append(r.report.Facts, fact)
		}
	}
	return hasProblem
}

// summarize lists the checks that passed and those that were skipped.
func (r *run) summarize() {
	for _, c := range table() {
		switch {
		case r.skipped[c.name]:
			r.report.Skipped = append(r.report.Skipped, c.name)
		case !slices.ContainsFunc(r.report.Findings, func(f Finding) bool { return f.Check == c.name }):
			r.report.Passed = append(r.report.Passed, c.name)
		}
	}
}
