// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// natRuleURN begins the URN of a NAT rule; in all calls it goes by its UUID.
	natRuleURN = "urn:vcloud:natRule:"
	// unnamedRule begins the provisional id of a rule that was created here and not listed yet; its name follows.
	unnamedRule = "name:"
)

type ruleExecutor struct{ *executor }

// find makes sure that the step has the real id of its rule, and reports whether the rule exists as far as that is
// known.
func (e *ruleExecutor) find(ctx context.Context) (bool, error) {
	name, unnamed := strings.CutPrefix(e.step.ID, unnamedRule)
	if !unnamed {
		return true, nil
	}
	rules, err := e.gateway.rules.get(ctx, e.session, e.fresh())
	i := slices.IndexFunc(rules, func(r lb.Rule) bool { return r.Name == name && !r.Other })
	if i >= 0 {
		e.step.ID = rules[i].ID
	}
	return i >= 0, err
}

func (e *ruleExecutor) create(ctx context.Context) error {
	want := *e.step.Rule
	if err := resolve(ctx, e.executor, e.gateway.profiles, &want.Profile); err != nil {
		return err
	}
	want.Object = e.object(want.Description)
	mine := e.addressesOfRule()
	settled := e.settled()
	before := mine.occupants(nil, e.gateway.rules.known())
	_, err := create(ctx, e.executor, e.gateway.rules, want, func() (vcd.Task, error) {
		return e.session.NAT.CreateDNAT(ctx, e.gateway.id, vcd.NATRule{
			Ref:         vcd.Ref{Name: want.Name},
			Description: want.Description,
			External:    want.External.String(),
			Internal:    want.Internal.String(),
			Port:        want.ExternalPort,
			Profile:     vcd.Ref{ID: want.Profile.ID},
		})
	})
	if err != nil || settled {
		return lost(ctx, e.executor, e.gateway.profiles, want.Profile.ID, err)
	}
	return e.keep(ctx, mine, before, e.withdraw)
}

// withdraw deletes the rule that was just created and, if another owner is on the address that it leads to, the
// virtual services there.
func (e *ruleExecutor) withdraw(ctx context.Context) error {
	want := e.step.Rule
	inside := e.addressesOfRule()
	inside.services = []netip.Addr{want.Internal}
	inside.rules = nil
	defer e.gateway.rules.invalidate()
	rules, err := e.gateway.rules.get(ctx, e.session, e.fresh())
	if err != nil {
		return err
	}
	for _, rule := range rules {
		if rule.Name != e.step.Name || !sameOwner(rule.Description, want.Description) {
			continue
		}
		task, err := e.session.NAT.DeleteRule(ctx, e.gateway.id, rule.ID)
		if _, err = e.wait(ctx, task, err); err != nil {
			return err
		}
	}
	if len(inside.occupants(e.gateway.services.known(), nil).others) == 0 {
		return nil
	}
	return e.withdrawServices(ctx, want.Description,
		func(vs lb.VirtualService) bool { return slices.Contains(vs.VIPs, want.Internal) })
}

func (e *ruleExecutor) update(ctx context.Context) error {
	want := *e.step.Rule
	if err := resolve(ctx, e.executor, e.gateway.profiles, &want.Profile); err != nil {
		return err
	}
	if found, err := e.find(ctx); err != nil || !found {
		return cmp.Or(err, failed(lb.ErrBusy, "it is gone meanwhile"))
	}
	external := want.External.String()
	internal := want.Internal.String()
	enabled := true
	change := vcd.DNATChange{
		Description: &want.Description,
		External:    &external,
		Internal:    &internal,
		Port:        &want.ExternalPort,
		Profile:     &want.Profile.ID,
		Enabled:     &enabled,
	}
	want.Object = e.object(want.Description)
	err := update(ctx, e.executor, e.gateway.rules,
		func() (vcd.Task, error) { return e.session.NAT.UpdateDNAT(ctx, e.gateway.id, e.step.ID, change) },
		func(r *lb.Rule) { *r = want })
	return lost(ctx, e.executor, e.gateway.profiles, want.Profile.ID, err)
}

func (e *ruleExecutor) remove(ctx context.Context) error {
	defer e.gateway.used.invalidate()
	if found, err := e.find(ctx); err != nil || !found {
		return err
	}
	return remove(ctx, e.executor, e.gateway.rules, func() (vcd.Task, error) {
		return e.session.NAT.DeleteRule(ctx, e.gateway.id, e.step.ID)
	})
}

type profileExecutor struct{ *executor }

func (e *profileExecutor) create(ctx context.Context) error {
	f, err := e.gateway.fact(ctx, e.session)
	if err != nil {
		return err
	}
	want := *e.step.Profile
	want.Object = e.object(want.Description)
	_, err = create(ctx, e.executor, e.gateway.profiles, want, func() (vcd.Task, error) {
		return e.session.NAT.CreatePortProfile(ctx, f.gateway, vcd.PortProfile{
			Ref:         vcd.Ref{Name: want.Name},
			Description: want.Description,
			Protocol:    string(want.Protocol),
			Port:        want.Port,
		})
	})
	return err
}

func (e *profileExecutor) update(ctx context.Context) error {
	f, err := e.gateway.fact(ctx, e.session)
	if err != nil {
		return err
	}
	want := *e.step.Profile
	want.Object = e.object(want.Description)
	change := vcd.PortProfileChange{
		Description: &want.Description,
		Port:        &vcd.ProfilePort{Protocol: string(want.Protocol), Port: want.Port},
	}
	return update(ctx, e.executor, e.gateway.profiles,
		func() (vcd.Task, error) { return e.session.NAT.UpdatePortProfile(ctx, f.gateway, e.step.ID, change) },
		func(p *lb.Profile) { *p = want })
}

func (e *profileExecutor) remove(ctx context.Context) error {
	return remove(ctx, e.executor, e.gateway.profiles, func() (vcd.Task, error) {
		return e.session.NAT.DeletePortProfile(ctx, e.step.ID)
	})
}
