// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/verifysite"
)

// verifyFlags are the flags of verify-site.
type verifyFlags struct {
	verifysite.Options

	yes     bool
	cleanUp bool
	runs    []string // that --clean-up is limited to; empty: all
	report  string
}

func (p *program) verifySiteCommand() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify-site",
		Short: "Compare a site with the simulator",
		Long: `Tests the assumptions of the simulator vcdsim on a live site. Each assumption has a probe, or a reason why it has none.
Probes create a limited number of small objects: the command lists them first and asks for confirmation. Each object
has the marker of the run, is created stopped or disabled if possible, and is removed at the end, also after Ctrl-C.
Use --clean-up to remove the objects of a run that was killed.

The file of --report contains versions and results, but no names, addresses, IDs or credentials: attach it to an
issue. Exit code 2 means that the site differs from the simulator.`,
		Example: strings.ReplaceAll(`  vcdctl verify-site --read-only --identity tenant --org acme
  vcdctl verify-site --network nodes --template images/ubuntu --report site.yaml --identity tenant --org acme
  vcdctl verify-site --clean-up --identity tenant --org acme`, "vcdctl", p.name),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.cleanUp {
				return p.cleanUpSite(c.Context(), f)
			}
			return p.verifySite(c.Context(), f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.VDC, "vdc", "", "VDC for VMs and disks; required if several are visible.")
	flags.StringVar(&f.Network, "network", "", "Network of the VDC for NICs; required if there are several.")
	flags.StringVar(&f.Template, "template", "", "Template for VMs, as catalog/template; required if there are several.")
	flags.StringVar(&f.EdgeGateway, "edge-gateway", "",
		"Edge gateway for rules, pools and virtual services; required if there are several.")
	flags.StringSliceVar(&f.Only, "only", nil, "Assumptions to probe; all if not set.")
	flags.BoolVar(&f.ReadOnly, "read-only", false, "Run only read-only probes.")
	flags.BoolVar(&f.yes, "yes", false, "Skip the confirmation before objects are created or removed.")
	flags.BoolVar(&f.cleanUp, "clean-up", false, "Remove the objects of earlier runs from the organization; runs no probes.")
	flags.StringSliceVar(&f.runs, "run", nil, "Runs whose objects --clean-up removes; all if not set. Required with --yes, because nothing shows whether a run has ended.")
	flags.StringVar(&f.report, "report", "", "Output file for the results, without data that identifies the site.")
	c.MarkFlagsMutuallyExclusive("clean-up", "read-only")
	c.MarkFlagsMutuallyExclusive("clean-up", "report")
	return c
}

func (p *program) verifySite(ctx context.Context, f verifyFlags) error {
	session, logout, err := p.open(ctx, request{})
	if err != nil {
		return err
	}
	defer logout()
	f.Step = p.printStep
	v, err := verifysite.Prepare(ctx, session, f.Options)
	if err != nil {
		return err
	}
	for _, line := range v.Plan() {
		fmt.Fprintln(p.errors, printable(line))
	}
	if !f.ReadOnly {
		if err := p.askConfirmation(ctx, f.yes, "Create these objects and remove them afterwards?"); err != nil {
			return err
		}
	}
	result, stopped := v.Run(ctx)
	if err := p.printVerification(result); err != nil {
		return errors.Join(stopped, err)
	}
	if f.report != "" {
		if err := writeReport(f.report, result); err != nil {
			return errors.Join(stopped, err)
		}
	}
	if stopped == nil && slices.ContainsFunc(result.Findings, verifysite.Finding.Differs) {
		return errFindings
	}
	return stopped
}

func (p *program) printStep(what string) { fmt.Fprintln(p.errors, printable(what)) }

// askConfirmation requests confirmation unless --yes is set. Without a terminal it returns an error.
func (p *program) askConfirmation(ctx context.Context, yes bool, question string) error {
	switch {
	case yes:
		return nil
	case !p.interactive():
		return errors.New("cannot ask for confirmation because the input is not a terminal: set --yes to confirm")
	}
	answer, err := p.ask(ctx, question+" Type yes: ")
	if err != nil {
		return err
	}
	if answer != "yes" {
		return errors.New("not confirmed: nothing was changed")
	}
	return nil
}

func (p *program) printVerification(result verifysite.Result) error {
	if p.output == "json" {
		result.Findings = nonNil(result.Findings)
		result.APIVersions = nonNil(result.APIVersions)
		return p.printJSON(result)
	}
	t := newTable(p.out, "ASSUMPTION", "SIMULATOR", "THIS SITE", "EVIDENCE")
	for _, f := range result.Findings {
		site := f.Site
		how := string(f.How)
		if site == "" {
			site = "not probed"
			how = string(f.Reason)
		}
		if f.Detail != "" {
			how += ": " + f.Detail
		}
		t.row(f.Assumption, f.Simulator, site, how)
	}
	return t.flush()
}

// writeReport writes the report, which contains only data that users may share.
func writeReport(path string, result verifysite.Result) error {
	text, err := result.Report()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("writing --report: %w", err)
	}
	return nil
}

// cleanUpSite removes the objects that earlier runs left behind.
func (p *program) cleanUpSite(ctx context.Context, f verifyFlags) error {
	session, logout, err := p.open(ctx, request{})
	if err != nil {
		return err
	}
	defer logout()
	leftovers, hidden, err := verifysite.Leftovers(ctx, session)
	if err != nil {
		return err
	}
	for _, kind := range hidden {
		fmt.Fprintf(p.errors, "Warning: %s are not visible to the user, so some may remain\n", kind)
	}
	if len(f.runs) > 0 {
		leftovers = slices.DeleteFunc(leftovers, func(x verifysite.Leftover) bool { return !slices.Contains(f.runs, x.Run) })
	}
	if err := p.printLeftovers(leftovers); err != nil || len(leftovers) == 0 {
		return err
	}
	if f.yes && len(f.runs) == 0 {
		return errors.New("--clean-up with --yes does not ask whether a run is in progress: set --run to the runs that have ended")
	}
	if err := p.askConfirmation(ctx, f.yes, "Remove these objects? A run in progress would fail."); err != nil {
		return err
	}
	return verifysite.CleanUp(ctx, session, leftovers, verifysite.Options{Step: p.printStep})
}

func (p *program) printLeftovers(leftovers []verifysite.Leftover) error {
	if p.output == "json" {
		return p.printJSON(map[string]any{"leftovers": nonNil(leftovers)})
	}
	if len(leftovers) == 0 {
		fmt.Fprintln(p.out, "No orphaned resources found.")
		return nil
	}
	t := newTable(p.out, "RUN", "KIND", "NAME")
	for _, x := range leftovers {
		t.row(x.Run, x.Kind, x.Name)
	}
	return t.flush()
}
