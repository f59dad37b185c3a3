// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out, before anything is created, what would keep a cluster from coming up in a VMware Cloud
// Director. It only reads. Each check is a small function; what several need is read once.
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
	s := &survey{open: open, plan: plan, skipped: map[string]bool{}}
	s.check = "manifest"
	for _, problem := range append(plan.problems, plan.misplaced()...) {
		s.problem("correct the manifest", "%s", problem)
	}
	for _, zone := range plan.apart {
		s.warn("check its VDC by --vdc, as that identity",
			"VCDDeploymentZone %s has another site, organization or identity than the VCDCluster", zone)
	}
	for _, patch := range plan.external {
		s.warn("check manually what it changes", "patch %s of the ClusterClass needs a runtime extension: doctor does not apply it", patch)
	}
	failed := map[string]bool{}
	if err := s.runChecks(ctx, true, failed); err != nil {
		return s.report, err
	}
	for _, part := range plan.parts() {
		s.plan = part
		s.gateways = nil
		if err := s.runChecks(ctx, false, maps.Clone(failed)); err != nil {
			return s.report, err
		}
	}
	s.sumUp()
	return s.report, nil
}

// runChecks runs the checks of the site, or those of the VDC of the plan, and adds to failed those that found a
// problem.
func (s *survey) runChecks(ctx context.Context, once bool, failed map[string]bool) error {
	for _, c := range checks() {
		if c.once != once {
			continue
		}
		if slices.ContainsFunc(c.needs, func(name string) bool { return failed[name] }) {
			failed[c.name] = true
			s.skipped[c.name] = true
			continue
		}
		s.check = c.name
		s.failed = false
		c.run(ctx, s)
		if s.lost != nil {
			return fmt.Errorf("checking %s: %w", c.name, s.lost)
		}
		// Missing rights keep no other check from running: what they hide is not reported twice.
		failed[c.name] = s.failed && c.name != "rights"
	}
	return nil
}

// sumUp lists the checks that found nothing, and those that were skipped.
func (s *survey) sumUp() {
	for _, c := range checks() {
		switch {
		case s.skipped[c.name]:
			s.report.Skipped = append(s.report.Skipped, c.name)
		case !slices.ContainsFunc(s.report.Findings, func(f Finding) bool { return f.Check == c.name }):
			s.report.Passed = append(s.report.Passed, c.name)
		}
	}
}
