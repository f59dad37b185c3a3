// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileVApp makes sure that the vApp exists and belongs to the cluster. It creates a missing vApp together with the
// VMs that wait for it.
func reconcileVApp(ctx context.Context, s *scope) (out phases.Result, err error) {
	t := newTasks(s)
	for _, what := range []step{stepCompose, stepConnect, stepCleanUp} {
		if out, _ := t.settle(what); out != phases.Done {
			return out, nil
		}
	}
	if s.inputs.vmID() == "" {
		// While the VM is being added, or its creation is delayed, there is nothing to observe. reconcileVM reports why.
		if s.creation.pending, _ = t.settle(stepAdd); s.creation.pending != phases.Done {
			return phases.Done, nil
		}
	}
	s.creation.found, out, err = newObserver(s).observe(ctx)
	if err != nil || out != phases.Done || s.inputs.vmID() != "" || len(s.creation.found) > 0 {
		return out, err
	}
	c := newCreator(s)
	if out := c.layout.ownProblem(ctx); out != phases.Done {
		return out, nil
	}
	return c.prepareVApp(ctx)
}

// prepareVApp begins a batch, reads the vApp, and takes the next step towards a vApp to which VMs can be added.
func (c creator) prepareVApp(ctx context.Context) (phases.Result, error) {
	name := c.inputs.vAppName()
	mine := c.member()
	if left := c.gather(); left > 0 && !mine.Alone {
		c.tasks.queues.Join(c.inputs.batchKey(), mine)
		c.pass.joined = true
		return vAppShared(left, name), nil
	}
	if left := c.tasks.queues.Postponed(c.inputs.batchKey(), mine.Key, c.now()); left > 0 {
		c.pass.joined = true
		return vAppBusy(left, name), nil
	}
	current, ok := c.tasks.queues.Begin(c.inputs.batchKey(), mine, c.now())
	if !ok {
		c.pass.joined = true
		return vAppShared(intervals.Task, name), nil
	}
	c.pass.current = current
	vApp, err := c.session.FindVApp(ctx, c.vdc, name)
	if errors.Is(err, vcd.ErrNotFound) {
		return c.compose(ctx, name)
	}
	if err != nil {
		return problems.OfRead(err, "Reading vApp "+name)
	}
	return c.useVApp(ctx, vApp)
}

// useVApp takes the next step towards a vApp to which VMs can be added, unless the VM already exists in it.
func (c creator) useVApp(ctx context.Context, vApp vcd.VApp) (phases.Result, error) {
	switch out, err := c.layout.problem(ctx, vApp); {
	case err != nil:
		return phases.Done, err
	case out.Reason == infrav1.NameConflictReason && c.inputs.vAppNumber() > 1:
		return c.layout.next(ctx, vApp.Name+" belongs to another owner")
	case out.Reason == infrav1.EntityBusyReason:
		c.pass.postpone(c.now().Add(out.After))
		return out, nil
	case out != phases.Done:
		return out, nil
	}
	c.pass.vApp = &vApp
	for _, vm := range vApp.VMs {
		if vm.Name == c.inputs.vcdMachine.Spec.RecordedState.VMName {
			c.pass.found = append(c.pass.found, vm)
		}
	}
	if len(c.pass.found) > 0 {
		return phases.Done, nil
	}
	return c.makeRoom(ctx, vApp)
}

// makeRoom takes the next step towards a vApp to which the machine's VM can be added.
func (c creator) makeRoom(ctx context.Context, vApp vcd.VApp) (phases.Result, error) {
	switch {
	case failedCreation(vApp.Status) && len(vApp.VMs) == 0:
		return c.leftovers.cleanUpVApp(ctx, vApp)
	case c.room() <= 0:
		return c.layout.next(ctx, vApp.Name+" is full")
	}
	return c.connect(ctx, vApp)
}

// compose requests a vApp with the VMs that wait for it.
func (c creator) compose(ctx context.Context, name string) (phases.Result, error) {
	marker := c.inputs.marker()
	if !vapp.PerMachine(c.inputs.vcdCluster) {
		marker.Machine = ""
	}
	ours, err := c.batch(ctx, c.whileRoom(c.design.sameNetworks))
	if err != nil {
		return phases.Done, err
	}
	if err := c.layout.records.forgetVAppMetadata(ctx); err != nil {
		return phases.Done, err
	}
	ctrl.LoggerFrom(ctx).Info("Creating vApp", "vApp", name, "vms", len(ours))
	spec := vcd.VAppSpec{Name: name, Description: marker.String(), Networks: c.design.networks(), VMs: specs(ours)}
	_, task, err := c.session.ComposeVApp(ctx, c.vdc, spec)
	if err != nil {
		return c.refused(ctx, stepCompose, ours, err)
	}
	c.tasks.followAll(stepCompose, task, ours)
	return running(stepCompose), nil
}

// connect connects the machine's networks to the vApp, unless they are connected.
func (c creator) connect(ctx context.Context, vApp vcd.VApp) (phases.Result, error) {
	var missing []vcd.Ref
	for _, ref := range c.design.networks() {
		if !slices.Contains(vApp.Networks, ref.Name) {
			missing = append(missing, ref)
		}
	}
	if len(missing) == 0 {
		return phases.Done, nil
	}
	task, err := c.session.ConnectNetworks(ctx, vApp.ID, missing)
	if err != nil {
		return c.tasks.failedRequest(stepConnect, err)
	}
	c.tasks.followAll(stepConnect, task, nil)
	return running(stepConnect), nil
}
