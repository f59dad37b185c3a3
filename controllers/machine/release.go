// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Release removes the vApp of a machine that had its own, and records on the cluster what remains.
type release struct{ scope *scope }

// deleteMachineVApp removes the vApp of a machine that had one of its own. A vApp that machines share goes with the
// cluster.
func deleteMachineVApp(ctx context.Context, s *scope) (phases.Outcome, error) {
	if s.inputs.vcdCluster == nil || !vapp.PerMachine(s.inputs.vcdCluster) || !s.inputs.mayHaveVM() {
		return phases.Done, nil
	}
	if leaves, err := s.leavesVM(ctx); err != nil || leaves {
		return phases.Done, err
	}
	out, err := s.release.deleteVApp(ctx)
	return vapp.OrKeep(ctx, s.reconciler.Recorder, s.inputs.vcdMachine, "VCDMachine", s.inputs.vAppName(), out, err)
}

// deleteVApp takes the next step of deleting the vApp that is the machine's alone. It does not wait for a task of ours
// if a person leaves the vApp: VCD may never answer for it.
func (s release) deleteVApp(ctx context.Context) (phases.Outcome, error) {
	if s.scope.session == nil {
		if out, err := s.scope.deletion.open(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	out, ended := s.scope.settle(stepDeleteVApp)
	if out != phases.Done && !vapp.IsKept(s.scope.inputs.vcdMachine) {
		return out, nil
	}
	return s.findVApp(ctx, ended)
}

// findVApp deletes the vApp that is the machine's alone if it is there; ended says that our own task deleted it.
func (s release) findVApp(ctx context.Context, ended bool) (phases.Outcome, error) {
	name := s.scope.inputs.vAppName()
	vApp, err := s.scope.session.FindVApp(ctx, s.scope.placement.vdc, name)
	if err == nil && s.ownsVApp(vApp) {
		return s.removeVApp(ctx, vApp)
	}
	if err != nil && !errors.Is(err, vcd.ErrNotFound) {
		return session.Unread(err, "Reading vApp "+name)
	}
	renamed, found, errRenamed := s.renamedVApp(ctx)
	switch {
	case errRenamed != nil:
		return session.Unread(errRenamed, "Reading the vApp that was "+name)
	case found:
		return s.removeVApp(ctx, renamed)
	case err == nil:
		vapp.Left(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine, vApp.Name)
		return phases.Done, nil
	case ended:
		return phases.Done, nil
	}
	return s.missingVApp(ctx, name)
}

// missingVApp decides whether a vApp that VCD does not show is gone.
func (s release) missingVApp(ctx context.Context, name string) (phases.Outcome, error) {
	lost := absence.VApp{Name: name, VDC: s.scope.placement.vdc}
	if id := s.scope.inputs.madeIn(); id != "" {
		lost.IDs = []string{id}
	}
	return lost.Gone(ctx, s.scope.session, s.scope.inputs.vcdMachine, s.scope.now())
}

// ownsVApp reports whether a vApp is the machine's alone.
func (s release) ownsVApp(vApp vcd.VApp) bool {
	return s.scope.inputs.marks(vApp.Description)
}

// renamedVApp finds the vApp that was created for the machine and renamed.
func (s release) renamedVApp(ctx context.Context) (vApp vcd.VApp, found bool, err error) {
	id := s.scope.inputs.madeIn()
	if id == "" {
		return vcd.VApp{}, false, nil
	}
	vApp, err = s.scope.session.VApp(ctx, id)
	if absence.Invisible(err) {
		return vcd.VApp{}, false, nil
	}
	return vApp, err == nil && s.ownsVApp(vApp), err
}

// removeVApp takes the next step of deleting a vApp that is the machine's alone. It took the proof that the VM is gone
// with it, which is stored first.
func (s release) removeVApp(ctx context.Context, vApp vcd.VApp) (phases.Outcome, error) {
	others := vapp.Names(vApp.VMs)
	switch {
	case vapp.Hangs(s.scope.inputs.vcdMachine, s.scope.now(), vApp.Tasks...):
		return vapp.StillHeld(vApp.Name), nil
	case len(vApp.Tasks) > 0 && (len(others) == 0 || !vapp.IsKept(s.scope.inputs.vcdMachine)):
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for another task on vApp %s",
			vApp.Name), nil
	case len(others) > 0:
		return phases.Fail(session.RemedyPoll, infrav1.VAppNotEmptyReason,
			"vApp %s holds VMs that are not this machine's: move or delete %s", vApp.Name, phases.Few(others)), nil
	}
	if err := s.scope.noteOnce(ctx, infrav1.VMGoneAnnotation, "true"); err != nil {
		return phases.Done, err
	}
	task, err := s.scope.session.DeleteVApp(ctx, vApp.ID)
	return s.scope.started(stepDeleteVApp, task, err)
}

// withEndpoint adds to the phases of a control plane that it is a member of its cluster's endpoint on an edge gateway:
// before it is powered on, if VCD gives it an address by then, and until it is deleted.
func (i *inputs) withEndpoint(table []phases.Phase[*scope]) []phases.Phase[*scope] {
	m := i.vcdMachine
	if _, on := edgeendpoint.Of(i.vcdCluster); !on {
		return table
	}
	if !m.DeletionTimestamp.IsZero() {
		if m.Annotations[infrav1.EndpointMemberAnnotation] == "" {
			return table
		}
		leave := phases.Phase[*scope]{Condition: infrav1.EndpointLeftCondition, Run: leaveEndpoint}
		return slices.Insert(table, 0, leave)
	}
	if !util.IsControlPlaneMachine(i.machine) {
		return table
	}
	first := infrav1.PoweredOnCondition
	join := phases.Phase[*scope]{Condition: infrav1.EndpointJoinedCondition, Run: joinEndpoint}
	at := slices.IndexFunc(table, func(p phases.Phase[*scope]) bool { return p.Condition == first })
	if nics := m.Spec.Networks; len(nics) > 0 && nics[0].AddressSource == infrav1.AddressDHCP {
		at = slices.IndexFunc(table,
			func(p phases.Phase[*scope]) bool { return p.Condition == infrav1.AddressesReadyCondition }) + 1
	}
	return slices.Insert(table, at, join)
}

// joinEndpoint makes a control plane a member of its cluster's endpoint.
func joinEndpoint(ctx context.Context, s *scope) (phases.Outcome, error) {
	address, out, err := s.memberAddress(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	joins := address != s.inputs.vcdMachine.Annotations[infrav1.EndpointMemberAnnotation]
	if joins { // Not the address of another's VM.
		if out, err := s.observer.ensureOwned(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	request := s.endpoint()
	if !s.inputs.provisioned() || joins {
		opened, out, err := s.openCluster(ctx)
		if err != nil || out != phases.Done {
			return out, err
		}
		request.Session = opened
	}
	return s.reconciler.Endpoints.Join(ctx, request, address, s.inputs.provisioned(), s.save)
}

// memberAddress returns the address of the primary NIC under which the machine is a member of the endpoint. It has the
// family of the endpoint's first address. A machine that never ran must have such an address: else it would run, and the
// endpoint would not lead to it. One that runs keeps the address that is recorded while the inventory shows no other,
// unless it has one of the family that was not recorded.
func (s *scope) memberAddress(ctx context.Context) (string, phases.Outcome, error) {
	family := edgeendpoint.MemberFamily(s.inputs.vcdCluster)
	recorded := s.inputs.vcdMachine.Annotations[infrav1.EndpointMemberAnnotation]
	if s.vm.row != nil && s.inputs.provisioned() {
		current := s.vm.row.PrimaryAddress
		if address := ofFamily([]string{current}, family); address != "" {
			return address, phases.Done, nil
		}
		keeps := edgeendpoint.KeepsMember(s.inputs.vcdCluster, s.inputs.vcdMachine)
		if recorded != "" && keeps && (current == "" || s.addresses.reported(recorded)) {
			return recorded, phases.Done, nil
		}
	}
	if out, err := s.observer.ensureRead(ctx); err != nil || out != phases.Done {
		return "", out, err
	}
	has := s.addresses.ofPrimary()
	if address := cmp.Or(ofFamily(has, family), recorded); address != "" {
		return address, phases.Done, nil
	}
	s.vm.forget()
	if len(has) == 0 {
		return "", phases.Wait(session.TaskPoll, infrav1.WaitingForAddressReason,
			"Waiting for VCD to give the VM an address, under which it becomes a member of the endpoint"), nil
	}
	return "", phases.Fail(session.RemedyPoll, infrav1.EndpointFamilyReason,
		"The first address of the cluster's endpoint is of family %s, and the VM has only %s: choose an address of the "+
			"family of the nodes in spec.endpoint.edgeGateway.addresses of the VCDCluster, or nodes with addresses of "+
			"both families", family, strings.Join(has, ", ")), nil
}

// ofFamily returns the first of some addresses that has a family, or the first of all if none is wanted.
func ofFamily(addresses []string, family lb.Family) string {
	for _, text := range addresses {
		address, err := netip.ParseAddr(text)
		if err == nil && (family == "" || lb.FamilyOf(address) == family) {
			return text
		}
	}
	return ""
}

// openCluster logs in with the identity of the cluster, which the endpoint is written with: that of the machine's zone
// may have rights on VMs only.
func (s *scope) openCluster(ctx context.Context) (*session.Session, phases.Outcome, error) {
	return s.reconciler.Identities.Open(ctx, s.reconciler.Sessions, s.inputs.vcdCluster)
}

// leaveEndpoint makes sure that a machine is no member of its cluster's endpoint any more, unless its VM is declared
// gone, or a person leaves load balancers in VCD: then the cluster takes it out. A cluster that was never complete here
// may be a copy, whose id names the endpoint of the original. One that is deleted, and whose gateway is not recorded,
// removes its endpoint later.
func leaveEndpoint(ctx context.Context, s *scope) (phases.Outcome, error) {
	r := s.endpoint()
	c := s.inputs.vcdCluster
	if r.Owner == nil || !ptr.Deref(c.Status.Initialization.Provisioned, false) ||
		r.Gateway == "" && !c.DeletionTimestamp.IsZero() ||
		s.inputs.vcdMachine.Annotations[infrav1.VMGoneAnnotation] == "true" ||
		c.Annotations[infrav1.KeepLoadBalancersAnnotation] == "true" {
		return phases.Done, nil
	}
	if leaves, err := s.leavesVM(ctx); err != nil || leaves {
		return phases.Done, err // The member is the machine's that owns the VM.
	}
	opened, out, err := s.openCluster(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	r.Session = opened
	out, err = s.reconciler.Endpoints.Leave(ctx, r)
	if out.Problem {
		out.Message += fmt.Sprintf(". To delete the machine while it is a member, annotate the VCDCluster with %s=true",
			infrav1.KeepLoadBalancersAnnotation)
	}
	return out, err
}

// endpoint is what the machine asks of its cluster's endpoint. The session is the caller's to add.
func (s *scope) endpoint() edgeendpoint.Request {
	gateway, _ := edgeendpoint.Of(s.inputs.vcdCluster)
	return edgeendpoint.Request{
		Client:  s.reconciler.Client,
		Cluster: s.inputs.vcdCluster,
		Owner:   s.inputs.cluster,
		Machine: s.inputs.vcdMachine,
		Gateway: gateway,
		Wake:    s.reconciler.wakeUps.ForObject(s.inputs.vcdMachine),
		Now:     s.now(),
	}
}

// releaseMachine lets the API server delete the VCDMachine.
func releaseMachine(ctx context.Context, s *scope) (phases.Outcome, error) {
	leaves, err := s.leavesVM(ctx)
	if err != nil {
		return phases.Done, err
	}
	if s.inputs.vcdCluster != nil && !vapp.PerMachine(s.inputs.vcdCluster) && s.inputs.mayHaveVM() && !leaves {
		switch err := s.release.noteVApp(ctx); {
		case apierrors.IsConflict(err):
			return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason,
				"Waiting to write down on the VCDCluster which vApp the VM was in, while others write there"), nil
		case err != nil:
			return phases.Done, err
		}
	}
	if !leaves { // Else the addresses stay with the VM.
		if err := s.addresses.releaseClaims(ctx); err != nil {
			return phases.Done, err
		}
	}
	controllerutil.RemoveFinalizer(s.inputs.vcdMachine, infrav1.MachineFinalizer)
	return phases.Done, nil
}

// noteVApp remembers that there was a vApp, and which, for the day when its cluster is deleted. A zone has one VDC: the
// vApp is not noted if another has replaced that of the machine.
func (s release) noteVApp(ctx context.Context) error {
	if zone := s.scope.inputs.zoneName(); zone != "" {
		vdc := s.scope.inputs.vcdMachine.Annotations[infrav1.OVDCIDAnnotation]
		if out := zones.Replaced(s.scope.inputs.vcdCluster, zone, vdc); out != phases.Done {
			return nil
		}
		return s.scope.noteInZone(ctx, zone, s.scope.inputs.madeIn())
	}
	if err := s.scope.noteVApps(ctx); err != nil {
		return err
	}
	known := notes.VApps(s.scope.inputs.vcdCluster)
	id := s.scope.inputs.madeIn()
	if id == "" || slices.Contains(known, id) {
		return nil
	}
	// A machine of another vApp, which is released at the same time, must not lose what it wrote down.
	change := client.MergeFromWithOptions(s.scope.inputs.vcdCluster, client.MergeFromWithOptimisticLock{})
	return patchCluster(ctx, s.scope, infrav1.VAppsAnnotation, strings.Join(append(known, id), ","), change)
}

// noteVApps stores on the VCDCluster that it has vApps, and how many if there are several.
func (s *scope) noteVApps(ctx context.Context) error {
	if zone := s.inputs.zoneName(); zone != "" {
		return s.noteInZone(ctx, zone, "")
	}
	known := s.inputs.vcdCluster.Annotations[infrav1.VAppCreatedAnnotation]
	own := s.inputs.vAppNumber()
	switch {
	case own > vapp.Number(known):
		return s.noteOnCluster(ctx, infrav1.VAppCreatedAnnotation, strconv.Itoa(own))
	case known == "":
		return s.noteOnCluster(ctx, infrav1.VAppCreatedAnnotation, "true")
	}
	return nil
}

// noteInZone stores on the VCDCluster what it has in a zone: the VDC, how many vApps, and the URN of one whose VM was
// deleted, if that is not empty.
func (s *scope) noteInZone(ctx context.Context, zone, id string) error {
	home := vapp.HomeIn(s.inputs.vcdCluster, s.inputs.clusterName(), zone)
	_, before := home.Note()
	known := home.VDC != ""
	home.VDC = s.inputs.vcdMachine.Annotations[infrav1.OVDCIDAnnotation]
	if !vapp.PerMachine(s.inputs.vcdCluster) { // Machines take vApps of their own with them.
		home.Count = max(home.Count, s.inputs.vAppNumber())
	}
	if id != "" && !slices.Contains(home.IDs, id) {
		home.IDs = append(home.IDs, id)
	}
	key, now := home.Note()
	switch {
	case now == before:
		return nil
	case !known && id == "":
		return patchCluster(ctx, s, key, now, client.MergeFrom(s.inputs.vcdCluster))
	}
	change := client.MergeFromWithOptions(s.inputs.vcdCluster, client.MergeFromWithOptimisticLock{})
	return patchCluster(ctx, s, key, now, change)
}

// noteOnce stores an annotation now, if there is none.
func (s *scope) noteOnce(ctx context.Context, key, value string) error {
	if s.inputs.vcdMachine.Annotations[key] != "" {
		return nil
	}
	notes.Set(s.inputs.vcdMachine, key, value)
	return s.save(ctx)
}

// maxNotedDisks bounds how many disks a cluster remembers: Kubernetes refuses objects with too many annotations, and
// with that the deletion of the machine.
const maxNotedDisks = 400

// noteDisk remembers that a disk outlives its VM, for the day when its cluster is deleted.
func (s *scope) noteDisk(ctx context.Context, disk vcd.Ref) error {
	if len(notes.DetachedDisks(s.inputs.vcdCluster)) >= maxNotedDisks {
		return nil
	}
	return s.noteOnCluster(ctx, infrav1.DetachedDiskAnnotationPrefix+disk.ID[strings.LastIndex(disk.ID, ":")+1:],
		disk.Name)
}

// noteOnCluster stores an annotation on the VCDCluster, which outlives the machine.
func (s *scope) noteOnCluster(ctx context.Context, key, value string) error {
	if s.inputs.vcdCluster.Annotations[key] == value {
		return nil
	}
	return patchCluster(ctx, s, key, value, client.MergeFrom(s.inputs.vcdCluster))
}

func patchCluster(ctx context.Context, s *scope, key, value string, change client.Patch) error {
	c := s.inputs.vcdCluster.DeepCopy()
	notes.Set(c, key, value)
	if err := s.reconciler.Client.Patch(ctx, c, change); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting %s on VCDCluster %s: %w", key, c.Name, err)
	}
	return nil
}
