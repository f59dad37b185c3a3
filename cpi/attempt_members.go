// SPDX-License-Identifier: Apache-2.0

package cpi

import "k8s.io/apimachinery/pkg/util/sets"

// A memberState contains the names of the nodes to which a load balancer may send requests. The sets are replaced,
// never modified.
type memberState struct {
	// applied are the members of the last complete plan, and of plans that were started since. Nil means unknown: no
	// plan was complete since the process started.
	applied sets.Set[string]
	// planned are the members in the request of the attempt that runs. Nil means that no attempt runs, or that it has
	// not listed the nodes yet.
	planned sets.Set[string]
}

// notePlannedMembers records the members of the request.
func (a *attempt) notePlannedMembers() {
	names := a.memberNames()
	a.states.change(a.service.UID, func(s *serviceState) { s.members.planned = names })
}

// clearPlannedMembers records that the attempt ends.
func (a *attempt) clearPlannedMembers() {
	a.states.change(a.service.UID, func(s *serviceState) { s.members.planned = nil })
}

// noteChangedMembers records that steps may add the members of the request. It is not known whether they removed others.
func (a *attempt) noteChangedMembers() {
	names := a.memberNames()
	a.states.change(a.service.UID, func(s *serviceState) {
		if s.members.applied != nil {
			s.members.applied = s.members.applied.Union(names)
		}
	})
}

// noteAppliedMembers records that the load balancer has the members of the request.
func (a *attempt) noteAppliedMembers() {
	names := a.memberNames()
	a.states.change(a.service.UID, func(s *serviceState) { s.members.applied = names })
}

// memberNames returns the names of the nodes in the request.
func (a *attempt) memberNames() sets.Set[string] {
	names := sets.New[string]()
	for _, m := range a.request.Desired.Members {
		names.Insert(m.Node)
	}
	return names
}
