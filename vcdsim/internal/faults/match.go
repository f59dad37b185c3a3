// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Subject describes a request or task that rules are matched against.
type Subject struct {
	Task      bool
	Operation string
	User, Org string
	Entities  []string // IDs and names
	Cell      int
}

func (f *Fault) forTasks() bool { return f.FailTask || f.AbortTask || f.StickTask }

// forRequests reports whether the rule has an effect that applies only to requests.
func (f *Fault) forRequests() bool {
	hasEffect := slices.Contains([]bool{f.Hang, f.DropBefore, f.DropAfter, f.Truncate, f.EndSession, f.RevokeToken}, true)
	return hasEffect || f.SlowBody > 0 || f.Busy != "" || f.Body != "" || len(f.Header) > 0
}

// Matches reports whether a rule matches a request or task.
func (f *Fault) Matches(of Subject) bool {
	return f.forTasks() == of.Task && f.covers(of.Operation) &&
		(f.Cell == 0 || f.Cell == of.Cell) &&
		(f.User == "" || f.User == of.User || f.User == of.User+"@"+of.Org) &&
		(f.Entity == "" || slices.Contains(of.Entities, f.Entity) || slices.Contains(of.Entities, store.Bare(f.Entity)))
}

func (f *Fault) covers(operation string) bool {
	if f.Operation == "" || f.Operation == operation {
		return true
	}
	ok, err := path.Match(flat(f.Operation), flat(operation))
	return err == nil && ok
}

// flat removes the slashes from a glob or an operation, so that a star also matches slashes.
func flat(glob string) string { return strings.ReplaceAll(glob, "/", "\x00") }

// Validate returns an error if a rule can never match or has no effect.
func (f *Fault) Validate() error {
	_, badGlob := path.Match(f.Operation, "")
	var errs []error
	for _, rule := range []struct {
		broken bool
		format string
		value  any
	}{
		{badGlob != nil, "operation %q: syntax error in pattern", f.Operation},
		{f.Probability < 0 || f.Probability > 1, "probability %v is not between 0 and 1", f.Probability},
		{
			min(f.Skip, f.Count, f.Cell) < 0,
			"%d is negative: skip, count and cell cannot be",
			min(f.Skip, f.Count, f.Cell),
		},
		{min(f.Delay, f.SlowBody) < 0, "%s is negative: delay and slowBody cannot be", min(f.Delay, f.SlowBody)},
		{f.Status != 0 && (f.Status < 200 || f.Status > 599), "status %d is not one of HTTP", f.Status},
		{
			!slices.Contains([]BusyText{"", BusyTenant, BusyProvider}, f.Busy),
			"busy %q is not tenant or provider",
			f.Busy,
		},
		{
			!slices.Contains([]BodyKind{"", BodyXML, BodyJSON, BodyHTML, BodyEmpty, BodyNothing}, f.Body),
			"body %q is not xml, json, html, empty or nothing",
			f.Body,
		},
		{
			f.forTasks() && f.forRequests(),
			"%s is of tasks: what happens to requests needs a rule of its own",
			"failTask, abortTask or stickTask",
		},
		{
			f.forTasks() && !f.StickTask && f.Delay > 0,
			"delay %s is for stickTask, not for the other rules of tasks",
			f.Delay,
		},
		{!f.hasEffect(), "it has no effect, such as %s", "status, busy, hang, dropBefore, dropAfter or delay"},
	} {
		if rule.broken {
			errs = append(errs, fmt.Errorf(rule.format, rule.value))
		}
	}
	return errors.Join(errs...)
}

func (f *Fault) hasEffect() bool {
	hasEffect := slices.Contains([]bool{
		f.forTasks(),
		f.Hang,
		f.DropBefore,
		f.DropAfter,
		f.Truncate,
		f.EndSession,
		f.RevokeToken,
	}, true)
	return hasEffect || f.Delay > 0 || f.SlowBody > 0 || f.Status != 0 || f.Busy != ""
}
