// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out, before anything is created, what would keep a cluster from coming up in a VMware Cloud
// Director. It only reads. Each check is a small function; what several need is read once.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A Severity is how bad a finding is.
type Severity string

// Severities.
const (
	// Problem is what keeps a cluster from working.
	Problem Severity = "problem"
	// Warning is what keeps something from working that not every cluster has, or that will end later.
	Warning Severity = "warning"
)

// A Finding is one thing that is wrong, and what helps.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy"`
}

// A Report is the result of all checks.
type Report struct {
	Findings []Finding `json:"findings"`
	Passed   []string  `json:"passed"`  // checks that found nothing
	Skipped  []string  `json:"skipped"` // checks that need one that found a problem
	Facts    []string  `json:"facts"`   // what was found out, for people
}

// Problems returns how many findings are problems.
func (r Report) Problems() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == Problem {
			n++
		}
	}
	return n
}

// Names of checks whose findings the manager reports, too.
const (
	CheckVDC     = "vdc"
	CheckStorage = "storage"
)

// Opener logs in.
type Opener func(context.Context) (*vcd.Session, error)

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

func (s *survey) add(severity Severity, remedy, format string, args ...any) {
	s.failed = s.failed || severity == Problem
	found := Finding{Check: s.check, Severity: severity, Message: fmt.Sprintf(format, args...), Remedy: remedy}
	if !slices.Contains(s.report.Findings, found) { // Zones have much in common.
		s.report.Findings = append(s.report.Findings, found)
	}
}

func (s *survey) problem(remedy, format string, args ...any) { s.add(Problem, remedy, format, args...) }

func (s *survey) warn(remedy, format string, args ...any) { s.add(Warning, remedy, format, args...) }

func (s *survey) fact(format string, args ...any) {
	if text := s.check + ": " + fmt.Sprintf(format, args...); !slices.Contains(s.report.Facts, text) {
		s.report.Facts = append(s.report.Facts, text)
	}
}

// lost reports whether VCD ended the survey by an error that says nothing of what was asked for.
func lost(err error) bool {
	return slices.ContainsFunc([]error{
		vcd.ErrUnavailable, vcd.ErrThrottled, vcd.ErrLater, vcd.ErrBusy, vcd.ErrUnauthorized, context.DeadlineExceeded,
		context.Canceled,
	}, func(end error) bool { return errors.Is(err, end) })
}

// unread reports that something could not be read. A right that is missing was reported already.
func (s *survey) unread(err error, what, remedy string) {
	switch {
	case errors.Is(err, vcd.ErrForbidden) && s.missing:
	case lost(err):
		s.lost = fmt.Errorf("%s: %w", what, err)
	default:
		if found, ok := errors.AsType[*vcd.LookupError](err); ok {
			s.problem(remedy, "%s", found)
			return
		}
		s.problem(remedy, "%s: %v", what, err)
	}
}
