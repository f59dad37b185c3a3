// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// createRule creates a DNAT rule, and verifies that its owner is alone on its addresses.
func createRule(ctx context.Context, w writer, step lb.Step) error {
	g := w.gateway
	want := *step.Rule
	if err := resolve(ctx, w, g.profiles, &want.Profile); err != nil {
		return err
	}
	want.Object = written(step, want.Description)
	mine := addressesOfRule(want, g.claims.known())
	settled := isSettled(want, g.rules.known())
	before := mine.occupants(nil, g.rules.known())
	_, err := create(ctx, w, g.rules, want, func() (vcd.Task, error) {
		return w.session.NAT.CreateDNAT(ctx, g.id, vcd.NATRule{
			Ref:         vcd.Ref{Name: want.Name},
			Description: want.Description,
			External:    want.External.String(),
			Internal:    want.Internal.String(),
			Port:        want.ExternalPort,
			Profile:     vcd.Ref{ID: want.Profile.ID},
		})
	})
	if err != nil || settled {
		return replanIfDeleted(ctx, w, g.profiles, want.Profile.ID, err)
	}
	return verifySoleOwner(ctx, w, mine, before, func(ctx context.Context) error { return withdrawRule(ctx, w, want) })
}

// withdrawRule deletes a rule that was just created. If another owner uses its internal address, it also deletes the
// owner's virtual services there.
func withdrawRule(ctx context.Context, w writer, want lb.Rule) error {
	g := w.gateway
	inside := addressesOfRule(want, g.claims.known())
	inside.services = []netip.Addr{want.Internal}
	inside.rules = nil
	defer g.rules.invalidate()
	rules, err := g.rules.get(ctx, w.session, w.fresh())
	if err != nil {
		return err
	}
	for _, rule := range rules {
		if rule.Name != want.Name || !sameOwner(rule.Description, want.Description) {
			continue
		}
		task, err := w.session.NAT.DeleteRule(ctx, g.id, rule.ID)
		if _, err = w.wait(ctx, task, err); err != nil {
			return err
		}
	}
	if len(inside.occupants(g.services.known(), nil).others) == 0 {
		return nil
	}
	return withdrawServices(ctx, w, want.Description,
		func(vs lb.VirtualService) bool { return slices.Contains(vs.VIPs, want.Internal) })
}

func updateRule(ctx context.Context, w writer, step lb.Step) error {
	want := *step.Rule
	if err := resolve(ctx, w, w.gateway.profiles, &want.Profile); err != nil {
		return err
	}
	id, found, err := findRule(ctx, w, step.ID)
	if err != nil || !found {
		return cmp.Or(err, failed(loadbalancer.ErrBusy, "it was deleted in the meantime"))
	}
	step.ID = id
	want.Object = written(step, want.Description)
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
	err = update(ctx, w, objectUpdate[lb.Rule]{
		list:  w.gateway.rules,
		step:  step,
		start: func() (vcd.Task, error) { return w.session.NAT.UpdateDNAT(ctx, w.gateway.id, id, change) },
		edit:  func(r *lb.Rule) { *r = want },
	})
	return replanIfDeleted(ctx, w, w.gateway.profiles, want.Profile.ID, err)
}

func deleteRule(ctx context.Context, w writer, step lb.Step) error {
	defer w.gateway.used.invalidate()
	id, found, err := findRule(ctx, w, step.ID)
	if err != nil || !found {
		return err
	}
	return remove(ctx, w, w.gateway.rules, id, func() (vcd.Task, error) {
		return w.session.NAT.DeleteRule(ctx, w.gateway.id, id)
	})
}

// findRule returns the actual ID of a rule, whose given ID may be provisional, and reports whether the rule is known to
// exist.
func findRule(ctx context.Context, w writer, id string) (realID string, found bool, err error) {
	name, unnamed := strings.CutPrefix(id, unnamedRule)
	if !unnamed {
		return id, true, nil
	}
	rules, err := w.gateway.rules.get(ctx, w.session, w.fresh())
	i := slices.IndexFunc(rules, func(r lb.Rule) bool { return r.Name == name && !r.Other })
	if i < 0 {
		return id, false, err
	}
	return rules[i].ID, true, err
}
