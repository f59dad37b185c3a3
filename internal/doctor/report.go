// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A Severity is the severity of a finding.
type Severity string

// Severities.
const (
	// Problem marks a finding that keeps a cluster from working.
	Problem Severity = "problem"
	// Warning marks a finding that affects only some clusters or only takes effect later.
	Warning Severity = "warning"
)

// A Finding is a problem or warning, with a remedy.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy"`
}

// A Report is the result of all checks.
type Report struct {
	Findings []Finding `json:"findings"`
	Passed   []string  `json:"passed"`  // checks without findings
	Skipped  []string  `json:"skipped"` // checks that need a check that found a problem
	Facts    []string  `json:"facts"`   // observations for users
}

// Problems returns the number of findings that are problems.
func (r Report) Problems() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == Problem {
			n++
		}
	}
	return n
}

// findings are the results of one check.
type findings struct {
	list  []found
	facts []string // observations for users
	stops bool     // dependent checks cannot run, although there is no problem
	lost  error    // VCD stopped responding
}

// A found is a finding before its check is set.
type found struct {
	Finding

	hidden bool // the user lacks the right to read something
}

func (f *findings) add(severity Severity, remedy, format string, args ...any) {
	f.list = append(f.list, found{Finding: Finding{
		Severity: severity,
		Message:  fmt.Sprintf(format, args...),
		Remedy:   remedy,
	}})
}

func (f *findings) problem(remedy, format string, args ...any) {
	f.add(Problem, remedy, format, args...)
}

func (f *findings) warn(remedy, format string, args ...any) { f.add(Warning, remedy, format, args...) }

func (f *findings) fact(format string, args ...any) {
	f.facts = append(f.facts, fmt.Sprintf(format, args...))
}

// found adds a finding of a rule that doctor and the manager share, unless it is nil.
func (f *findings) found(severity Severity, x *checks.Finding) {
	if x != nil {
		f.add(severity, x.Remedy, "%s", x.Message)
	}
}

// foundOf adds a finding about the machines of a VCDMachineTemplate, unless it is nil. Doctor and the manager share its
// rule.
func (f *findings) foundOf(m Machines, severity Severity, x *checks.Finding) {
	if x != nil {
		f.add(severity, x.Remedy, "VCDMachineTemplate %s: %s", m.Name, x.Message)
	}
}

// unread adds a finding about something that could not be read, or records that VCD stopped responding.
func (f *findings) unread(err error, what, remedy string) {
	if isLost(err) {
		f.lost = fmt.Errorf("%s: %w", what, err)
		return
	}
	message := fmt.Sprintf("%s: %v", what, err)
	if lookup, ok := errors.AsType[*vcd.LookupError](err); ok {
		message = lookup.Error()
	}
	f.list = append(f.list, found{
		Finding: Finding{
			Severity: Problem,
			Message:  message,
			Remedy:   remedy,
		},
		hidden: errors.Is(err, vcd.ErrForbidden),
	})
}

// join adds the findings of a part of the check.
func (f *findings) join(other findings) {
	f.list = append(f.list, other.list...)
	f.facts = append(f.facts, other.facts...)
	f.stops = f.stops || other.stops
	if other.lost != nil {
		f.lost = other.lost
	}
}

// isLost reports whether err ends the survey because it reveals nothing about the requested object.
func isLost(err error) bool {
	return slices.ContainsFunc([]error{
		vcd.ErrUnavailable, vcd.ErrThrottled, vcd.ErrLater, vcd.ErrBusy, vcd.ErrUnauthorized, context.DeadlineExceeded,
		context.Canceled,
	}, func(end error) bool { return errors.Is(err, end) })
}
