package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// observeRenamed finds the VM of a machine that VCD was asked to make, where no VM has its name: before another is made. While the
// request is under way there is none yet.
func (s *scope) observeRenamed(ctx context.Context) (phases.Outcome, error) {
	if s.vcdMachine.Annotations[infrav1.CreationRequestedAnnotation] == "" || s.creations.Creating(s.line(), s.key()) {
		return phases.Done, nil
	}
	vApp, err := s.session.FindVApp(ctx, s.placement.vdc, s.vAppName())
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Done, nil
	case err != nil:
		return session.Refusal(err, "Reading vApp "+s.vAppName())
	}
	vm, out, err := s.findRenamed(ctx, vApp)
	if vm != nil {
		s.found = append(s.found, vm.Ref)
	}
	return out, err
}

// findRenamed returns the VM in a vApp that has the machine's mark, but another name: somebody renamed it before it was recorded. Only
// VMs that are nobody else's are read for it, which are few: what failed creations left behind, and what people put there. Of copies
// nobody knows which is the machine's.
func (s *scope) findRenamed(ctx context.Context, vApp vcd.VApp) (*vcd.VM, phases.Outcome, error) {
	refs, err := s.nobodyElses(ctx, vApp.VMs)
	if err != nil {
		return nil, phases.Done, err
	}
	var found []vcd.VM
	for _, ref := range refs {
		vm, out, err := s.readMarked(ctx, ref)
		if err != nil || out != phases.Done {
			return nil, out, err
		}
		if vm != nil {
			found = append(found, *vm)
		}
	}
	switch len(found) {
	case 0:
		return nil, phases.Done, nil
	case 1:
		return &found[0], phases.Done, nil
	}
	return nil, phases.Fail(session.RemedyPoll, infrav1.DuplicateMarkerReason, "VMs %s and %s in vApp %s both say that they are this machine's: delete the copies, or change their descriptions",
		found[0].Name, found[1].Name, vApp.Name), nil
}

// readMarked returns a VM if it has the machine's mark.
func (s *scope) readMarked(ctx context.Context, ref vcd.Ref) (*vcd.VM, phases.Outcome, error) {
	vm, err := s.session.VM(ctx, ref.ID)
	switch {
	case absence.Invisible(err):
		return nil, phases.Done, nil
	case err != nil:
		out, err := session.Refusal(err, "Reading VM "+ref.Name)
		return nil, out, err
	}
	if marker, ok := vcd.ParseMarker(vm.Description); !ok || marker != s.marker() {
		return nil, phases.Done, nil
	}
	return &vm, phases.Done, nil
}

// nobodyElses returns those of some VMs that have neither the machine's name nor are, by URN or name, of the cluster's other machines.
func (s *scope) nobodyElses(ctx context.Context, refs []vcd.Ref) ([]vcd.Ref, error) {
	list := &infrav1.VCDMachineList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.vcdMachine.Namespace), session.OfCluster(session.ClusterName(s.vcdCluster, s.cluster))); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	taken := map[string]bool{s.vcdMachine.Annotations[infrav1.VMNameAnnotation]: true}
	for _, m := range list.Items {
		if m.UID == s.vcdMachine.UID {
			continue
		}
		taken[m.Annotations[infrav1.VMNameAnnotation]] = true
		if id, err := providerid.Parse(m.Spec.ProviderID); err == nil {
			taken[id] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(refs), func(ref vcd.Ref) bool { return taken[ref.ID] || taken[ref.Name] }), nil
}
