// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// planForwarding plans the NAT rules from clients to virtual services, and the port profiles that they refer to.
func planForwarding(in input, lb design) outcome {
	all := in.outcome()
	if !lb.frontend.translated {
		return all
	}
	for _, b := range lb.bindings {
		profile, out := planProfile(in, b)
		all.add(out)
		all.add(planRule(in, lb, b, profile))
	}
	return all
}

// planProfile plans the port profile of a listener and returns the reference to it.
func planProfile(in input, b binding) (Ref, outcome) {
	out := in.outcome()
	have := b.profile
	want := Profile{
		Object:   Object{Description: describe(have.Description, b.marker(in.desired.Owner))},
		Protocol: b.listener.Protocol,
		Port:     b.listener.Port,
	}
	if !have.exists() {
		name := nameFor(KindProfile, in.desired.Owner, b.key())
		out.step(phaseForward, Step{
			Verb:    Create,
			Kind:    KindProfile,
			Name:    name,
			Profile: &want,
		})
		return Ref{Name: name}, out
	}
	if want.differs(have.object) {
		out.update(phaseForward, have.Object, Step{
			Kind:    KindProfile,
			Profile: &want,
		})
	}
	return Ref{have.ID, have.Name}, out
}

// planRule plans the NAT rule of a listener.
func planRule(in input, lb design, b binding, profile Ref) outcome {
	out := in.outcome()
	have := b.rule
	m := b.marker(in.desired.Owner)
	m.Share = in.desired.Share
	want := Rule{
		Object:       Object{Description: describe(have.Description, m)},
		External:     lb.frontend.external[loadbalancer.IPv4],
		Internal:     b.vips[0],
		ExternalPort: b.listener.Port,
		Profile:      profile,
	}
	switch {
	case !have.exists():
		out.step(phaseForward, Step{
			Verb: Create,
			Kind: KindRule,
			Name: nameFor(KindRule, in.desired.Owner, b.key()),
			Rule: &want,
		})
	case want.differs(have.object):
		out.update(phaseForward, have.Object, Step{
			Kind: KindRule,
			Rule: &want,
		})
	}
	return out
}
