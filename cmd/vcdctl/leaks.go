// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/leaks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const loginExample = `--identity tenant --org acme --context mgmt-1,mgmt-2`

func (p *program) leaksCommand() *cobra.Command {
	var without bool
	c := &cobra.Command{
		Use:   "leaks",
		Short: "List orphaned resources",
		Long: `Lists orphaned resources, grouped by cluster ID. These are objects in VCD with the marker of this provider, or with
names and metadata of VMware's CAPVCD, CPI and CSI, that belong to no VCDCluster of the management clusters in
--context. The command is read-only. List every management cluster that uses the organization: objects of other
management clusters are reported as orphaned.`,
		Example: "  " + p.name + " leaks " + loginExample,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withInventory(c.Context(), without,
				func(_ *vcd.Session, i leaks.Inventory, alive leaks.Alive) error { return p.printLeaks(i, alive) })
		},
	}
	addWithout(c, &without)
	return c
}

func addWithout(c *cobra.Command, without *bool) {
	c.Flags().BoolVar(without, "without-management-cluster", false,
		"Treat every cluster of the organization as deleted, because no management cluster exists anymore.")
}

// withInventory logs in, lists the live clusters and the objects of all clusters, and calls f.
func (p *program) withInventory(ctx context.Context, without bool, f func(*vcd.Session, leaks.Inventory, leaks.Alive) error) error {
	alive := leaks.Alive{}
	if err := p.readLiveClusters(ctx, without, alive); err != nil {
		return err
	}
	session, logout, err := p.open(ctx, request{})
	if err != nil {
		return err
	}
	defer logout()
	inventory, err := leaks.Take(ctx, session, time.Now())
	if err != nil {
		return err
	}
	p.warnOfHidden(inventory.Hidden)
	return f(session, inventory, alive)
}

// readLiveClusters lists the clusters of all selected management clusters. It returns an error if one of them does not
// respond, because its clusters would otherwise look deleted.
func (p *program) readLiveClusters(ctx context.Context, without bool, alive leaks.Alive) error {
	contexts := p.access.contexts
	switch {
	case without && len(contexts) > 0:
		return errors.New("--without-management-cluster and --context are mutually exclusive")
	case without:
		return nil
	case len(contexts) == 0:
		contexts = []string{""}
	}
	for _, name := range contexts {
		c, _, err := p.connect(name)
		if err != nil {
			return fmt.Errorf("%w; if no management cluster exists anymore, set --without-management-cluster", err)
		}
		if name == "" {
			name = "current context"
		}
		if err := alive.Add(ctx, c, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printLeaks(i leaks.Inventory, alive leaks.Alive) error {
	leftovers := i.Left(alive)
	switch {
	case p.output == "json":
		if err := p.printJSON(map[string]any{"leaks": nonNil(leftovers), "hidden": nonNil(i.Hidden)}); err != nil {
			return err
		}
	case len(leftovers) == 0 && len(i.Hidden) == 0:
		fmt.Fprintln(p.out, "No orphaned resources found.")
	case len(leftovers) > 0:
		if err := p.printObjects(leftovers, i.Taken); err != nil {
			return err
		}
	}
	switch {
	case len(leftovers) > 0:
		return errFindings
	case len(i.Hidden) > 0:
		return errors.New("some objects are not visible and may be orphaned: grant the missing rights")
	}
	return nil
}

func nonNil[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

func (p *program) printObjects(objects []leaks.Object, now time.Time) error {
	t := newTable(p.out, "CLUSTER", "KIND", "NAME", "WHERE", "POWER", "AGE", "CHANGED", "BY")
	for _, o := range objects {
		changed := age(o.Changed, now)
		if o.Changed.IsZero() {
			changed = ">24h"
		}
		t.row(o.Cluster, o.Kind, o.Name, orDash(location(o)), orDash(o.Power), age(o.Created, now), changed, string(o.By))
	}
	return t.flush()
}

// location returns where an object is: for a VM, also its vApp.
func location(o leaks.Object) string {
	if o.Kind == leaks.KindVM && o.Parent != "" {
		return o.Where + "/" + o.Parent
	}
	return o.Where
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// purgeFlags are the flags of purge.
type purgeFlags struct {
	cluster         string
	legacy, yes     bool
	confirm         string
	withoutClusters bool
	noMachines      bool
}

func (p *program) purgeCommand() *cobra.Command {
	var f purgeFlags
	c := &cobra.Command{
		Use:   "purge --cluster-id ID",
		Short: "Delete the orphaned resources of a cluster",
		Long: `Deletes the orphaned resources of a cluster that no longer exists in any management cluster. Without --yes, it only
prints the resources. With --yes, it asks you to repeat the ID; scripts pass it with --confirm.

It deletes nothing if one of these applies: the ID exists in a management cluster; a VM may be running; a resource
changed in the last 24 hours; a named disk is attached to a VM; a vApp contains VMs of other owners; a VM is in a vApp
without the ID, or has the marker of another VM, and so may be a copy; VMware's CAPVCD, CPI or CSE created a resource
and --legacy is not set; or no vApp and no VM has the ID, or members of its load balancers respond, and --no-machines
is not set. Named disks, and entities to which an existing cluster refers, are never deleted.`,
		Example: strings.ReplaceAll(`  vcdctl purge --cluster-id 7a0e… `+loginExample+`
  vcdctl purge --cluster-id 7a0e… --yes `+loginExample, "vcdctl", p.name),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.purge(c.Context(), f) },
	}
	c.Flags().StringVar(&f.cluster, "cluster-id", "", "ID of the cluster, as printed by leaks.")
	c.Flags().BoolVar(&f.yes, "yes", false, "Delete the resources after you repeat the ID.")
	c.Flags().StringVar(&f.confirm, "confirm", "", "Repeated ID, for scripts.")
	c.Flags().BoolVar(&f.legacy, "legacy", false, "Also delete objects that VMware's CAPVCD, CPI and CSE created.")
	c.Flags().BoolVar(&f.noMachines, "no-machines", false,
		"Confirmation that no VM runs for this ID; required if no vApp and no VM has it, or if members of its load balancers respond.")
	addWithout(c, &f.withoutClusters)
	_ = c.MarkFlagRequired("cluster-id")
	return c
}

func (p *program) purge(ctx context.Context, f purgeFlags) error {
	return p.withInventory(ctx, f.withoutClusters, func(s *vcd.Session, i leaks.Inventory, alive leaks.Alive) error {
		options := leaks.Options{
			Cluster:    f.cluster,
			Legacy:     f.legacy,
			NoMachines: f.noMachines,
			Alive:      alive,
			Step:       func(what string) { fmt.Fprintln(p.errors, "Deleting", printable(what)) },
		}
		plan := i.Plan(options)
		if err := p.printPlan(plan, i.Taken); err != nil {
			return err
		}
		switch {
		case len(plan.Refusals) > 0:
			return errFindings
		case !f.yes:
			fmt.Fprintln(p.errors, "Nothing was deleted. Set --yes to delete these resources.")
			return nil
		case len(i.Hidden) > 0:
			return errors.New("some objects are not visible, so they cannot be deleted: grant the missing rights first")
		}
		if err := p.confirm(ctx, f); err != nil {
			return err
		}
		return p.purgeConfirmed(ctx, s, f, options, plan)
	})
}

// purgeConfirmed executes the confirmed plan, unless the resources changed while the user was confirming it.
func (p *program) purgeConfirmed(ctx context.Context, s *vcd.Session, f purgeFlags, options leaks.Options, shown leaks.Plan) error {
	options.Alive = leaks.Alive{}
	if err := p.readLiveClusters(ctx, f.withoutClusters, options.Alive); err != nil {
		return err
	}
	i, err := leaks.Take(ctx, s, time.Now())
	if err != nil {
		return err
	}
	if now := i.Plan(options); len(i.Hidden) > 0 || !now.Same(shown) {
		return errors.New("the resources changed after they were listed, so nothing was deleted: run purge again")
	}
	if err := i.Purge(ctx, s, options); err != nil {
		return err
	}
	left, err := leaks.Take(ctx, s, time.Now())
	if err != nil {
		return err
	}
	return remaining(left.Plan(options).Delete)
}

// remaining returns an error if objects exist that a purge should have deleted, such as IP sets of an edge gateway that is
// not visible.
func remaining(objects []leaks.Object) error {
	if len(objects) == 0 {
		return nil
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.Kind+" "+o.Name)
	}
	return fmt.Errorf("VCD still has %s: run purge again, or delete them in VCD", strings.Join(names, ", "))
}

func (p *program) printPlan(plan leaks.Plan, now time.Time) error {
	if p.output == "json" {
		return p.printJSON(leaks.Plan{
			Delete:   nonNil(plan.Delete),
			Keep:     nonNil(plan.Keep),
			Refusals: nonNil(plan.Refusals),
		})
	}
	for _, why := range plan.Refusals {
		fmt.Fprintln(p.out, "REFUSED ", printable(why))
	}
	if len(plan.Refusals) > 0 {
		return nil
	}
	if err := p.printObjects(plan.Delete, now); err != nil || len(plan.Keep) == 0 {
		return err
	}
	fmt.Fprintln(p.out, "\nThese are kept:")
	return p.printObjects(plan.Keep, now)
}

// confirm requests that the user types the ID of the cluster. Without a terminal it returns an error.
func (p *program) confirm(ctx context.Context, f purgeFlags) error {
	typed := f.confirm
	if typed == "" {
		if !p.interactive() {
			return errors.New("cannot ask for confirmation because the input is not a terminal: set --confirm to the ID of the cluster")
		}
		var err error
		if typed, err = p.ask(ctx, "To delete all of the above, type the ID of the cluster: "); err != nil {
			return err
		}
	}
	if typed != f.cluster {
		return errors.New("the ID does not match: nothing was deleted")
	}
	return nil
}

// kindOrder is the order of kinds in a tree.
var kindOrder = []string{
	leaks.KindVApp, leaks.KindVM, leaks.KindDisk, "virtual-service", "lb-pool", "dnat-rule", "app-port-profile",
	"ip-allocation", "ip-set", "certificate", "firewall-rule", leaks.KindEntity,
}

func byKind(a, b leaks.Object) int {
	return slices.Index(kindOrder, a.Kind) - slices.Index(kindOrder, b.Kind)
}
