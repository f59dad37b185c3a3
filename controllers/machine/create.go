// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A creation is what a pass does to create VMs in the machine's vApp, its own among them.
type creation struct {
	scope    *scope
	requests requests
	design   design
	layout   layout

	pending phases.Outcome // why the VM does not exist yet
	vApp    *vcd.VApp      // as it is now, if VMs are missing in it
	joined  bool           // another machine may create the VM
	current batch.Batch    // what this pass creates
}

func newCreation(s *scope) *creation {
	return &creation{
		scope:    s,
		requests: requests{s.reconciler.Client, s.reconciler.Live},
		design:   design{&s.inputs, &s.placement},
		layout:   layout{s},
	}
}

// batch returns the members whose VMs one request creates: the machine's own, and those of its cluster that suit. That
// VCD is asked to create them is stored on each VCDMachine before: from then on a VM that is not shown may exist.
func (s *creation) batch(ctx context.Context, suits func(batch.Member) bool) ([]batch.Member, error) {
	if !vapp.PerMachine(s.scope.inputs.vcdCluster) || s.scope.inputs.zoneName() != "" {
		if err := s.scope.noteVApps(ctx); err != nil {
			return nil, err
		}
	}
	at := s.scope.now().UTC().Format(time.RFC3339)
	var members []batch.Member
	names := map[string]bool{s.scope.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation]: true}
	for _, c := range s.current.Members {
		if !s.includes(c, names, suits) {
			continue
		}
		names[c.Spec.Name] = true
		var err error
		switch c.First, err = s.requests.note(ctx, c, at); {
		case err == nil:
			members = append(members, c)
		case c.Key == s.scope.inputs.key():
			return nil, err
		default:
			ctrl.LoggerFrom(ctx).Info("Leaving out a machine that waits for the same vApp", "reason", err.Error())
		}
	}
	notes.Set(s.scope.inputs.vcdMachine, infrav1.CreationRequestedAnnotation, at)
	return members, nil
}

// includes reports whether the request is for c, too, beside members of some names. A naming template may give two
// machines one name: the second gets a conflict in a batch of its own.
func (s *creation) includes(c batch.Member, names map[string]bool, suits func(batch.Member) bool) bool {
	return c.Key == s.scope.inputs.key() || !names[c.Spec.Name] && ofCluster(c, s.scope.inputs.vcdCluster.Spec.InfraID) && suits(c)
}

// Requests stores on VCDMachines, in the API server, that VCD is asked to create their VMs.
type requests struct {
	client client.Client
	live   client.Reader
}

// note stores on the VCDMachine of c when VCD is asked to create its VM, and reports whether that is the first time. It
// fails if the machine is being deleted, or was replaced by another of its name.
func (r requests) note(ctx context.Context, c batch.Member, at string) (first bool, err error) {
	m := &infrav1.VCDMachine{}
	if err := r.live.Get(ctx, c.Machine, m); err != nil {
		return false, fmt.Errorf("getting VCDMachine %s: %w", c.Machine, err)
	}
	if !m.DeletionTimestamp.IsZero() {
		return false, fmt.Errorf("VCDMachine %s is being deleted", c.Machine)
	}
	return m.Annotations[infrav1.CreationRequestedAnnotation] == "", r.patch(ctx, c, at)
}

// patch stores when VCD was asked to create the VM of c; nil is never.
func (r requests) patch(ctx context.Context, c batch.Member, at any) error {
	note, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         c.Key,
		"annotations": map[string]any{infrav1.CreationRequestedAnnotation: at},
	}})
	if err != nil {
		return fmt.Errorf("noting a creation: %w", err)
	}
	m := &infrav1.VCDMachine{}
	m.Namespace = c.Machine.Namespace
	m.Name = c.Machine.Name
	if err := r.client.Patch(ctx, m, client.RawPatch(types.MergePatchType, note)); err != nil {
		return fmt.Errorf("noting on VCDMachine %s that VCD is asked to create its VM: %w", c.Machine, err)
	}
	return nil
}

// withdraw removes the notes of members that VCD was never asked to create before, after it certainly refused: the
// deletion of such a machine then needs no proof that its VM is gone. It returns the keys of those without a note.
func (r requests) withdraw(ctx context.Context, members []batch.Member, err error) (withdrawn []string) {
	if !errors.Is(err, vcd.ErrInvalid) && !errors.Is(err, vcd.ErrQuota) && !errors.Is(err, vcd.ErrForbidden) &&
		!errors.Is(err, vcd.ErrBusy) {
		return nil
	}
	for _, c := range members {
		if !c.First {
			continue
		}
		if err := r.patch(ctx, c, nil); err != nil {
			ctrl.LoggerFrom(ctx).Info("Keeping the note of a creation that VCD refused", "reason", err.Error())
			continue
		}
		withdrawn = append(withdrawn, c.Key)
	}
	return withdrawn
}

// refused ends a request to create members that VCD refused.
func (s *creation) refused(ctx context.Context, what step, members []batch.Member, err error) (phases.Outcome,
	error,
) {
	if slices.Contains(s.requests.withdraw(ctx, members, err), s.scope.inputs.key()) {
		delete(s.scope.inputs.vcdMachine.Annotations, infrav1.CreationRequestedAnnotation)
	}
	return s.scope.refuse(what, err)
}

// ofCluster reports whether c is a VM of the cluster with an id.
func ofCluster(c batch.Member, id string) bool {
	marker, ok := vcd.ParseMarker(c.Spec.Description)
	return ok && marker.Cluster == id
}

// specs returns the VMs of machines.
func specs(machines []batch.Member) []vcd.VMSpec {
	result := make([]vcd.VMSpec, 0, len(machines))
	for _, c := range machines {
		result = append(result, c.Spec)
	}
	return result
}

func (s *creation) member() batch.Member {
	return batch.Member{
		Key:     s.scope.inputs.key(),
		Machine: client.ObjectKeyFromObject(s.scope.inputs.vcdMachine),
		Spec:    s.design.vm(),
		Alone:   s.scope.state.backoff.creating(),
		Follow:  func(what string, t vcd.Task) { s.scope.follow(step(what), t) },
		Wake:    s.scope.reconciler.wakeUps.ForObject(s.scope.inputs.vcdMachine),
	}
}

// leave ensures, at the end of a pass that did not join, that no other machine creates the VM.
func (s *creation) leave() {
	if !s.joined {
		s.scope.reconciler.batches.Leave(s.scope.inputs.queueName(), s.scope.inputs.key())
	}
}

// release ends the batch.
func (s *creation) release() {
	if s.current.End != nil {
		s.current.End()
	}
	s.current = batch.Batch{}
}

// gather returns how long the machine waits for others to share its request; never in a vApp of its own.
func (s *creation) gather() time.Duration {
	if vapp.PerMachine(s.scope.inputs.vcdCluster) {
		return 0
	}
	if s.scope.state.gatherSince.IsZero() {
		s.scope.state.gatherSince = s.scope.now()
	}
	return s.scope.state.gatherSince.Add(cmp.Or(s.scope.reconciler.Gather, defaultGather)).Sub(s.scope.now())
}

// defaultGather is how long the first machine waits for others: several VMs in one request take little longer than one,
// and those that come later wait for the end of it.
const defaultGather = time.Second

// followAll makes the machine, and every other whose VM a task creates, follow it. The task holds the vApp until it
// ends.
func (s *creation) followAll(what step, t vcd.Task, machines []batch.Member) {
	for _, c := range machines {
		if c.Key != s.scope.inputs.key() {
			c.Follow(string(what), t)
		}
	}
	key := s.scope.inputs.key() + "/" + string(what)
	queue := s.scope.inputs.queueName()
	wake := s.scope.reconciler.wakeUps.ForObject(s.scope.inputs.vcdMachine)
	s.scope.reconciler.batches.Started(queue, func() bool {
		running, ok := s.scope.session.Task(key)
		return ok && running.State == vcd.TaskRunning
	})
	s.scope.session.Follow(key, t, func() {
		wake()
		s.scope.reconciler.batches.Ended(queue)
	})
}

// withRollout adds to a problem of the first control plane what replaces it: the owner of the others replaces it only
// once it is a Node.
func (s placer) withRollout(out phases.Outcome) phases.Outcome {
	_, controlPlane := s.scope.inputs.vcdMachine.Labels[clusterv1.MachineControlPlaneLabel]
	if out.Problem && controlPlane && !ptr.Deref(s.scope.inputs.cluster.Status.Initialization.ControlPlaneInitialized, false) {
		out.Message += fmt.Sprintf(". A new VCDMachineTemplate alone does not replace the first control plane: name "+
			"it in the KubeadmControlPlane, and delete Machine %s", s.scope.inputs.machine.Name)
	}
	return out
}

// compareVersions warns of an image that has another version of Kubernetes than the Machine asks for.
func (s placer) compareVersions() {
	image := s.scope.placement.template.Kubernetes
	wished := s.scope.inputs.machine.Spec.Version
	if s.scope.state.versionsCompared || s.scope.inputs.mayHaveVM() {
		return
	}
	s.scope.state.versionsCompared = true
	if image != "" && wished != "" && !vcd.SameKubernetes(image, wished) {
		otherKubernetes(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine, s.scope.placement.template.Name, image, wished)
	}
}
