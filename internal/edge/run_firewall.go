package edge

import (
	"context"
	"errors"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func firewallName(x vcd.FirewallRule) named { return named{x.ID, x.Name, x.Description} }

// createFirewall makes a rule that comes before all others. Which is the first of them, VCD has to be asked after every change: it does not
// tell the ids of new rules.
func (r *run) createFirewall(ctx context.Context) error {
	spec, part := r.step.Firewall, r.gateway.firewall
	rules, err := part.get(ctx, r.session, demand{maxAge: r.gateway.driver.opts.MaxAge})
	if err != nil {
		return err
	}
	wanted := vcd.FirewallRuleSpec{
		Name: r.step.Name, Description: spec.Description, Sources: spec.Sources, Destination: spec.Destination, Protocol: string(spec.Protocol),
		Ports: spec.Ports, Action: "ALLOW",
	}
	if len(spec.Sources) == 0 {
		wanted.Action = "DROP"
	}
	if len(rules) > 0 {
		wanted.Before = rules[0].ID
	}
	err = create(ctx, r, creation[vcd.FirewallRule]{
		part: part, description: spec.Description, name: firewallName,
		start: func() (vcd.Task, error) { return r.session.Firewall.CreateRule(ctx, r.gateway.id, wanted) },
		made: func(id string) vcd.FirewallRule {
			return vcd.FirewallRule{ID: id, Name: wanted.Name, Description: wanted.Description, Enabled: true, Action: wanted.Action}
		},
	})
	part.invalidate()
	if errors.Is(err, vcd.ErrInvalid) && !slices.ContainsFunc(part.known(), func(x vcd.FirewallRule) bool { return x.ID == wanted.Before }) {
		return &failure{lb.ErrBusy, err} // somebody has just deleted the rule that was the first
	}
	return err
}

func (r *run) deleteFirewall(ctx context.Context) error {
	return remove(ctx, r, r.gateway.firewall, func() (vcd.Task, error) { return r.session.Firewall.DeleteRule(ctx, r.gateway.id, r.step.ID) })
}
