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

// findings are what one check found.
type findings struct {
	list  []found
	facts []string // for people
	stops bool     // checks that need this one cannot be made, although it is no problem
	lost  error    // VCD stopped answering
}

// A found is a finding, still without the name of its check.
type found struct {
	Finding

	hidden bool // it is that the user may not read something
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

// found adds what the manager finds, too, if it is anything.
func (f *findings) found(severity Severity, x *checks.Finding) {
	if x != nil {
		f.add(severity, x.Remedy, "%s", x.Message)
	}
}

// foundOf adds what the manager finds, too, about the machines of a VCDMachineTemplate.
func (f *findings) foundOf(m Machines, severity Severity, x *checks.Finding) {
	if x != nil {
		f.add(severity, x.Remedy, "VCDMachineTemplate %s: %s", m.Name, x.Message)
	}
}

// unread adds that something could not be read, or that VCD stopped answering.
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

// join adds what a part of the check found.
func (f *findings) join(other findings) {
	f.list = append(f.list, other.list...)
	f.facts = append(f.facts, other.facts...)
	f.stops = f.stops || other.stops
	if other.lost != nil {
		f.lost = other.lost
	}
}

// isLost reports whether VCD ended the survey by an error that shows nothing of what was asked for.
func isLost(err error) bool {
	return slices.ContainsFunc([]error{
		vcd.ErrUnavailable, vcd.ErrThrottled, vcd.ErrLater, vcd.ErrBusy, vcd.ErrUnauthorized, context.DeadlineExceeded,
		context.Canceled,
	}, func(end error) bool { return errors.Is(err, end) })
}
