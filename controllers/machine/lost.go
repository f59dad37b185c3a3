// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
	scope *scope

	id   string // URN; empty: its creation was requested, and none is recorded
	name string // in messages
}

func newLost(s *scope, id string) *lostVM {
	return &lostVM{scope: s, id: id, name: "VM " + cmp.Or(id, s.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation])}
}

// find returns the VM, or nil and [phases.Done] if it is gone.
func (l *lostVM) find(ctx context.Context) (*vcd.VM, phases.Outcome, error) {
	siblings, err := l.siblings(ctx)
	if err != nil {
		return nil, phases.Done, err
	}
	where := vcd.Lost{
		ID:       l.id,
		VDCs:     []string{l.scope.placement.vdc.ID},
		VApp:     l.scope.inputs.madeIn(),
		VAppName: l.scope.inputs.vAppName(),
		Cluster:  l.scope.inputs.vcdCluster.Spec.InfraID,
		Siblings: siblings,
	}
	if last := l.scope.inputs.vcdMachine.Status.VApp; last != nil {
		where.VApp = last.ID
	}
	vm, seen, err := l.scope.session.FindLost(ctx, where)
	if err != nil {
		out, err := session.Unread(err, "Looking for "+l.name)
		return nil, out, err
	}
	if seen.Shown {
		absence.Forget(l.scope.inputs.vcdMachine)
		return &vm, phases.Done, nil
	}
	out, err := l.decide(ctx, gone.Evidence(seen))
	return nil, out, err
}

// siblings returns the URNs of the VMs of the cluster's other machines in the same VDC: another one may be shown, or
// hidden, apart from it.
func (l *lostVM) siblings(ctx context.Context) ([]string, error) {
	list := &infrav1.VCDMachineList{}
	cluster := session.OfCluster(session.ClusterName(l.scope.inputs.vcdCluster, l.scope.inputs.cluster))
	if err := l.scope.reconciler.Client.List(ctx, list, client.InNamespace(l.scope.inputs.vcdMachine.Namespace), cluster); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	var ids []string
	for _, m := range list.Items {
		elsewhere := m.Annotations[infrav1.OVDCIDAnnotation] != l.scope.inputs.vcdMachine.Annotations[infrav1.OVDCIDAnnotation]
		if id, err := providerid.Parse(m.Spec.ProviderID); err == nil && m.UID != l.scope.inputs.vcdMachine.UID && !elsewhere {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// decide decides whether the VM is gone, and writes down what later decisions need to know.
func (l *lostVM) decide(ctx context.Context, evidence gone.Evidence) (phases.Outcome, error) {
	m := l.scope.inputs.vcdMachine
	now := l.scope.now()
	me, _ := missingOf(m, m.Namespace+"/"+session.ClusterName(l.scope.inputs.vcdCluster, l.scope.inputs.cluster))
	subject := gone.Subject{
		Missing:         me,
		Evidence:        evidence,
		Unrecorded:      l.id == "",
		Requested:       l.scope.inputs.creationRequested(),
		Observed:        l.scope.state.missing.since,
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

// report maps a verdict to an outcome.
func (l *lostVM) report(ctx context.Context, v gone.Verdict, around *site) (phases.Outcome, error) {
	if absence.Note(l.scope.inputs.vcdMachine, v, l.scope.now()) {
		l.scope.state.missing.since = l.scope.now()
	}
	switch v.State {
	case gone.Gone:
		return phases.Done, l.declareGone(ctx, around)
	case gone.Stopped:
		return l.stopSite(ctx)
	case gone.HeldBack:
		l.scope.state.missing.held.Store(l.scope.now().UnixNano())
		return phases.Unsure(min(v.After, session.RemedyPoll), infrav1.GoneHeldBackReason,
			"%s is missing, as are more than a third of the cluster's %d VMs: they count as gone after ten minutes, "+
				"one by one. If this one is, annotate the VCDMachine with %s=true",
			l.name, around.Machines, infrav1.VMGoneAnnotation), nil
	case gone.Waiting:
		switch v.Reason {
		case gone.Once:
			return absence.Once(v, infrav1.VMUnverifiedReason, l.name), nil
		case gone.Creating:
			return phases.Unsure(min(v.After, session.RemedyPoll), infrav1.VMUnverifiedReason,
				"%s does not exist, and a request to create it may still be on its way: it counts as never created five "+
					"minutes after the request", l.name), nil
		default:
			l.askNeighbors(around)
			return phases.Unsure(v.After, infrav1.VMUnverifiedReason,
				"%s is missing: other clusters of the site are checked first", l.name), nil
		}
	default:
		return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason, "%s", l.explain(v.Reason)), nil
	}
}

// explain says why the evidence proves nothing, and what to do about it.
func (l *lostVM) explain(why gone.Reason) string {
	var hidden string
	switch why {
	case gone.Listed, gone.HeldByHome:
		return "VCD lists " + l.name + " and does not show it: grant its user access to it"
	case gone.Unlogged:
		return fmt.Sprintf(
			"Neither %s is shown nor any of the tasks that made it, less than a day ago: was VCD set back to an "+
				"earlier state? If the VM is gone, annotate the VCDMachine with %s=true",
			l.name, infrav1.VMGoneAnnotation)
	case gone.ScopeHidden:
		hidden = "VDC " + l.scope.placement.vdc.Name
	case gone.HomeHidden:
		hidden = "its vApp"
	case gone.SiblingsHidden:
		hidden = "any other VM of the cluster"
	case gone.Once, gone.AskingSite, gone.Creating: // reasons to wait, which need no explanation
	}
	return fmt.Sprintf(
		"Neither %s nor %s is shown, which proves nothing: give the user of the identity access to vApp %s, or if "+
			"the VM is gone, annotate the VCDMachine with %s=true",
		l.name, hidden, l.scope.inputs.vAppName(), infrav1.VMGoneAnnotation)
}

// declareGone writes down that the VM is gone: it counts for the others of the cluster.
func (l *lostVM) declareGone(ctx context.Context, around *site) error {
	m := l.scope.inputs.vcdMachine
	if l.id == "" || absence.Since(m).IsZero() || m.Annotations[infrav1.VMNotFoundSinceAnnotation] != "" {
		return nil
	}
	at := l.scope.now().UTC().Format(time.RFC3339)
	if around.others {
		// Of two machines that are released at the same time, one has to try again.
		change := client.MergeFromWithOptions(l.scope.inputs.vcdCluster, client.MergeFromWithOptimisticLock{})
		if err := patchCluster(ctx, l.scope, infrav1.LastGoneAnnotation, at, change); err != nil {
			return err
		}
	}
	notes.Set(m, infrav1.VMNotFoundSinceAnnotation, at)
	return l.scope.save(ctx)
}

// reportMissing reports what became of a recorded VM that the inventory does not show.
func reportMissing(ctx context.Context, s *scope) (phases.Outcome, error) {
	m := s.inputs.vcdMachine
	id := s.inputs.vmID()
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
			"VCD shows VM %s and does not list it: check that its inventory is complete, and the rights of the "+
				"identity's user", id), nil
	case !known:
		vmGone(s.reconciler.Recorder, m, id)
	}
	return phases.Fail(inventoryEvery, infrav1.VMNotFoundReason,
		"VM %s is gone from VCD: delete the Machine to replace it", id), nil
}

// readInvisible returns the recorded VM, or nil if VCD does not show it.
func (s observer) readInvisible(ctx context.Context) (*vcd.VM, phases.Outcome, error) {
	vm, err := s.scope.session.VM(ctx, s.scope.inputs.vmID())
	if absence.Invisible(err) {
		return nil, phases.Done, nil
	}
	if err != nil {
		out, err := session.Unread(err, "Reading VM "+s.scope.inputs.vmID())
		return nil, out, err
	}
	return &vm, phases.Done, nil
}

// A site is what is missing on the site of a machine, and who may know more. All of it is read from objects: a restart
// forgets nothing.
type site struct {
	gone.Site

	others    bool                 // others of the machine's cluster are missing
	neighbors []infrav1.VCDMachine // of the site's other clusters
}

// site returns what is missing on the site besides the machine itself.
func (l *lostVM) site(ctx context.Context, me gone.Missing) (*site, error) {
	clusters := &infrav1.VCDClusterList{}
	machines := &infrav1.VCDMachineList{}
	if err := l.scope.reconciler.Client.List(ctx, clusters); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	if err := l.scope.reconciler.Client.List(ctx, machines); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	s := &site{Site: gone.Site{
		Machines:     1,
		Asked:        l.scope.state.missing.announced,
		Acknowledged: acknowledgedAt(l.scope.inputs.vcdCluster, l.scope.now()),
	}}
	s.Released, _ = time.Parse(time.RFC3339, l.scope.inputs.vcdCluster.Annotations[infrav1.LastGoneAnnotation]) // zero: none was
	onSite := s.addClusters(clusters.Items, l.scope.inputs.vcdCluster)
	for _, m := range machines.Items {
		cluster := m.Namespace + "/" + m.Labels[clusterv1.ClusterNameLabel]
		if onSite[cluster] && m.Spec.ProviderID != "" && m.UID != l.scope.inputs.vcdMachine.UID {
			s.add(m, cluster, cluster == me.Cluster, l.heldAt(&m))
		}
	}
	s.Neighbors = len(s.neighbors) > 0
	return s, nil
}

// addClusters returns the clusters on the site of mine, by namespace and name, and notes whether one of them stopped
// the site.
func (s *site) addClusters(clusters []infrav1.VCDCluster, mine *infrav1.VCDCluster) map[string]bool {
	s.Stopped = mine.Annotations[infrav1.GoneStoppedAnnotation] != ""
	onSite := map[string]bool{}
	for _, c := range clusters {
		if session.NormalSite(c.Spec.Site) != session.NormalSite(mine.Spec.Site) {
			continue
		}
		onSite[c.Namespace+"/"+session.ClusterName(&c, nil)] = true
		if c.UID != mine.UID {
			at, err := time.Parse(time.RFC3339, c.Annotations[infrav1.GoneStoppedAnnotation])
			s.Stopped = s.Stopped || err == nil && at.After(s.Acknowledged)
		}
	}
	return onSite
}

// heldAt returns when another machine was last held back although it could be declared gone; zero if it was not.
func (l *lostVM) heldAt(m *infrav1.VCDMachine) time.Time {
	if at := l.scope.reconciler.states.Of(m.UID).missing.held.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// add counts another machine, which was last held back at a time.
func (s *site) add(m infrav1.VCDMachine, cluster string, mine bool, held time.Time) {
	if mine {
		s.Machines++
	} else {
		s.neighbors = append(s.neighbors, m)
	}
	if missing, ok := missingOf(&m, cluster); ok {
		missing.Held = held
		s.Missing = append(s.Missing, missing)
		s.others = s.others || mine
	}
}

// missingOf reads from the annotations of a machine whether its VM is missing. One that a person declared gone does not
// count.
func missingOf(m *infrav1.VCDMachine, cluster string) (gone.Missing, bool) {
	found := gone.Missing{Cluster: cluster, Name: m.Name, Since: absence.Since(m)}
	// zero if it was not declared gone
	found.Gone, _ = time.Parse(time.RFC3339, m.Annotations[infrav1.VMNotFoundSinceAnnotation])
	return found, !found.Since.IsZero() && m.Annotations[infrav1.VMGoneAnnotation] != "true"
}

// askNeighbors makes the machines of other clusters of the site observe their VMs at once, so that a failure of the
// whole site is known before the first of its machines counts as gone.
func (l *lostVM) askNeighbors(around *site) {
	if !l.scope.state.missing.announced.IsZero() {
		return
	}
	l.scope.state.missing.announced = l.scope.now()
	for _, other := range around.neighbors {
		l.scope.reconciler.states.Of(other.UID).freshness.stale.Store(true)
		l.scope.reconciler.wakeUps.ForObject(&other)()
	}
}

// stopSite records on the VCDCluster that VMs of several clusters of the site are missing: none counts as gone until a
// person acknowledges it.
func (l *lostVM) stopSite(ctx context.Context) (phases.Outcome, error) {
	c := l.scope.inputs.vcdCluster
	if c.Annotations[infrav1.GoneStoppedAnnotation] == "" {
		goneStopped(l.scope.reconciler.Recorder, c)
		if err := l.scope.noteOnCluster(ctx, infrav1.GoneStoppedAnnotation, l.scope.now().UTC().Format(time.RFC3339)); err != nil {
			return phases.Done, err
		}
	}
	return phases.Unsure(session.RemedyPoll, infrav1.GoneStoppedReason,
		"%s is missing, and VMs of other clusters of the site went missing at the same time, so none counts as gone: "+
			"check VCD. If those of this cluster that are missing now are gone, annotate VCDCluster %s with %s=true",
		l.name, c.Name, infrav1.GoneAcknowledgedAnnotation), nil
}

// acknowledgedAt returns when a user last acknowledged that missing VMs are gone; zero if never. The reconciler of
// VCDClusters replaces "true" with the time: until then it does not count. Neither does a time in the future, which
// would cover VMs that go missing later.
func acknowledgedAt(c *infrav1.VCDCluster, now time.Time) time.Time {
	at, err := time.Parse(time.RFC3339, c.Annotations[infrav1.GoneAcknowledgedAnnotation])
	if err != nil || at.After(now) {
		return time.Time{}
	}
	return at
}
