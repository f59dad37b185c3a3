// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// removalTimeout limits the removal of created objects, including those of an interrupted run.
const removalTimeout = 15 * time.Minute

// Options select the assumptions to verify and the objects of the site to use.
type Options struct {
	VDC         string   // name or URN; empty: the only one
	Network     string   // in the VDC; empty: the only one
	Template    string   // catalog/template; empty: the only one
	EdgeGateway string   // name or URN; empty: the only one
	ReadOnly    bool     // run only probes that write nothing
	Only        []string // names of assumptions; empty: all
	// Poll is the interval for polling a task; 0 means 1 s.
	Poll time.Duration
	// Step, if not nil, is called with a description of each step.
	Step func(what string)
}

// step reports a step to the caller.
func (o Options) step(what string) {
	if o.Step != nil {
		o.Step(what)
	}
}

// A Finding is the result for one assumption at a site.
type Finding struct {
	Assumption string `json:"assumption"`
	Simulator  string `json:"simulator"` // default of the simulator
	Site       string `json:"site"`      // true, false or a value; empty if it was not probed
	Reason     Text   `json:"reason"`    // reason why it was not probed
	How        Text   `json:"how"`       // how the value was observed
	// Detail is VCD's response to a failed request. It may contain names of the site, and is never part of a report.
	Detail string `json:"detail,omitempty"`
}

// Differs reports whether the site differs from the simulator.
func (f Finding) Differs() bool { return f.Site != "" && f.Site != f.Simulator }

// A Result is the result of a run.
type Result struct {
	APIVersions []string  `json:"apiVersions"` // API versions that the site offers, oldest first
	Release     string    `json:"release"`     // VCD release; empty if it is not visible
	Findings    []Finding `json:"findings"`
}

// A Verification is a run that has read the site but has not created any objects yet.
type Verification struct {
	options Options
	rows    []Row
	bench   *bench
}

// Prepare finds the objects that the probes need. It only reads.
func Prepare(ctx context.Context, s *vcd.Session, o Options) (*Verification, error) {
	table := Table()
	for _, name := range o.Only {
		if !slices.ContainsFunc(table, func(r Row) bool { return r.Name == name }) {
			return nil, fmt.Errorf("unknown assumption %q: see docs/reference/vcdsim-configuration.md", name)
		}
	}
	needs := need(0)
	for _, row := range table {
		if o.leavesOut(row) == "" {
			needs |= row.needs
		}
	}
	b, err := newBench(ctx, s, o, needs)
	if err != nil {
		return nil, err
	}
	return &Verification{options: o, rows: table, bench: b}, nil
}

// leavesOut returns the reason, independent of the site, why an assumption is not probed, or the empty text.
func (o Options) leavesOut(row Row) Text {
	switch {
	case row.Without != "":
		return row.Without
	case len(o.Only) > 0 && !slices.Contains(o.Only, row.Name):
		return notSelected
	case o.ReadOnly && row.Writes():
		return isReadOnly
	}
	return ""
}

// Run runs all probes and removes the objects that they created, even if the context ends. The error is the reason why
// it stopped early or why objects could not be removed. The result then contains the findings so far.
func (v *Verification) Run(ctx context.Context) (Result, error) {
	b := v.bench
	result := Result{APIVersions: b.versions, Release: b.release}
	for _, row := range v.rows {
		result.Findings = append(result.Findings, v.find(ctx, row))
	}
	if b.created.total() == 0 {
		return result, stopped(ctx)
	}
	b.doubtful = b.doubtful || ctx.Err() != nil
	v.options.step("Removing created objects")
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
	defer cancel()
	if err := b.remove(fresh); err != nil {
		return result, errors.Join(stopped(ctx), fmt.Errorf("removing created objects: %w; remove it with --clean-up", err))
	}
	return result, stopped(ctx)
}

// stopped returns an error if the run was interrupted.
func stopped(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the run was interrupted: %w", err)
	}
	return nil
}

// find runs the probe of one assumption.
func (v *Verification) find(ctx context.Context, row Row) Finding {
	finding := Finding{Assumption: row.Name, Simulator: row.Default}
	switch lacking := v.lacks(row); {
	case lacking != "":
		finding.Reason = lacking
	case ctx.Err() != nil:
		finding.Reason = interrupted
	default:
		v.options.step("Probing " + row.Name)
		got, err := row.probe(ctx, v.bench)
		finding.Site = got.value
		finding.How = got.how
		finding.Reason = got.reason
		if err != nil {
			v.bench.doubtful = true
			finding.Site = ""
			finding.How = ""
			finding.Reason = reasonOf(ctx, err)
			finding.Detail = err.Error()
		}
	}
	return finding
}

// lacks returns the reason why an assumption is not probed, or the empty text.
func (v *Verification) lacks(row Row) Text {
	b := v.bench
	if why := v.options.leavesOut(row); why != "" {
		return why
	}
	for _, condition := range []struct {
		lacks  bool
		reason Text
	}{
		{row.needs&machines != 0 && b.vdc.ID == "", lacksVDC},
		{row.needs&machines != 0 && b.template.VM.ID == "", lacksImage},
		{row.needs&onNetwork != 0 && b.network.ID == "", lacksNetwork},
		{row.needs&onGateway != 0 && b.gateway.ID == "", lacksGateway},
		{row.needs&balancing != 0 && b.engines == "", lacksALB},
	} {
		if condition.lacks {
			return condition.reason
		}
	}
	return ""
}

// reasonOf returns the sentence for the error of a probe.
func reasonOf(ctx context.Context, err error) Text {
	switch {
	case ctx.Err() != nil:
		return interrupted
	case errors.Is(err, vcd.ErrForbidden), errors.Is(err, vcd.ErrUnauthorized):
		return lacksRights
	case errors.Is(err, vcd.ErrQuota):
		return noQuota
	case errors.Is(err, vcd.ErrBusy):
		return tooBusy
	case errors.Is(err, errTooQuick):
		return tooQuick
	case errors.Is(err, errLimit):
		return limitReached
	case errors.Is(err, errControl):
		return controlRefused
	}
	return failed
}

// Plan returns a description of the run, line by line.
func (v *Verification) Plan() []string {
	b := v.bench
	lines := []string{
		"It probes " + b.session.Site() + ", organization " + b.session.Org() + ".",
		"It uses " + b.uses() + ".",
	}
	if v.options.ReadOnly {
		return append(lines, "It is read-only.")
	}
	return append(lines,
		"The names of all created objects begin with "+nameOf(b.run, "")+", and their descriptions contain the marker of the run.",
		"Limits of the whole run: "+limitsText()+".",
		"It does not change templates, networks, gateways, catalogs, or any object without the marker of this run. NAT rules, firewall rules and virtual services are created disabled; virtual services have no members.",
		"It removes the created objects at the end and after Ctrl-C. Use --clean-up to remove the objects of a killed run.",
	)
}

// uses names the objects of the site that probes use.
func (b *bench) uses() string {
	orNone := func(name string) string {
		if name == "" {
			return "none"
		}
		return name
	}
	return strings.Join([]string{
		"VDC " + orNone(b.vdc.Name),
		"network " + orNone(b.network.Name),
		"template " + orNone(b.template.Name),
		"edge gateway " + orNone(b.gateway.Name),
	}, ", ")
}
