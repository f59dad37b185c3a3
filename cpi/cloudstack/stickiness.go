// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// policyName is the name of the stickiness policies that this backend creates.
const policyName = "kubernetes"

// methods are the methods of stickiness policies.
var methods = []string{"LbCookie", "AppCookie", "SourceBased"}

// parseStickiness parses a method and its parameters.
func parseStickiness(text string) (*cloudstack.Policy, error) {
	words := service.List(strings.ReplaceAll(text, " ", ","))
	if len(words) == 0 {
		return nil, nil
	}
	at := slices.IndexFunc(methods, func(m string) bool { return strings.EqualFold(m, words[0]) })
	if at < 0 {
		return nil, fmt.Errorf("%q is not a stickiness method: use %s", words[0], strings.Join(methods, ", "))
	}
	out := &cloudstack.Policy{Name: policyName, Method: methods[at], Params: map[string]string{}}
	for _, word := range words[1:] {
		name, value, given := strings.Cut(word, "=")
		if !given {
			value = "true"
		}
		if name == "" || value == "" {
			return nil, fmt.Errorf("%q is not a parameter: use name=value", word)
		}
		out.Params[name] = value
	}
	return out, nil
}

// stickinessOf returns the desired policy of a port, or nil if this backend should create none. UDP ports have none.
func stickinessOf(want service.Desired, port service.Port) *cloudstack.Policy {
	e, _ := want.Extra.(extra)
	if e.Stickiness == nil || port.Protocol != loadbalancer.TCP {
		return nil
	}
	out := *e.Stickiness
	out.Description = marker{owner: want.Owner}.String()
	return &out
}

// needsPolicies reports whether the policies of a rule are needed: a policy is requested, or the rule's marker records
// one.
func needsPolicies(want service.Desired, r cloudstack.Rule) bool {
	m, _ := parseMarker(r.Description)
	e, _ := want.Extra.(extra)
	return m.sticky || e.Stickiness != nil
}

// endStickiness plans the removal of this backend's policy from a rule that should have none. A policy that a user
// created is kept.
func (p *planner) endStickiness(have cloudstack.Rule, port service.Port) {
	if stickinessOf(p.want, port) != nil {
		return
	}
	for _, policy := range p.state.policies[have.ID] {
		if m, marked := parseMarker(policy.Description); marked && same(m.owner, p.want.Owner) {
			p.do(step{verb: deletePolicy, rule: have, policy: policy}, "remove the stickiness of %s", have.Name)
		}
	}
}

// beginStickiness plans the policy of a rule. It replaces any other policy.
func (p *planner) beginStickiness(target string, rule cloudstack.Rule, port service.Port) {
	want := stickinessOf(p.want, port)
	if want == nil || slices.ContainsFunc(p.state.policies[rule.ID], func(have cloudstack.Policy) bool {
		return strings.EqualFold(have.Method, want.Method) && maps.Equal(have.Params, want.Params)
	}) {
		return
	}
	p.do(step{verb: createPolicy, address: target, rule: rule, policy: *want}, "set the stickiness of %s to %s", rule.Name,
		want.Method)
}
