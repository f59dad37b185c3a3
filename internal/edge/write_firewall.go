// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// createFirewallRule creates a rule before all others. The list is read after every change, because VCD does not show
// the IDs of new rules.
func createFirewallRule(ctx context.Context, w writer, step lb.Step) error {
	list := w.gateway.firewall
	rules, err := list.get(ctx, w.session, demand{maxAge: w.gateway.driver.opts.MaxAge})
	if err != nil {
		return err
	}
	want := *step.Firewall
	spec := firewallSpec(step.Name, want)
	if len(rules) > 0 {
		spec.Before = rules[0].ID
	}
	listed := lb.FirewallRule{Object: written(step, want.Description)}
	_, err = create(ctx, w, list, listed, func() (vcd.Task, error) {
		return w.session.Firewall.CreateRule(ctx, w.gateway.id, spec)
	})
	list.invalidate()
	if errors.Is(err, vcd.ErrInvalid) &&
		!slices.ContainsFunc(list.known(), func(x lb.FirewallRule) bool { return x.ID == spec.Before }) {
		return &failure{loadbalancer.ErrBusy, err} // the previously first rule was just deleted
	}
	return err
}

// firewallSpec returns the specification of a rule for VCD. A rule without sources drops all traffic.
func firewallSpec(name string, want lb.FirewallRule) vcd.FirewallRuleSpec {
	spec := vcd.FirewallRuleSpec{
		Name:        name,
		Description: want.Description,
		Sources:     want.Sources,
		Destination: want.Destination,
		Protocol:    string(want.Protocol),
		Ports:       want.Ports,
		Action:      "ALLOW",
	}
	if len(want.Sources) == 0 {
		spec.Action = "DROP"
	}
	return spec
}

func deleteFirewallRule(ctx context.Context, w writer, step lb.Step) error {
	return remove(ctx, w, w.gateway.firewall, step.ID, func() (vcd.Task, error) {
		return w.session.Firewall.DeleteRule(ctx, w.gateway.id, step.ID)
	})
}
