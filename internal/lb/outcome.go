// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A phase is a group of writes; phases run in this order.
type phase int

const (
	phaseClaim    phase = iota // addresses are allocated and marked
	phasePrepare               // certificates, IP sets
	phasePool                  // pools are created and updated
	phaseFirewall              // the firewall drops what is not admitted, before anything can be reached
	phaseFree                  // what is in the way is removed
	phaseCreate                // virtual services are created
	phaseUpdate                // virtual services are updated
	phaseReplace               // virtual services are created on what the updates freed
	phaseForward               // port profiles and NAT rules
	phaseRemove                // what is not wanted any more
	phaseRelease               // addresses and IP sets that nothing uses
	phases
)

// An outcome is what one part of the planner, or all parts so far, add to the plan.
type outcome struct {
	known    Facts // what is observed; no part of the result
	needs    Facts
	refusals []loadbalancer.Finding
	notices  []loadbalancer.Finding
	steps    [phases][]Step
}

// add appends the outcome of the part that comes next.
func (o *outcome) add(next outcome) {
	o.needs |= next.needs
	o.refusals = append(o.refusals, next.refusals...)
	o.notices = append(o.notices, next.notices...)
	for ph, steps := range next.steps {
		o.steps[ph] = append(o.steps[ph], steps...)
	}
}

// need reports whether facts are known, and asks for them if not.
func (o *outcome) need(f Facts) bool {
	o.needs |= f &^ o.known
	return o.known.Has(f)
}

func (o *outcome) refuse(reason, format string, args ...any) {
	o.refusals = append(o.refusals, *finding(reason, format, args...))
}

func (o *outcome) notice(reason, format string, args ...any) {
	o.notices = append(o.notices, *finding(reason, format, args...))
}

func (o *outcome) step(ph phase, s Step) { o.steps[ph] = append(o.steps[ph], s) }

func (o *outcome) update(ph phase, have Object, s Step) {
	s.Verb = Update
	s.Name = have.Name
	s.ID = have.ID
	s.Repair = have.State == Failed
	o.step(ph, s)
}

func (o *outcome) remove(ph phase, kind loadbalancer.Kind, have Object) {
	o.step(ph, Step{
		Verb: Delete,
		Kind: kind,
		Name: have.Name,
		ID:   have.ID,
	})
}

// removeEach removes all objects of a list.
func removeEach[T any](o *outcome, ph phase, kind loadbalancer.Kind, list []owned[T]) {
	for _, x := range list {
		o.remove(ph, kind, x.Object)
	}
}

// blocked reports whether there cannot be any steps.
func (o *outcome) blocked() bool { return len(o.refusals) > 0 || o.needs != 0 }

// stops reports whether the parts that come next cannot be planned: without an address they would be guessed.
func (o *outcome) stops() bool {
	return len(o.refusals) > 0 || o.needs&(Addresses|Forwardings|Hosts) != 0
}

// stepsBut are the steps in their order, but for some.
func (o *outcome) stepsBut(leftOut func(Step) bool) []loadbalancer.Step {
	var out []loadbalancer.Step
	for _, steps := range o.steps {
		for _, s := range steps {
			if !leftOut(s) {
				out = append(out, s)
			}
		}
	}
	return out
}
