// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sync/atomic"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// A scope is one reconcile of a VCDMachine: its inputs, the results of the phases so far, and the state of the machine
// between passes. A phase takes the fields that its step needs, and stores results for later phases.
type scope struct {
	reconciler *Reconciler
	inputs     inputs
	state      *state    // kept between passes
	records    *records  // writes to the machine and its cluster
	schedule   *schedule // of the next pass

	session   *session.Session // set by PlacementReady, or by the deletion
	zone      *placement.Zone  // set by PlacementReady, or by the deletion; nil: no zone, or it is gone
	target    target           // set by PlacementReady; its addresses by AddressesClaimed
	vm        *vmState         // set by VAppReady, which observes
	creation  creation         // set by VAppReady
	bootstrap *bootstrapData   // set by BootstrapReady if it read the data; nil: read on demand

	complete   bool // all phases of Ready are complete
	unanswered bool // VCD did not respond in this pass
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
	s.vm.beginPass()
	return s
}

// Tolerate reports whether this pass may end without a response from VCD, which requires that VCD responded in the
// previous pass.
func (s *scope) Tolerate() bool {
	s.unanswered = true
	return !s.state.unanswered
}

// Established reports whether the VM ran once. Its node keeps working while VCD cannot be reached.
func (s *scope) Established() bool {
	return s.inputs.vcdMachine.DeletionTimestamp.IsZero() && s.inputs.hasRun()
}

func (s *scope) now() time.Time {
	if s.reconciler.Now != nil {
		return s.reconciler.Now()
	}
	return time.Now()
}

// wake returns a function that triggers a reconcile of the machine.
func (s *scope) wake() func() { return s.reconciler.wakeUps.ForObject(s.inputs.vcdMachine) }

// closeBatch ensures, at the end of a pass that did not join a batch, that no other machine creates the VM.
func (s *scope) closeBatch() {
	if !s.creation.joined {
		s.reconciler.batches.Leave(s.inputs.batchKey(), s.inputs.key())
	}
}

// A schedule holds when a complete machine is reconciled again.
type schedule struct{ after time.Duration } // zero: when a watch triggers it

// within schedules the next pass within d.
func (s *schedule) within(d time.Duration) {
	if s.after == 0 || d < s.after {
		s.after = d
	}
}

// A state caches facts about a machine between passes. It is lost on restart.
type state struct {
	vm           vmState
	freshness    freshness
	backoff      backoff
	missing      missing
	gatherSince  time.Time // when the machine first needed its VM
	cancellation cancellation
	unanswered   bool // VCD did not respond in the last pass
	// bootstrapChecked is the name of the Secret whose bootstrap data is valid. The data is read again when it is
	// written to the VM.
	bootstrapChecked string
	versionsCompared bool // of Kubernetes, in the image and in the Machine
}

// missing holds since when VCD does not show the VM. Zero times mean that VCD shows the VM, or that only another
// process observed the loss.
type missing struct {
	since     time.Time
	announced time.Time // when machines of other clusters were woken to observe their VMs
	// held is when the machine was last held back although its VM could have been declared gone, in Unix nanoseconds.
	// The passes of the cluster's other machines read it.
	held atomic.Int64
}
