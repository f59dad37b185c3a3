// SPDX-License-Identifier: Apache-2.0

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

// lost reports whether VCD ended the survey by an error that says nothing of what was asked for.
func lost(err error) bool {
	return slices.ContainsFunc([]error{
		vcd.ErrUnavailable, vcd.ErrThrottled, vcd.ErrLater, vcd.ErrBusy, vcd.ErrUnauthorized, context.DeadlineExceeded,
		context.Canceled,
	}, func(end error) bool { return errors.Is(err, end) })
}
