package edge

import (
	"context"
	"errors"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

type firewallExecutor struct{ *executor }

// create creates a rule before all others. The list is read after every change, as VCD does not show the ids of new rules.
func (e *firewallExecutor) create(ctx context.Context) error {
	want, list := e.step.Firewall, e.gateway.firewall
	rules, err := list.get(ctx, e.session, demand{maxAge: e.gateway.driver.opts.MaxAge})
	if err != nil {
		return err
	}
	spec := vcd.FirewallRuleSpec{
		Name: e.step.Name, Description: want.Description, Sources: want.Sources, Destination: want.Destination,
		Protocol: string(want.Protocol), Ports: want.Ports, Action: "ALLOW",
	}
	if len(want.Sources) == 0 {
		spec.Action = "DROP"
	}
	if len(rules) > 0 {
		spec.Before = rules[0].ID
	}
	listed := lb.FirewallRule{Object: e.object(want.Description)}
	_, err = create(ctx, e.executor, list, listed, func() (vcd.Task, error) {
		return e.session.Firewall.CreateRule(ctx, e.gateway.id, spec)
	})
	list.invalidate()
	if errors.Is(err, vcd.ErrInvalid) && !slices.ContainsFunc(list.known(), func(x lb.FirewallRule) bool { return x.ID == spec.Before }) {
		return &failure{lb.ErrBusy, err} // the rule that was the first was just deleted
	}
	return err
}

func (e *firewallExecutor) remove(ctx context.Context) error {
	return remove(ctx, e.executor, e.gateway.firewall, func() (vcd.Task, error) {
		return e.session.Firewall.DeleteRule(ctx, e.gateway.id, e.step.ID)
	})
}
