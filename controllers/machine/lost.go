// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reportMissing reports the state of a recorded VM that the inventory does not show.
func reportMissing(ctx context.Context, s *scope) (phases.Result, error) {
	m := s.inputs.vcdMachine
	id := s.inputs.vmID()
	known := m.Spec.RecordedState.VMNotFoundSince != nil
	l := newLost(s, id)
	find := l.find
	if known {
		find = l.read
	}
	vm, out, err := find(ctx)
	switch {
	case err != nil || out != phases.Done:
		return out, err
	case vm != nil:
		absence.Forget(m)
		return phases.Unsure(intervals.Remedy, infrav1.VMUnverifiedReason,
			"VM %s exists in VCD but is missing from its query results: check the inventory of VCD and the rights of the identity's user", id), nil
	case !known:
		vmGone(s.reconciler.Recorder, m, id)
	}
	return phases.Fail(inventoryEvery, infrav1.VMNotFoundReason,
		"VM %s no longer exists in VCD: delete the Machine to replace it", id), nil
}

// A lostVM is the VM of a machine that VCD may not show. The machine is in use or being deleted.
type lostVM struct {
	id   string // URN; empty: the creation was requested, but no VM is recorded
	name string // in messages

	client   client.Client
	session  *session.Session
	inputs   *inputs
	vdc      vcd.VDC
	records  *records
	missing  *missing
	states   *local.Store[state] // of the other machines
	wakeUps  *watches.WakeUps    // of the other machines
	recorder events.EventRecorder
	now      func() time.Time
}

func newLost(s *scope, id string) *lostVM {
	return &lostVM{
		id:       id,
		name:     "VM " + cmp.Or(id, s.inputs.vcdMachine.Spec.RecordedState.VMName),
		client:   s.reconciler.Client,
		session:  s.session,
		inputs:   &s.inputs,
		vdc:      s.target.vdc,
		records:  s.records,
		missing:  &s.state.missing,
		states:   &s.reconciler.states,
		wakeUps:  &s.reconciler.wakeUps,
		recorder: s.reconciler.Recorder,
		now:      s.now,
	}
}

// find returns the VM, or nil and [phases.Done] if it is gone.
func (l *lostVM) find(ctx context.Context) (*vcd.VM, phases.Result, error) {
	siblings, err := l.siblings(ctx)
	if err != nil {
		return nil, phases.Done, err
	}
	where := vcd.Lost{
		ID:       l.id,
		VDCs:     []string{l.vdc.ID},
		VApp:     l.inputs.createdInVApp(),
		VAppName: l.inputs.vAppName(),
		Cluster:  l.inputs.vcdCluster.Spec.InfraID,
		Siblings: siblings,
	}
	if last := l.inputs.vcdMachine.Status.VApp; last != nil {
		where.VApp = last.ID
	}
	if where.VApp == "" && l.inputs.createdByCAPVCD() {
		var out phases.Result
		if where.VApp, out, err = l.vAppOfCAPVCD(ctx); err != nil || out != phases.Done {
			return nil, out, err
		}
	}
	vm, seen, err := l.session.FindLost(ctx, where)
	if err != nil {
		out, err := problems.OfRead(err, "Looking for "+l.name)
		return nil, out, err
	}
	if seen.Shown {
		absence.Forget(l.inputs.vcdMachine)
		return &vm, phases.Done, nil
	}
	out, err := l.decide(ctx, gone.Evidence(seen))
	return nil, out, err
}

// vAppOfCAPVCD returns the URN of the vApp that CAPVCD created for the cluster; empty if VCD shows none. CAPVCD did not
// record the URN, and a VM that was gone before the adoption does not show it.
func (l *lostVM) vAppOfCAPVCD(ctx context.Context) (string, phases.Result, error) {
	name := l.inputs.vAppName()
	vApp, err := l.session.FindVApp(ctx, l.vdc, name)
	if absence.Invisible(err) {
		return "", phases.Done, nil
	}
	owns := false
	if err == nil {
		owns, err = marks.OwnsVApp(ctx, l.session, l.inputs.vcdCluster.Spec.InfraID, vApp)
	}
	switch {
	case err != nil:
		out, err := problems.OfRead(err, "Reading vApp "+name)
		return "", out, err
	case !owns:
		return "", phases.Done, nil
	}
	return vApp.ID, phases.Done, nil
}

// read returns the recorded VM, or nil if VCD does not show it.
func (l *lostVM) read(ctx context.Context) (*vcd.VM, phases.Result, error) {
	vm, err := l.session.VM(ctx, l.id)
	if absence.Invisible(err) {
		return nil, phases.Done, nil
	}
	if err != nil {
		out, err := problems.OfRead(err, "Reading VM "+l.id)
		return nil, out, err
	}
	return &vm, phases.Done, nil
}

// siblings returns the URNs of the VMs of the cluster's other machines in the same VDC. VCD may show or hide the VMs of
// another VDC independently of this one.
func (l *lostVM) siblings(ctx context.Context) ([]string, error) {
	list := &infrav1.VCDMachineList{}
	cluster := index.OfCluster(capicluster.Name(l.inputs.vcdCluster, l.inputs.cluster))
	if err := l.client.List(ctx, list, client.InNamespace(l.inputs.vcdMachine.Namespace), cluster); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	var ids []string
	for _, m := range list.Items {
		elsewhere := m.Spec.RecordedState.OVDCID != l.inputs.vcdMachine.Spec.RecordedState.OVDCID
		if id, err := providerid.Parse(m.Spec.ProviderID); err == nil && m.UID != l.inputs.vcdMachine.UID && !elsewhere {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// decide decides whether the VM is gone, and records the facts that later decisions need.
func (l *lostVM) decide(ctx context.Context, evidence gone.Evidence) (phases.Result, error) {
	m := l.inputs.vcdMachine
	now := l.now()
	me, _ := missingOf(m, m.Namespace+"/"+capicluster.Name(l.inputs.vcdCluster, l.inputs.cluster))
	subject := gone.Subject{
		Missing:         me,
		Evidence:        evidence,
		Unrecorded:      l.id == "",
		Requested:       l.inputs.creationRequested(),
		Observed:        l.missing.since,
		DeleteRequested: m.Spec.RecordedState.DeleteRequestedAt != nil,
	}
	if on := m.Spec.RecordedState.PoweredOnAt; on != nil {
		subject.Born = on.Time // zero: long ago
	}
	if subject.Unrecorded {
		return l.report(ctx, gone.Decide(now, subject, nil), &site{})
	}
	around, err := l.site(ctx, me)
	if err != nil {
		return phases.Done, err
	}
	return l.report(ctx, gone.Decide(now, subject, &around.Site), around)
}

// report records a verdict, acts on it, and converts it to a result.
func (l *lostVM) report(ctx context.Context, v gone.Verdict, around *site) (phases.Result, error) {
	if absence.Note(l.inputs.vcdMachine, v, l.now()) {
		l.missing.since = l.now()
	}
	switch v.State {
	case gone.Gone:
		return phases.Done, l.declareGone(ctx, around)
	case gone.Stopped:
		return l.stopSite(ctx)
	case gone.HeldBack:
		l.missing.held.Store(l.now().UnixNano())
		return phases.Unsure(min(v.After, intervals.Remedy), infrav1.TooManyVMsMissingReason,
			"%s is missing, as are more than a third of the cluster's %d VMs. After ten minutes, the provider treats them as deleted, one by one. If this VM is deleted, annotate the VCDMachine with %s=true",
			l.name, around.Machines, infrav1.VMGoneAnnotation), nil
	case gone.Waiting:
		switch v.Reason {
		case gone.Once:
			return absence.Once(v, infrav1.VMUnverifiedReason, l.name), nil
		case gone.Creating:
			return phases.Unsure(min(v.After, intervals.Remedy), infrav1.VMUnverifiedReason,
				"%s does not exist, but a request to create it may still be in progress. The provider creates it again five minutes after the request", l.name), nil
		default:
			l.wakeNeighbors(around)
			return phases.Unsure(v.After, infrav1.VMUnverifiedReason,
				"%s is missing; the provider checks the other clusters of the site first", l.name), nil
		}
	default:
		return phases.Unsure(intervals.Remedy, infrav1.VMUnverifiedReason, "%s", l.explain(v.Reason)), nil
	}
}

// explain returns why the evidence proves nothing, and the remedy.
func (l *lostVM) explain(why gone.Reason) string {
	var hidden string
	switch why {
	case gone.Listed, gone.HeldByHome:
		return "VCD lists " + l.name + " but denies access to it: grant the user access to it"
	case gone.Unlogged:
		return fmt.Sprintf(
			"Neither %s nor the tasks that created it less than a day ago are visible, so VCD may have been restored from a backup. If the VM is deleted, annotate the VCDMachine with %s=true",
			l.name, infrav1.VMGoneAnnotation)
	case gone.ScopeHidden:
		hidden = "VDC " + l.vdc.Name
	case gone.HomeHidden:
		hidden = "its vApp"
	case gone.SiblingsHidden:
		hidden = "any other VM of the cluster"
	case gone.Once, gone.AskingSite, gone.Creating: // reasons to wait, which need no explanation
	}
	return fmt.Sprintf(
		"Neither %s nor %s is visible, so the deletion is not proved: grant the user of the identity access to vApp %s. If the VM is deleted, annotate the VCDMachine with %s=true",
		l.name, hidden, l.inputs.vAppName(), infrav1.VMGoneAnnotation)
}

// declareGone records that the VM is gone. The record counts in the decisions for other machines of the cluster.
func (l *lostVM) declareGone(ctx context.Context, around *site) error {
	m := l.inputs.vcdMachine
	if l.id == "" || absence.Since(m).IsZero() || m.Spec.RecordedState.VMNotFoundSince != nil {
		return nil
	}
	now := timeOf(l.now())
	if around.others {
		// If two machines are released at the same time, one gets a conflict and retries.
		record := func(s *infrav1.VCDClusterRecordedState) { s.LastGoneAt = now }
		if err := l.records.saveOnClusterIfCurrent(ctx, "the time of the last VM loss", record); err != nil {
			return err
		}
	}
	m.Spec.RecordedState.VMNotFoundSince = now
	return l.records.patcher.Save(ctx)
}

// stopSite records on the VCDCluster that VMs of several clusters of the site are missing. None of them counts as gone
// until a user acknowledges it.
func (l *lostVM) stopSite(ctx context.Context) (phases.Result, error) {
	c := l.inputs.vcdCluster
	if c.Spec.RecordedState.GoneStoppedSince == nil {
		vmLossUnacknowledged(l.recorder, c)
		now := metav1.NewTime(l.now().UTC().Truncate(time.Second))
		record := func(s *infrav1.VCDClusterRecordedState) { s.GoneStoppedSince = &now }
		if err := l.records.saveOnCluster(ctx, "the suspicion of a VM loss", record); err != nil {
			return phases.Done, err
		}
	}
	return phases.Unsure(intervals.Remedy, infrav1.VMLossUnacknowledgedReason,
		"%s is missing, and VMs of other clusters of the site went missing at the same time, so the provider treats none of them as deleted. Check VCD. If the missing VMs of this cluster are deleted, annotate VCDCluster %s with %s=true",
		l.name, c.Name, infrav1.GoneAcknowledgedAnnotation), nil
}
