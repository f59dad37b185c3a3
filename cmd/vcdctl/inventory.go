// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/leaks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func (p *program) inventoryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inventory CLUSTER",
		Short: "Show all objects of a cluster in VCD",
		Long: `Shows all objects of a cluster in VCD as a tree: vApps, VMs, named disks, virtual services, pools, NAT rules,
addresses, IP sets and its entity. It marks differences from the management cluster: VMs without a VCDMachine,
VCDMachines without a VM, and VMs that are not running. It also marks inconsistencies on edge gateways: virtual
services that are not up, unused pools, NAT rules without a target, and pool members without a VM. CLUSTER is the
name of a VCDCluster in --namespace.`,
		Example: "  " + p.name + " inventory demo -n team-a",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return p.inventory(c.Context(), args[0]) },
	}
}

// A branch is an object with its drift.
type branch struct {
	leaks.Object

	Drift string `json:"drift,omitempty"`
}

func (p *program) inventory(ctx context.Context, name string) error {
	c, machines, err := p.readCluster(ctx, name)
	if err != nil {
		return err
	}
	session, logout, err := p.open(ctx, request{
		namespace: c.Namespace,
		site:      c.Spec.Site,
		org:       c.Spec.Org,
		ref:       c.Spec.IdentityRef,
	})
	if err != nil {
		return err
	}
	defer logout()
	if c.Spec.InfraID == "" {
		return errors.New("the VCDCluster has no spec.infraID yet, so it has no objects in VCD")
	}
	taken, err := leaks.Take(ctx, session, time.Now())
	if err != nil {
		return err
	}
	p.warnOfHidden(taken.Hidden)
	objects := taken.Of(c.Spec.InfraID)
	drift, err := leaks.Drift(ctx, session, objects)
	if err != nil {
		return err
	}
	return p.printInventory(c, mark(objects, machines, drift), taken.Hidden)
}

// printInventory prints the objects of a cluster. It returns errFindings if an object is marked, and another error if
// some objects are hidden.
func (p *program) printInventory(c *infrav1.VCDCluster, branches []branch, hidden []string) error {
	if p.output == "json" {
		if err := p.printJSON(map[string]any{
			"cluster": c.Namespace + "/" + c.Name,
			"id":      c.Spec.InfraID,
			"objects": nonNil(branches),
			"hidden":  nonNil(hidden),
		}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(p.out, "%s/%s (%s)\n", c.Namespace, c.Name, c.Spec.InfraID)
		p.printTree(branches)
	}
	switch {
	case len(hidden) > 0:
		return errors.New("the inventory is incomplete because some objects are not visible: grant the missing rights")
	case slices.ContainsFunc(branches, func(b branch) bool { return b.Drift != "" }):
		return errFindings
	}
	return nil
}

// readCluster returns a VCDCluster and its VCDMachines.
func (p *program) readCluster(ctx context.Context, name string) (*infrav1.VCDCluster, []infrav1.VCDMachine, error) {
	management, namespace, err := p.connect(first(p.access.contexts))
	if err != nil {
		return nil, nil, err
	}
	c := &infrav1.VCDCluster{}
	key := client.ObjectKey{Namespace: cmp.Or(p.access.namespace, namespace), Name: name}
	if err := management.Get(ctx, key, c); err != nil {
		return nil, nil, fmt.Errorf("getting VCDCluster %s: %w", key, err)
	}
	owner := name
	for _, ref := range c.OwnerReferences {
		if ref.Kind == "Cluster" {
			owner = ref.Name
		}
	}
	list := &infrav1.VCDMachineList{}
	if err := management.List(ctx, list, client.InNamespace(key.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: owner}); err != nil {
		return nil, nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	return c, list.Items, nil
}

// mark compares the objects in VCD with the machines. drift contains known drift by URN.
func mark(objects []leaks.Object, machines []infrav1.VCDMachine, drift map[string]string) []branch {
	byVM := map[string]string{} // names of VCDMachines by URN of the VM
	for _, m := range machines {
		if m.Status.VM != nil {
			byVM[m.Status.VM.ID] = m.Name
		} else if _, id, ok := strings.Cut(m.Spec.ProviderID, "://"); ok {
			byVM[id] = m.Name
		}
	}
	var branches []branch
	for _, o := range objects {
		b := branch{Object: o, Drift: drift[o.ID]}
		if o.Kind == leaks.KindVM {
			switch machine := byVM[o.ID]; {
			case machine == "":
				b.Drift = "no VCDMachine"
			case o.Power != vcd.StatusPoweredOn.String():
				b.Drift = "not running"
			}
			delete(byVM, o.ID)
		}
		branches = append(branches, b)
	}
	for id, machine := range byVM {
		branches = append(branches, branch{
			Object: leaks.Object{Kind: leaks.KindVM, Name: machine, ID: id},
			Drift:  "not in VCD, or not visible",
		})
	}
	slices.SortStableFunc(branches, func(a, b branch) int {
		return cmp.Or(byKind(a.Object, b.Object), cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Name, b.Name))
	})
	return branches
}

// printTree prints objects by kind, with VMs below their vApps.
func (p *program) printTree(branches []branch) {
	if len(branches) == 0 {
		fmt.Fprintln(p.out, "└─ nothing")
		return
	}
	roots, children := groupByVApp(branches)
	for i, b := range roots {
		last := i == len(roots)-1
		p.printBranch("", b, last)
		if b.Kind == leaks.KindVApp {
			p.printVMs(children[home{name: b.Name, vdc: b.Where}], last)
		}
	}
}

// printVMs prints the VMs of a vApp. last reports whether the vApp is the last branch of the root.
func (p *program) printVMs(vms []branch, last bool) {
	indent := "│  "
	if last {
		indent = "   "
	}
	for i, vm := range vms {
		p.printBranch(indent, vm, i == len(vms)-1)
	}
}

// A home is a vApp by its name and VDC. Two VDCs may have vApps with the same name.
type home struct{ name, vdc string }

// groupByVApp returns the branches at the root, and the VMs by their vApp.
func groupByVApp(branches []branch) (roots []branch, children map[home][]branch) {
	children = map[home][]branch{}
	for _, b := range branches {
		if b.Kind == leaks.KindVM && b.Parent != "" {
			in := home{name: b.Parent, vdc: b.Where}
			children[in] = append(children[in], b)
		} else {
			roots = append(roots, b)
		}
	}
	for parent, below := range children {
		isParent := func(b branch) bool { return b.Kind == leaks.KindVApp && parent == home{name: b.Name, vdc: b.Where} }
		if !slices.ContainsFunc(roots, isParent) {
			roots = append(roots, below...) // their vApp belongs to others
			delete(children, parent)
		}
	}
	return roots, children
}

func (p *program) printBranch(indent string, b branch, last bool) {
	mark := "├─ "
	if last {
		mark = "└─ "
	}
	words := []string{b.Kind, b.Name}
	for _, more := range []string{b.Power, strings.Join(b.Addresses, " "), b.Where} {
		if more != "" && more != b.Name {
			words = append(words, more)
		}
	}
	if b.Drift != "" {
		words = append(words, "← "+b.Drift)
	}
	fmt.Fprintln(p.out, indent+mark+printable(strings.Join(words, "  ")))
}
