// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

type serviceExecutor struct{ *executor }

// wanted is the virtual service of the step, its references resolved.
func (e *serviceExecutor) wanted(ctx context.Context) (lb.VirtualService, error) {
	want := *e.step.Service
	want.Object = e.object(want.Description)
	err := resolve(ctx, e.executor, e.gateway.pools, &want.Pool)
	if err == nil {
		err = resolve(ctx, e.executor, e.gateway.groups, &want.EngineGroup)
	}
	if err == nil {
		err = resolve(ctx, e.executor, e.gateway.certificates, &want.Certificate)
	}
	return want, err
}

// lost makes a refusal a reason to plan again, if something that the virtual service refers to is gone.
func (e *serviceExecutor) lost(ctx context.Context, want lb.VirtualService, err error) error {
	return lost(ctx, e.executor, e.gateway.certificates, want.Certificate.ID,
		lost(ctx, e.executor, e.gateway.pools, want.Pool.ID, err))
}

func (e *serviceExecutor) create(ctx context.Context) error {
	want, err := e.wanted(ctx)
	if err != nil {
		return err
	}
	want.Health = "PENDING"
	v4, v6 := byFamily(want.VIPs)
	mine := e.addressesOfService()
	before := mine.occupants(e.gateway.services.known(), nil)
	id, err := create(ctx, e.executor, e.gateway.services, want, func() (vcd.Task, error) {
		return e.session.Balancers.CreateVirtualService(ctx, vcd.VirtualService{
			Ref:         vcd.Ref{Name: want.Name},
			Description: want.Description,
			Gateway:     vcd.Ref{ID: e.gateway.id},
			Pool:        vcd.Ref{ID: want.Pool.ID},
			EngineGroup: vcd.Ref{ID: want.EngineGroup.ID},
			Certificate: vcd.Ref{ID: want.Certificate.ID},
			Address:     v4,
			IPv6Address: v6,
			Ports:       servicePorts(want),
			Application: vcd.Application(want.Application),
			Transparent: want.Transparent,
		})
	})
	if id != "" {
		e.gateway.groups.edit(want.EngineGroup.ID, func(g *lb.EngineGroup) { g.Deployed++ })
	}
	if err != nil || before.ours || e.claimed(want.VIPs...) || e.ruleFollows() {
		return e.lost(ctx, want, err)
	}
	return e.keep(ctx, mine, before, func(ctx context.Context) error {
		return e.withdrawServices(ctx, want.Description,
			func(vs lb.VirtualService) bool { return vs.Name == want.Name })
	})
}

func (e *serviceExecutor) update(ctx context.Context) error {
	want, err := e.wanted(ctx)
	if err != nil {
		return err
	}
	v4, v6 := byFamily(want.VIPs)
	ports := servicePorts(want)
	application := vcd.Application(want.Application)
	change := vcd.VirtualServiceChange{
		Description: &want.Description,
		Pool:        &want.Pool.ID,
		Certificate: &want.Certificate.ID,
		Address:     &v4,
		IPv6Address: &v6,
		Ports:       &ports,
		Application: &application,
		Transparent: &want.Transparent,
	}
	shared := e.movesShared(want.VIPs)
	err = update(ctx, e.executor, e.gateway.services,
		func() (vcd.Task, error) { return e.session.Balancers.UpdateVirtualService(ctx, e.step.ID, change) },
		func(vs *lb.VirtualService) {
			want.EngineGroup = vs.EngineGroup
			want.Health = vs.Health
			*vs = want
		})
	if err = e.lost(ctx, want, err); !shared || !errors.Is(err, vcd.ErrInvalid) {
		return err
	}
	return e.stays(ctx, change, err)
}

// movesShared reports whether the virtual service of the step gets other addresses than those that it shares, as far as
// is known.
func (e *serviceExecutor) movesShared(vips []netip.Addr) bool {
	known := e.gateway.services.known()
	i := slices.IndexFunc(known, func(vs lb.VirtualService) bool { return vs.ID == e.step.ID })
	sorted := func(vips []netip.Addr) []netip.Addr {
		return slices.SortedFunc(slices.Values(vips), netip.Addr.Compare)
	}
	if i < 0 || slices.Equal(sorted(known[i].VIPs), sorted(vips)) {
		return false
	}
	return slices.ContainsFunc(known, func(vs lb.VirtualService) bool {
		return vs.ID != e.step.ID &&
			slices.ContainsFunc(vs.VIPs, func(a netip.Addr) bool { return slices.Contains(known[i].VIPs, a) })
	})
}

// stays finds out whether a change was refused for the addresses: then VCD takes the rest of it. The next plan deletes
// and creates virtual services that share their addresses. The description says where clients come from, and stays.
func (e *serviceExecutor) stays(ctx context.Context, change vcd.VirtualServiceChange, refusal error) error {
	change.Address = nil
	change.IPv6Address = nil
	change.Description = nil
	task, err := e.session.Balancers.UpdateVirtualService(ctx, e.step.ID, change)
	if _, err = e.wait(ctx, task, err); err != nil {
		return refusal
	}
	e.gateway.refusals.forbidMoves()
	return &failure{lb.ErrBusy, refusal}
}

func (e *serviceExecutor) remove(ctx context.Context) error {
	err := remove(ctx, e.executor, e.gateway.services, func() (vcd.Task, error) {
		return e.session.Balancers.DeleteVirtualService(ctx, e.step.ID)
	})
	if err == nil {
		e.gateway.used.invalidate()
		e.gateway.groups.invalidate() // one has room again
	}
	return err
}

// withdrawServices deletes virtual services of an owner that were just created.
func (e *executor) withdrawServices(ctx context.Context, description string,
	created func(lb.VirtualService) bool,
) error {
	for _, vs := range e.gateway.services.known() {
		if !created(vs) || !sameOwner(vs.Description, description) {
			continue
		}
		task, err := e.session.Balancers.DeleteVirtualService(ctx, vs.ID)
		if _, err = e.wait(ctx, task, err); err != nil {
			return err
		}
		e.gateway.services.invalidate()
	}
	return nil
}

func byFamily(addresses []netip.Addr) (v4, v6 netip.Addr) {
	for _, a := range addresses {
		if a.Is4() {
			v4 = a
		} else {
			v6 = a
		}
	}
	return v4, v6
}

func servicePorts(vs lb.VirtualService) []vcd.ServicePort {
	port := vcd.ServicePort{From: vs.Port, To: vs.Port, Profile: vcd.TCPProxy, SSL: vs.SSL}
	if vs.Protocol == lb.UDP {
		port.Profile = vcd.UDPFastPath
	}
	return []vcd.ServicePort{port}
}

type certificateExecutor struct{ *executor }

func (e *certificateExecutor) create(ctx context.Context) error {
	want := e.step.Certificate
	item := lb.CertificateItem{Object: e.object(want.Description)}
	_, err := create(ctx, e.executor, e.gateway.certificates, item, func() (vcd.Task, error) {
		made, err := e.session.Balancers.CreateCertificate(ctx, vcd.CertificateSpec{
			Alias:       e.step.Name,
			Description: want.Description,
			Certificate: []byte(want.Chain),
			PrivateKey:  []byte(want.Key),
		})
		return vcd.Task{State: vcd.TaskSucceeded, Owner: made.ID}, err
	})
	return err
}

func (e *certificateExecutor) remove(ctx context.Context) error {
	return remove(ctx, e.executor, e.gateway.certificates, func() (vcd.Task, error) {
		return vcd.Task{State: vcd.TaskSucceeded}, e.session.Balancers.DeleteCertificate(ctx, e.step.ID)
	})
}

type firewallExecutor struct{ *executor }

// create creates a rule before all others. The list is read after every change, as VCD does not show the ids of new
// rules.
func (e *firewallExecutor) create(ctx context.Context) error {
	want := e.step.Firewall
	list := e.gateway.firewall
	rules, err := list.get(ctx, e.session, demand{maxAge: e.gateway.driver.opts.MaxAge})
	if err != nil {
		return err
	}
	spec := vcd.FirewallRuleSpec{
		Name:        e.step.Name,
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
	if len(rules) > 0 {
		spec.Before = rules[0].ID
	}
	listed := lb.FirewallRule{Object: e.object(want.Description)}
	_, err = create(ctx, e.executor, list, listed, func() (vcd.Task, error) {
		return e.session.Firewall.CreateRule(ctx, e.gateway.id, spec)
	})
	list.invalidate()
	if errors.Is(err, vcd.ErrInvalid) &&
		!slices.ContainsFunc(list.known(), func(x lb.FirewallRule) bool { return x.ID == spec.Before }) {
		return &failure{lb.ErrBusy, err} // the rule that was the first was just deleted
	}
	return err
}

func (e *firewallExecutor) remove(ctx context.Context) error {
	return remove(ctx, e.executor, e.gateway.firewall, func() (vcd.Task, error) {
		return e.session.Firewall.DeleteRule(ctx, e.gateway.id, e.step.ID)
	})
}
