// Package doctor finds out, before anything is created, what would keep a cluster from coming up in a VMware Cloud
// Director. It only reads. Each check is a small function; what several need is read once.
package doctor

import (
	"context"
	"errors"
	"fmt"
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
}

// checks are all of them, in the order of the report.
func checks() []check {
	const access, rights, vdc, network, template = "access", "rights", CheckVDC, "network", "template"
	return []check{
		{access, nil, checkAccess},
		{rights, []string{access}, checkRights},
		{"lease", []string{access}, checkLease},
		{vdc, []string{access}, checkVDC},
		{CheckStorage, []string{vdc}, checkStorage},
		{"policy", []string{vdc}, checkPolicies},
		{network, []string{vdc}, checkNetworks},
		{template, []string{access}, checkTemplates},
		{"disk", []string{vdc, template}, checkDisks},
		{"capacity", []string{vdc, template}, checkCapacity},
		{"endpoint", []string{network}, checkEndpoint},
		{"name", []string{vdc}, checkName},
		{"gateway", []string{vdc}, checkGateways},
		{"entity", []string{access}, checkEntity},
	}
}

// Run checks whether what is planned can work.
func Run(ctx context.Context, open Opener, plan Plan) (Report, error) {
	s := &survey{open: open, plan: plan}
	for _, problem := range plan.problems {
		s.report.Findings = append(s.report.Findings, Finding{
			Check: "manifest", Severity: Problem, Message: problem, Remedy: "correct the manifest",
		})
	}
	failed := map[string]bool{}
	for _, c := range checks() {
		if slices.ContainsFunc(c.needs, func(name string) bool { return failed[name] }) {
			failed[c.name] = true
			s.report.Skipped = append(s.report.Skipped, c.name)
			continue
		}
		before, problems := len(s.report.Findings), s.report.Problems()
		s.check = c.name
		c.run(ctx, s)
		if s.lost != nil {
			return s.report, fmt.Errorf("checking %s: %w", c.name, s.lost)
		}
		// Missing rights keep no other check from running: what they hide is not reported twice.
		failed[c.name] = s.report.Problems() > problems && c.name != "rights"
		if len(s.report.Findings) == before {
			s.report.Passed = append(s.report.Passed, c.name)
		}
	}
	return s.report, nil
}

// A survey is one run: what is planned, and what was read.
type survey struct {
	open    Opener
	plan    Plan
	session *vcd.Session
	check   string // that runs
	report  Report
	lost    error // VCD stopped answering

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
	s.report.Findings = append(s.report.Findings, Finding{
		Check: s.check, Severity: severity, Message: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

func (s *survey) problem(remedy, format string, args ...any) { s.add(Problem, remedy, format, args...) }

func (s *survey) warn(remedy, format string, args ...any) { s.add(Warning, remedy, format, args...) }

func (s *survey) fact(format string, args ...any) {
	s.report.Facts = append(s.report.Facts, s.check+": "+fmt.Sprintf(format, args...))
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
