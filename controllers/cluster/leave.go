// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// leave ends the removal of load balancers, as a person wishes. An event lists what is left, as far as VCD
// shows it now; the deletion does not wait for that.
func (s balancers) leave(ctx context.Context) (phases.Outcome, error) {
	p := s.purge()
	if p.isOver() {
		return phases.Done, nil
	}
	on, out, err := s.reach(ctx)
	unasked := "on " + gatewaysOf(recordedGateways(s.scope.vcdCluster)).name + ", which cannot be asked: "
	switch {
	case ctx.Err() != nil:
		return out, err
	case err != nil:
		p.leave(s.scope, unasked+err.Error())
		return phases.Done, nil //nolint:nilerr // the event has it; a person wants no wait for VCD
	case out != phases.Done:
		p.leave(s.scope, unasked+out.Message)
		return phases.Done, nil
	case on.name == "":
		return phases.Done, nil
	}
	return p.list(ctx, s.scope, on), nil
}

func (p *purge) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// leave ends the removal with an event; where says what may be left.
func (p *purge) leave(s *scope, where string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	balancersLeft(s.reconciler.Recorder, s.vcdCluster, where)
}

// list lists what is left beside reconciles, once, and ends the removal.
func (p *purge) list(ctx context.Context, s *scope, on gateways) phases.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.running:
		return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason,
			"Listing load balancers of the cluster that are left on %s", on.name)
	case !p.listed:
		p.listed = true
		cluster := s.vcdCluster.Spec.InfraID
		driver := s.session.Balancers()
		p.run(ctx, s, func(ctx context.Context) {
			remains, err := remainsOn(ctx, driver, on, cluster)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.running = false
			p.remains = remains
			p.err = err
		})
		return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason,
			"Listing load balancers of the cluster that are left on %s", on.name)
	}
	p.over = true
	if len(p.remains) > 0 || p.err != nil {
		where := "on " + on.name + ": " + strings.Join(p.remains, ", ")
		if p.err != nil {
			where += fmt.Sprintf(" (not all can be listed: %v)", p.err)
		}
		balancersLeft(s.reconciler.Recorder, s.vcdCluster, where)
	}
	return phases.Done
}

// A lister lists what a cluster has on a gateway.
type lister interface {
	Remains(ctx context.Context, gateway, cluster string) ([]string, error)
}

// remainsOn lists what a cluster has on some gateways, as far as that is shown.
func remainsOn(ctx context.Context, driver lister, on gateways, cluster string) ([]string, error) {
	all := []string{}
	failed := on.lost
	for _, id := range on.ids {
		found, err := driver.Remains(ctx, id, cluster)
		all = append(all, found...)
		if failed == nil {
			failed = err
		}
	}
	return all, failed
}

// deleteAffinityRules makes sure that the anti-affinity rules of the cluster are gone. Most went with its machines.
// A person who leaves the vApp leaves them, too, if VCD does not let them go.
func deleteAffinityRules(ctx context.Context, s *scope) (phases.Outcome, error) {
	access := affinity.Access{Client: s.reconciler.Client, Identities: s.reconciler.Identities, Sessions: s.reconciler.Sessions}
	out, err := affinity.RemoveAll(ctx, access, s.vcdCluster, s.reconciler.wakeUps.ForObject(s.vcdCluster))
	switch {
	case errors.Is(err, vcd.ErrLater) || ctx.Err() != nil: // Ends by itself.
	case vapp.IsKept(s.vcdCluster) && (err != nil || out.Problem):
		return phases.Done, nil //nolint:nilerr // a person who leaves the vApp leaves the rules, too
	case out.Problem:
		out.Message += ". To leave rules in VCD, annotate the VCDCluster with " + infrav1.KeepVAppAnnotation + "=true"
	}
	return out, err
}

// waitForMachines waits until no VCDMachine of the cluster remains.
func (s *scope) waitForMachines(ctx context.Context) (phases.Outcome, error) {
	name := session.ClusterName(s.vcdCluster, s.cluster)
	if name == "" {
		return phases.Done, nil
	}
	machines := &infrav1.VCDMachineList{}
	if err := s.reconciler.Client.List(ctx, machines, client.InNamespace(s.vcdCluster.Namespace),
		session.OfCluster(name)); err != nil {
		return phases.Done, fmt.Errorf("listing VCDMachines: %w", err)
	}
	if len(machines.Items) == 0 {
		return phases.Done, nil
	}
	names := make([]string, 0, len(machines.Items))
	for _, m := range machines.Items {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return phases.Wait(session.TaskPoll, infrav1.MachinesRemainReason, "Waiting for VCDMachines to be deleted: %s",
		phases.Few(names)), nil
}

// releaseCluster frees the claimed address and lets the API server delete the VCDCluster.
func releaseCluster(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	all, err := s.duplicates(ctx)
	if err == nil {
		err = s.freeAddresses(ctx, len(all) > 0)
	}
	switch {
	case err != nil:
		return phases.Done, err
	case len(all) > 0:
		leftToDuplicate(s.reconciler.Recorder, c)
	default:
		if disks := s.remainingDisks(ctx); len(disks) > 0 {
			disksLeft(s.reconciler.Recorder, c, disks)
		}
	}
	s.reconciler.Drivers.Forget(s.cluster)
	s.reconciler.purges.Drop(c.UID)
	s.reconciler.endpoints.Drop(c.UID)
	s.reconciler.Endpoints.Forget(c.UID)
	s.reconciler.homes.Drop(c.UID)
	controllerutil.RemoveFinalizer(c, infrav1.ClusterFinalizer)
	return phases.Done, nil
}
