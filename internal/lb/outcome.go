// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A phase is a group of writes. Phases run in this order.
type phase int

const (
	phaseClaim    phase = iota // allocate and mark addresses
	phasePrepare               // certificates, IP sets
	phasePool                  // create and update pools
	phaseFirewall              // drop unadmitted traffic before anything is reachable
	phaseFree                  // remove obstacles
	phaseCreate                // create virtual services
	phaseUpdate                // update virtual services
	phaseReplace               // create virtual services on addresses that updates freed
	phaseForward               // port profiles and NAT rules
	phaseRemove                // remove objects that are no longer needed
	phaseRelease               // release unused addresses and IP sets
	phases
)

// An outcome is the contribution of one part of the planner, or of all parts so far, to the plan.
type outcome struct {
	known    Facts // observed facts; not part of the result
	needs    Facts
	refusals []loadbalancer.Finding
	notices  []loadbalancer.Finding
	steps    [phases][]Step
}

// add appends the outcome of the next part.
func (o *outcome) add(next outcome) {
	o.needs |= next.needs
	o.refusals = append(o.refusals, next.refusals...)
	o.notices = append(o.notices, next.notices...)
	for ph, steps := range next.steps {
		o.steps[ph] = append(o.steps[ph], steps...)
	}
}

// need reports whether facts are known. If not, it adds them to the needs.
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

// removeEach adds steps that remove all objects of a list.
func removeEach[T any](o *outcome, ph phase, kind loadbalancer.Kind, list []owned[T]) {
	for _, x := range list {
		o.remove(ph, kind, x.Object)
	}
}

// blocked reports whether the plan cannot have steps.
func (o *outcome) blocked() bool { return len(o.refusals) > 0 || o.needs != 0 }

// stops reports whether the following parts cannot be planned, because their addresses would be guesses.
func (o *outcome) stops() bool {
	return len(o.refusals) > 0 || o.needs&(Addresses|Forwardings|Hosts) != 0
}

// stepsExcept returns the steps in order, except for those that leftOut matches.
func (o *outcome) stepsExcept(leftOut func(Step) bool) []loadbalancer.Step {
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
