package machine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// lostVM is the VM of a machine that VCD may not show, be the machine in use or being deleted.
type lostVM struct {
	*scope

	id   string // URN; empty: its creation was requested, and none is recorded
	name string // in messages
}

func newLost(s *scope, id string) *lostVM {
	return &lostVM{scope: s, id: id, name: "VM " + cmp.Or(id, s.vcdMachine.Annotations[infrav1.VMNameAnnotation])}
}

// find returns the VM, or nil and [phases.Done] if it is gone.
func (l *lostVM) find(ctx context.Context) (*vcd.VM, phases.Outcome, error) {
	siblings, err := l.siblings(ctx)
	if err != nil {
		return nil, phases.Done, err
	}
	where := vcd.Lost{
		ID: l.id, VDCs: []string{l.placement.vdc.ID}, VApp: l.madeIn(), VAppName: l.vAppName(), Cluster: l.vcdCluster.Spec.InfraID, Siblings: siblings,
	}
	if last := l.vcdMachine.Status.VApp; last != nil {
		where.VApp = last.ID
	}
	vm, seen, err := l.session.FindLost(ctx, where)
	if err != nil {
		out, err := session.Refusal(err, "Looking for "+l.name)
		return nil, out, err
	}
	if seen.Shown {
		absence.Forget(l.vcdMachine)
		return &vm, phases.Done, nil
	}
	out, err := l.decide(ctx, gone.Evidence(seen))
	return nil, out, err
}

// siblings returns the URNs of the VMs of the cluster's other machines.
func (l *lostVM) siblings(ctx context.Context) ([]string, error) {
	list := &infrav1.VCDMachineList{}
	cluster := session.OfCluster(session.ClusterName(l.vcdCluster, l.cluster))
	if err := l.Client.List(ctx, list, client.InNamespace(l.vcdMachine.Namespace), cluster); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	var ids []string
	for _, m := range list.Items {
		if id, err := providerid.Parse(m.Spec.ProviderID); err == nil && m.UID != l.vcdMachine.UID {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// decide decides whether the VM is gone, and writes down what later decisions need to know.
func (l *lostVM) decide(ctx context.Context, evidence gone.Evidence) (phases.Outcome, error) {
	m, now := l.vcdMachine, l.now()
	me, _ := missingOf(m, m.Namespace+"/"+session.ClusterName(l.vcdCluster, l.cluster))
	subject := gone.Subject{
		Missing: me, Evidence: evidence, Unrecorded: l.id == "", Observed: l.state.missing.since,
		DeleteRequested: m.Annotations[infrav1.DeleteRequestedAnnotation] != "",
	}
	subject.Born, _ = time.Parse(time.RFC3339, m.Annotations[infrav1.PoweredOnAnnotation]) // zero: long ago
	if subject.Unrecorded {
		return l.report(ctx, gone.Decide(now, subject, nil), &site{})
	}
	around, err := l.site(ctx, me)
	if err != nil {
		return phases.Done, err
	}
	return l.report(ctx, gone.Decide(now, subject, &around.Site), around)
}

// report turns a verdict into an outcome.
func (l *lostVM) report(ctx context.Context, v gone.Verdict, around *site) (phases.Outcome, error) {
	if absence.Note(l.vcdMachine, v, l.now()) {
		l.state.missing.since = l.now()
	}
	switch v.State {
	case gone.Gone:
		return phases.Done, l.declareGone(ctx, around)
	case gone.Stopped:
		return l.stopSite(ctx)
	case gone.HeldBack:
		return phases.Unsure(min(v.After, session.RemedyPoll), infrav1.GoneHeldBackReason,
			"%s is missing, as are more than a third of the cluster's %d VMs: they count as gone after ten minutes, one by one. If this one is, annotate the VCDMachine with %s=true",
			l.name, around.Machines, infrav1.VMGoneAnnotation), nil
	case gone.Waiting:
		if v.Reason == gone.Once {
			return absence.Once(v, infrav1.VMUnverifiedReason, l.name), nil
		}
		l.askNeighbors(around)
		return phases.Unsure(v.After, infrav1.VMUnverifiedReason, "%s is missing: other clusters of the site are checked first", l.name), nil
	}
	return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason, "%s", l.explain(v.Reason)), nil
}

// explain says why the evidence proves nothing, and what to do about it.
func (l *lostVM) explain(why gone.Reason) string {
	switch why {
	case gone.Listed, gone.HeldByHome:
		return "VCD lists " + l.name + " and does not show it: grant its user access to it"
	case gone.Unlogged:
		return fmt.Sprintf(
			"Neither %s is shown nor any of the tasks that made it, less than a day ago: was VCD set back to an earlier state? If the VM is gone, annotate the VCDMachine with %s=true",
			l.name, infrav1.VMGoneAnnotation)
	}
	hidden := map[gone.Reason]string{
		gone.ScopeHidden: "VDC " + l.placement.vdc.Name, gone.HomeHidden: "its vApp", gone.SiblingsHidden: "any other VM of the cluster",
	}[why]
	return fmt.Sprintf(
		"Neither %s nor %s is shown, which proves nothing: give the user of the identity access to vApp %s, or if the VM is gone, annotate the VCDMachine with %s=true",
		l.name, hidden, l.vAppName(), infrav1.VMGoneAnnotation)
}

// declareGone writes down that the VM is gone: it counts for the others of the cluster.
func (l *lostVM) declareGone(ctx context.Context, around *site) error {
	m := l.vcdMachine
	if l.id == "" || absence.Since(m).IsZero() || m.Annotations[infrav1.VMNotFoundSinceAnnotation] != "" {
		return nil
	}
	at := l.now().UTC().Format(time.RFC3339)
	if around.others {
		if err := l.noteOnCluster(ctx, infrav1.LastGoneAnnotation, at); err != nil {
			return err
		}
	}
	notes.Set(m, infrav1.VMNotFoundSinceAnnotation, at)
	return l.save(ctx)
}

// reportMissing reports what became of a recorded VM that the inventory does not show.
func reportMissing(ctx context.Context, s *scope) (phases.Outcome, error) {
	m, id := s.vcdMachine, s.vmID()
	known := m.Annotations[infrav1.VMNotFoundSinceAnnotation] != ""
	find := newLost(s, id).find
	if known {
		find = s.observer.readInvisible
	}
	vm, out, err := find(ctx)
	switch {
	case err != nil || out != phases.Done:
		return out, err
	case vm != nil:
		absence.Forget(m)
		return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason,
			"VCD shows VM %s and does not list it: check that its inventory is complete, and the rights of the identity's user", id), nil
	case !known:
		vmGone(s.Recorder, m, id)
	}
	return phases.Fail(inventoryEvery, infrav1.VMNotFoundReason, "VM %s is gone from VCD: delete the Machine to replace it", id), nil
}

// readInvisible returns the recorded VM, or nil if VCD does not show it.
func (s observer) readInvisible(ctx context.Context) (*vcd.VM, phases.Outcome, error) {
	vm, err := s.session.VM(ctx, s.vmID())
	if absence.Invisible(err) {
		return nil, phases.Done, nil
	}
	if err != nil {
		out, err := session.Refusal(err, "Reading VM "+s.vmID())
		return nil, out, err
	}
	return &vm, phases.Done, nil
}
