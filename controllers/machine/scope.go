// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sync/atomic"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// A scope is one reconcile of a VCDMachine: its inputs, what the phases found so far, and what the process remembers of
// the machine. A phase takes from it what its step needs, and stores what later phases read.
type scope struct {
	reconciler *Reconciler
	inputs     inputs
	state      *state    // kept between passes
	records    *records  // writes to the machine and its cluster
	schedule   *schedule // of the next pass

	session   *session.Session // set by PlacementReady, or by the deletion
	zone      *placement.Zone  // set by PlacementReady, or by the deletion; nil: none, or it is gone
	target    target           // set by PlacementReady; its addresses by AddressesClaimed
	vm        *vmState         // set by VAppReady, which observes
	creation  creation         // set by VAppReady
	bootstrap *bootstrapData   // set by BootstrapReady if it read it; nil: read when it is needed

	complete   bool // all phases of Ready are
	unanswered bool // VCD gave no answer in this pass
}

// newScope returns a scope that has observed nothing yet.
func (r *Reconciler) newScope(in inputs) *scope {
	st := r.states.Of(in.vcdMachine.UID)
	s := &scope{
		reconciler: r,
		inputs:     in,
		state:      st,
		schedule:   &schedule{},
		vm:         &st.vm,
	}
	s.records = &records{client: r.Client, inputs: &s.inputs}
	s.vm.begin()
	return s
}

// Tolerate reports whether VCD may leave this pass unanswered: it answered in the one before.
func (s *scope) Tolerate() bool {
	s.unanswered = true
	return !s.state.unanswered
}

// Established reports whether the VM ran once. Its node works on while VCD cannot be asked.
func (s *scope) Established() bool {
	return s.inputs.vcdMachine.DeletionTimestamp.IsZero() && s.inputs.cameUp()
}

func (s *scope) now() time.Time {
	if s.reconciler.Now != nil {
		return s.reconciler.Now()
	}
	return time.Now()
}

// wake returns a function that triggers a reconcile of the machine.
func (s *scope) wake() func() { return s.reconciler.wakeUps.ForObject(s.inputs.vcdMachine) }

// leave ensures, at the end of a pass that did not join a batch, that no other machine creates the VM.
func (s *scope) leave() {
	if !s.creation.joined {
		s.reconciler.batches.Leave(s.inputs.queueName(), s.inputs.key())
	}
}

// A schedule is when a machine that is complete is reconciled again.
type schedule struct{ after time.Duration } // zero: when a watch triggers it

// within makes the next pass come within d.
func (s *schedule) within(d time.Duration) {
	if s.after == 0 || d < s.after {
		s.after = d
	}
}

// A state is what the process knows of a machine between passes.
type state struct {
	vm           vmState
	freshness    freshness
	backoff      backoff
	missing      missing
	gatherSince  time.Time // when the machine first required its VM to be created
	cancellation cancellation
	unanswered   bool // VCD gave no answer in the last pass
	// bootstrapChecked is the name of the Secret whose bootstrap data can be used. It is read again when it is written.
	bootstrapChecked string
	versionsCompared bool // of Kubernetes, in the image and in the Machine
}

// Missing is since when VCD does not show the VM. Zero times: it does, or another process knows.
type missing struct {
	since     time.Time
	announced time.Time // when machines of other clusters were woken to observe their VMs
	// held is when it was last held back although it could be declared gone, in Unix nanoseconds. The passes of the
	// cluster's other machines read it.
	held atomic.Int64
}
