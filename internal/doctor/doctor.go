// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out, before anything is created, what would keep a cluster from coming up in a VMware Cloud
// Director. It only reads. Each check is a small function; what several need is read once.
//
// [ReadPlan] reads from manifests what is planned. [Run] runs the table of checks, for the site and then for each VDC of
// the plan, and reports what they find.
package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Opener logs in.
type Opener func(context.Context) (*vcd.Session, error)

// Run checks whether what is planned can work.
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
	r.sumUp()
	return r.report, nil
}

// A run is what checks found so far.
type run struct {
	report  Report
	skipped map[string]bool // checks that need one that found a problem
}

// checks runs the checks of the site, or those of the VDC of a survey, and adds to failed those that found a problem.
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
		// Missing rights keep no other check from running: what they hide is not reported twice.
		failed[c.name] = hasProblem && c.name != "rights"
	}
	return nil
}

// add adds to the report what a check found, each once: zones have much in common. It reports whether that is a problem.
// If the user lacks rights, what these hide is not reported again.
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

// sumUp lists the checks that found nothing, and those that were skipped.
func (r *run) sumUp() {
	for _, c := range table() {
		switch {
		case r.skipped[c.name]:
			r.report.Skipped = append(r.report.Skipped, c.name)
		case !slices.ContainsFunc(r.report.Findings, func(f Finding) bool { return f.Check == c.name }):
			r.report.Passed = append(r.report.Passed, c.name)
		}
	}
}
