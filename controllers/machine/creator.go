// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A creation holds the state of a pass that creates the machine's VM.
type creation struct {
	found   []vcd.Ref     // VMs with the machine's name or marker, while no VM is recorded
	pending phases.Result // why the VM does not exist yet
	vApp    *vcd.VApp     // as just read; set only if it lacks VMs
	joined  bool          // another machine may create the VM
	current batch.Batch   // the batch that this pass creates
}

// release ends the current batch.
func (c *creation) release() {
	if c.current.End != nil {
		c.current.End()
	}
	c.current = batch.Batch{}
}

// postpone ends the current batch, which its members continue at a later time.
func (c *creation) postpone(until time.Time) {
	c.current.Postpone(until)
	c.current = batch.Batch{}
	c.joined = true
}

// A creator creates the machine's VM, and VMs of other machines, in the machine's vApp.
type creator struct {
	session     *session.Session
	inputs      *inputs
	vdc         vcd.VDC
	pass        *creation
	design      design
	layout      layout
	leftovers   leftovers
	requests    requests
	records     *records
	observer    observer
	tasks       tasks
	recorder    events.EventRecorder
	now         func() time.Time
	gatherFor   time.Duration // how long to wait for machines to create together
	gatherSince *time.Time    // when the machine first needed its VM
}

func newCreator(s *scope) creator {
	return creator{
		session:     s.session,
		inputs:      &s.inputs,
		vdc:         s.target.vdc,
		pass:        &s.creation,
		design:      design{inputs: &s.inputs, target: &s.target},
		layout:      newLayout(s),
		leftovers:   newLeftovers(s),
		requests:    requests{client: s.reconciler.Client, live: s.reconciler.Live},
		records:     s.records,
		observer:    newObserver(s),
		tasks:       newTasks(s),
		recorder:    s.reconciler.Recorder,
		now:         s.now,
		gatherFor:   cmp.Or(s.reconciler.Gather, defaultGather),
		gatherSince: &s.state.gatherSince,
	}
}

// defaultGather is how long the first machine waits for others. A request for several VMs takes little longer than a
// request for one, and machines that come later must wait for its end.
const defaultGather = time.Second

// gather returns how much longer the machine waits for others to share its request; zero or less if it does not wait. A
// machine with its own vApp never waits.
func (c creator) gather() time.Duration {
	if vapp.PerMachine(c.inputs.vcdCluster) {
		return 0
	}
	if c.gatherSince.IsZero() {
		*c.gatherSince = c.now()
	}
	return c.gatherSince.Add(c.gatherFor).Sub(c.now())
}

// member returns the machine as a member of a batch.
func (c creator) member() batch.Member {
	return batch.Member{
		Key:      c.inputs.key(),
		Machine:  client.ObjectKeyFromObject(c.inputs.vcdMachine),
		Spec:     c.design.vm(),
		Selected: c.design.selectedTemplate(),
		Alone:    c.tasks.backoff.creating(),
		Follow:   func(what string, t vcd.Task) { c.tasks.follow(step(what), t) },
		Wake:     c.tasks.wake,
	}
}

// batch returns the members whose VMs one request creates: the machine itself, and suitable members of its cluster. It
// first records on each VCDMachine that the creation is requested. From then on, a VM that VCD does not show may exist.
func (c creator) batch(ctx context.Context, suits func(batch.Member) bool) ([]batch.Member, error) {
	if !vapp.PerMachine(c.inputs.vcdCluster) || c.inputs.zoneName() != "" {
		if err := c.records.saveVAppCount(ctx); err != nil {
			return nil, err
		}
	}
	at := timeOf(c.now())
	var members []batch.Member
	names := map[string]bool{c.inputs.vcdMachine.Spec.RecordedState.VMName: true}
	for _, m := range c.pass.current.Members {
		if !c.includes(m, names, suits) {
			continue
		}
		names[m.Spec.Name] = true
		var err error
		switch m.First, err = c.requests.saveRequested(ctx, m, at); {
		case err == nil:
			members = append(members, m)
		case m.Key == c.inputs.key():
			return nil, err
		default:
			ctrl.LoggerFrom(ctx).Info("Skipping a machine that waits for the same vApp", "reason", err.Error())
		}
	}
	c.inputs.vcdMachine.Spec.RecordedState.CreationRequestedAt = at
	if selected := c.design.selectedTemplate(); selected != nil {
		c.inputs.vcdMachine.Spec.RecordedState.Template = selected
	}
	return members, nil
}

// includes reports whether the request also creates the VM of m. names are the VM names that the batch already
// contains. A naming template may give two machines the same name: the second one gets the conflict in a batch of its
// own.
func (c creator) includes(m batch.Member, names map[string]bool, suits func(batch.Member) bool) bool {
	if m.Key == c.inputs.key() {
		return true
	}
	return !names[m.Spec.Name] && ofCluster(m, c.inputs.vcdCluster.Spec.InfraID) && suits(m)
}

// ofCluster reports whether the VM of c belongs to the cluster with the infrastructure ID id.
func ofCluster(c batch.Member, id string) bool {
	marker, ok := vcd.ParseMarker(c.Spec.Description)
	return ok && marker.Cluster == id
}

// room returns how many more VMs the vApp can hold.
func (c creator) room() int {
	if c.pass.vApp == nil {
		return vapp.MaxVMs
	}
	return vapp.MaxVMs - len(c.pass.vApp.VMs)
}

// whileRoom returns a filter for the other members of a batch, which accepts suitable members until the vApp is full.
func (c creator) whileRoom(suits func(batch.Member) bool) func(batch.Member) bool {
	left := c.room() - 1
	return func(m batch.Member) bool {
		if left <= 0 || !suits(m) {
			return false
		}
		left--
		return true
	}
}

// refused handles a request to create members that failed. It withdraws their records if VCD certainly rejected it.
func (c creator) refused(ctx context.Context, what step, members []batch.Member, err error) (phases.Result, error) {
	if slices.Contains(c.requests.saveWithdrawn(ctx, members, err), c.inputs.key()) {
		c.inputs.vcdMachine.Spec.RecordedState.CreationRequestedAt = nil
	}
	return c.tasks.failedRequest(what, err)
}

// specs returns the VM specs of machines.
func specs(machines []batch.Member) []vcd.VMSpec {
	result := make([]vcd.VMSpec, 0, len(machines))
	for _, c := range machines {
		result = append(result, c.Spec)
	}
	return result
}
