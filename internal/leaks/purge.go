// SPDX-License-Identifier: Apache-2.0

package leaks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// taskTimeout limits the wait for one task.
const taskTimeout = 15 * time.Minute

// Options configure a purge.
type Options struct {
	Cluster string
	Legacy  bool // also delete objects that CAPVCD, CPI and CSE created
	// NoMachines confirms that a cluster has no running VMs if none of its vApps and VMs are visible, or if members of its
	// load balancers respond.
	NoMachines bool
	Alive      Alive
	// Step, if not nil, is called before each deletion.
	Step func(what string)
}

// A Plan lists the objects that a purge deletes and those that it keeps.
type Plan struct {
	Delete   []Object `json:"delete"`
	Keep     []Object `json:"keep"`     // never deleted by a purge
	Refusals []string `json:"refusals"` // reasons why nothing is deleted
}

// Plan returns the plan for the purge of a cluster. A plan with refusals deletes nothing.
func (i Inventory) Plan(o Options) Plan {
	var p Plan
	refuse := func(format string, args ...any) { p.Refusals = append(p.Refusals, fmt.Sprintf(format, args...)) }
	if where := o.Alive[o.Cluster]; where != "" {
		refuse("the cluster exists in management cluster %s: delete it there", where)
	}
	of := i.Of(o.Cluster)
	for _, x := range of {
		if x.Kind == KindDisk || x.Kind == KindEntity && o.Alive.Has(x.ID) {
			p.Keep = append(p.Keep, x)
			continue
		}
		if x.By != lb.WriterThis && !o.Legacy {
			refuse("%s %s was created by %s: set --legacy to delete it", x.Kind, x.Name, x.By)
		}
		p.Refusals = append(p.Refusals, x.refusals(i.Taken)...)
		p.Delete = append(p.Delete, x)
	}
	p.Refusals = append(p.Refusals, attachedDisks(of)...)
	p.Refusals = append(p.Refusals, copies(of)...)
	switch {
	case len(of) == 0:
		refuse("no object in VCD has this ID")
	case o.NoMachines:
	case answers(p.Delete):
		refuse("members of its load balancers respond, so nodes may run that are not visible: set --no-machines to confirm that none run")
	case len(p.Delete) > 0 && !slices.ContainsFunc(p.Delete, isMachine):
		refuse("no vApp and no VM has this ID, but another tool may have created its nodes: set --no-machines to confirm that none run")
	}
	return p
}

// attachedDisks returns a reason for each named disk that a VM uses which is not visible. Such a VM may be a running node.
func attachedDisks(objects []Object) []string {
	var why []string
	for _, x := range objects {
		visible := func(vm Object) bool { return slices.Contains(vm.disks, x.Name) }
		if x.Kind == KindDisk && x.Power == attached && !slices.ContainsFunc(objects, visible) {
			why = append(why, fmt.Sprintf("named disk %s is attached to a VM that is not visible: detach it in VCD", x.Name))
		}
	}
	return why
}

// copies returns the reasons why VMs of a cluster cannot be deleted because a person may have copied or moved them. VCD
// copies the description of a VM, and with it the marker.
func copies(objects []Object) []string {
	var why []string
	first := map[string]Object{} // VMs by UID of their machine
	for _, x := range objects {
		if x.Kind != KindVM {
			continue
		}
		inCluster := func(o Object) bool { return o.Kind == KindVApp && o.ID == x.parentID }
		if !slices.ContainsFunc(objects, inCluster) {
			why = append(why, fmt.Sprintf("VM %s is in vApp %s, which does not have this ID: delete the VM in VCD, or remove the marker from its description", x.Name, x.Parent))
		}
		if other, ok := first[x.machine]; ok && x.machine != "" {
			why = append(why, fmt.Sprintf("VMs %s and %s have the same marker, so one is a copy: delete the copy in VCD", other.Name, x.Name))
		}
		first[x.machine] = x
	}
	return why
}

// answers reports whether members of a load balancer respond, which means that nodes are running.
func answers(objects []Object) bool {
	return slices.ContainsFunc(objects, func(x Object) bool { return x.health == serving })
}

func isMachine(x Object) bool { return x.Kind == KindVApp || x.Kind == KindVM }

// Same reports whether two plans delete and keep the same objects and have the same refusals.
func (p Plan) Same(other Plan) bool {
	same := func(a, b []Object) bool {
		return slices.EqualFunc(a, b, func(x, y Object) bool { return x.ID == y.ID && x.Power == y.Power })
	}
	return same(p.Delete, other.Delete) && same(p.Keep, other.Keep) && slices.Equal(p.Refusals, other.Refusals)
}

// refusals returns the reasons why an object cannot be deleted, independently of the program that created it.
func (x Object) refusals(now time.Time) []string {
	var why []string
	if x.maybeRunning {
		why = append(why, fmt.Sprintf("VM %s is %s: power it off in VCD", x.Name, x.Power))
	}
	if !x.Changed.IsZero() && now.Sub(x.Changed) < window {
		why = append(why, fmt.Sprintf("%s %s changed %s ago: wait until its last change is 24 hours old", x.Kind, x.Name,
			now.Sub(x.Changed).Round(time.Minute)))
	}
	if len(x.disks) > 0 {
		why = append(why, fmt.Sprintf("named disks are attached to VM %s: detach %s in VCD", x.Name,
			strings.Join(x.disks, ", ")))
	}
	if len(x.foreignVMs) > 0 {
		why = append(why, fmt.Sprintf("vApp %s has VMs of other owners: move or delete %s", x.Name,
			strings.Join(x.foreignVMs, ", ")))
	}
	return why
}

// ErrRefused means that a purge may not delete anything.
var ErrRefused = errors.New("refused")

// Purge deletes the objects in the plan of a cluster and waits for VCD. It is safe to retry after a failure with a new
// inventory, which contains the remaining objects.
func (i Inventory) Purge(ctx context.Context, s *vcd.Session, o Options) error {
	plan := i.Plan(o)
	if len(plan.Refusals) > 0 {
		return fmt.Errorf("%w: %s", ErrRefused, strings.Join(plan.Refusals, "; "))
	}
	if o.Step == nil {
		o.Step = func(string) {}
	}
	p := purge{Options: o, session: s, plan: plan}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return p.balancers(ctx, i.gateways) },
		p.floatingIPs,
		p.vApps,
		p.entities,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

type purge struct {
	Options

	session *vcd.Session
	plan    Plan
}

// balancers removes objects on edge gateways, and the related objects of the organization.
func (p purge) balancers(ctx context.Context, gateways []string) error {
	if !slices.ContainsFunc(p.plan.Delete, func(x Object) bool { return x.gateway != "" }) {
		return nil
	}
	driver := driverOf(p.session)
	nat := slices.ContainsFunc(p.plan.Delete, func(x Object) bool { return x.Kind == string(lb.KindRule) })
	for _, gateway := range gateways {
		err := driver.Purge(ctx, gateway, edge.PurgeOptions{
			Cluster:  p.Cluster,
			NAT:      nat,
			Only:     p.may,
			Thorough: len(p.of(string(lb.KindMonitor))) > 0,
			Before: func(_ context.Context, _ loadbalancer.Owner, step lb.Step) error {
				p.Step(string(step.Kind) + " " + step.Name)
				return nil
			},
		})
		if err != nil {
			return fmt.Errorf("removing load balancers: %w", err)
		}
	}
	return nil
}

// floatingIPs releases addresses of IP Spaces that no gateway lists. It reads each again first.
func (p purge) floatingIPs(ctx context.Context) error {
	for _, x := range p.of(string(lb.KindAddress)) {
		if x.space == "" {
			continue
		}
		p.Step(x.Kind + " " + x.Name)
		mark := func() (vcd.Task, error) {
			return p.session.IPSpaces.Mark(ctx, x.space, x.ID, func(now vcd.FloatingIP) (vcd.UsageState, string, error) {
				if cluster, _ := lb.ClusterOf(lb.KindAddress, "", now.Description); cluster != p.Cluster || now.Usage == vcd.Used {
					return "", "", fmt.Errorf("%w: address %s changed in the meantime", ErrRefused, x.Name)
				}
				return vcd.Unused, now.Description, nil
			})
		}
		release := func() (vcd.Task, error) { return p.session.IPSpaces.Release(ctx, x.space, x.ID) }
		for _, start := range []func() (vcd.Task, error){mark, release} {
			if err := p.await(ctx, x, start); err != nil {
				return err
			}
		}
	}
	return nil
}

// may reports whether load balancers of an owner may be deleted. Without a UID, VMware's CPI created them.
func (p purge) may(owner loadbalancer.Owner) bool {
	return p.Legacy || owner.UID != "" || owner.Name == ""
}

func (p purge) of(kind string) []Object {
	return slices.DeleteFunc(slices.Clone(p.plan.Delete), func(x Object) bool { return x.Kind != kind })
}

// vApps deletes vApps with their VMs. It reads both again first.
func (p purge) vApps(ctx context.Context) error {
	for _, x := range p.of(KindVApp) {
		for {
			gone, err := p.vApp(ctx, x)
			if err != nil {
				return err
			}
			if gone {
				break
			}
		}
	}
	return nil
}

// vApp takes the next step in the deletion of a vApp. The vApp is undeployed first.
func (p purge) vApp(ctx context.Context, x Object) (gone bool, err error) {
	now, err := p.session.VApps.Details(ctx, x.ID)
	if errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrForbidden) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading vApp %s: %w", x.Name, err)
	}
	for _, vm := range now.Children {
		owner, _ := ownerOfVM(vm, p.Cluster, x.By)
		if owner != p.Cluster || maybeRunning(vm.Status) || len(vm.IndependentDisks()) > 0 {
			return false, fmt.Errorf("%w: vApp %s changed in the meantime: VM %s", ErrRefused, x.Name, vm.Name)
		}
	}
	p.Step("vapp " + x.Name)
	return false, p.await(ctx, x, func() (vcd.Task, error) { return p.session.VApps.DeleteVApp(ctx, x.ID) })
}

func (p purge) entities(ctx context.Context) error {
	for _, x := range p.of(KindEntity) {
		p.Step("entity " + x.Name)
		if err := vcd.IgnoreNotFound(p.session.Entities.Delete(ctx, x.ID)); err != nil {
			return err
		}
	}
	return nil
}

// await starts a task and waits until it has finished. It ignores objects that no longer exist.
func (p purge) await(ctx context.Context, x Object, start func() (vcd.Task, error)) error {
	task, err := start()
	if errors.Is(err, vcd.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", x.Kind, x.Name, err)
	}
	ended, err := p.session.Tasks.Wait(ctx, task, time.After(taskTimeout))
	switch {
	case err != nil:
		return fmt.Errorf("waiting for the deletion of %s %s: %w", x.Kind, x.Name, err)
	case ended.State == vcd.TaskFailed:
		return fmt.Errorf("deleting %s %s: %w", x.Kind, x.Name, ended.Err)
	case ended.State != vcd.TaskSucceeded:
		return fmt.Errorf("deleting %s %s: its task did not finish: %s", x.Kind, x.Name, ended.ID)
	}
	return nil
}
