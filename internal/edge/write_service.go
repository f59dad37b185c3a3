// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// createService creates a virtual service, and verifies that its owner is alone on its addresses, unless that is
// certain or verified when a rule is created.
func createService(ctx context.Context, w writer, step lb.Step) error {
	g := w.gateway
	want, err := resolvedService(ctx, w, step)
	if err != nil {
		return err
	}
	want.Health = "PENDING"
	if want.Rules != (lb.HTTPRules{}) { // the next plan writes the rules
		want.Description = lb.PendingRules(want.Description)
	}
	v4, v6 := byFamily(want.VIPs)
	mine := addressesOfService(want)
	before := mine.occupants(g.services.known(), nil)
	id, err := create(ctx, w, g.services, want, func() (vcd.Task, error) {
		return w.session.Balancers.CreateVirtualService(ctx, vcd.VirtualService{
			Ref:         vcd.Ref{Name: want.Name},
			Description: want.Description,
			Gateway:     vcd.Ref{ID: g.id},
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
		g.groups.edit(want.EngineGroup.ID, func(group *lb.EngineGroup) { group.Deployed++ })
	}
	if err != nil || before.ours || areClaimed(g.claims.known(), want.VIPs...) || ruleFollows(want, g.rules.known()) {
		return replanServiceIfDeleted(ctx, w, want, err)
	}
	return verifySoleOwner(ctx, w, mine, before, func(ctx context.Context) error {
		return withdrawServices(ctx, w, want.Description,
			func(vs lb.VirtualService) bool { return vs.Name == want.Name })
	})
}

func updateService(ctx context.Context, w writer, step lb.Step) error {
	want, err := resolvedService(ctx, w, step)
	if err != nil {
		return err
	}
	ruled := want.Rules != lb.HTTPRules{}
	if !ruled && hasRules(w, step.ID) {
		if err := writeRules(ctx, w, step.ID, want); err != nil {
			return err
		}
	}
	final := want.Description
	if ruled {
		want.Description = lb.PendingRules(final)
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
	shared := movesShared(w.gateway.services.known(), step.ID, want.VIPs)
	err = update(ctx, w, objectUpdate[lb.VirtualService]{
		list:  w.gateway.services,
		step:  step,
		start: func() (vcd.Task, error) { return w.session.Balancers.UpdateVirtualService(ctx, step.ID, change) },
		edit: func(vs *lb.VirtualService) {
			want.EngineGroup = vs.EngineGroup
			want.Health = vs.Health
			*vs = want
		},
	})
	if err == nil && ruled {
		return completeRules(ctx, w, step, want, final)
	}
	if err = replanServiceIfDeleted(ctx, w, want, err); !shared || !errors.Is(err, vcd.ErrInvalid) {
		return err
	}
	return updateInPlace(ctx, w, step.ID, change, err)
}

// hasRules reports whether a virtual service has, or may have, rules of this program.
func hasRules(w writer, id string) bool {
	for _, vs := range w.gateway.services.known() {
		if m, _ := lb.ParseMarker(vs.Description); vs.ID == id {
			return m.Wrote != ""
		}
	}
	return false
}

// completeRules writes the rules of a virtual service, and then its final description.
func completeRules(ctx context.Context, w writer, step lb.Step, want lb.VirtualService, final string) error {
	if err := writeRules(ctx, w, step.ID, want); err != nil {
		return err
	}
	return update(ctx, w, objectUpdate[lb.VirtualService]{
		list: w.gateway.services,
		step: step,
		start: func() (vcd.Task, error) {
			return w.session.Balancers.UpdateVirtualService(ctx, step.ID, vcd.VirtualServiceChange{Description: &final})
		},
		edit: func(vs *lb.VirtualService) { vs.Description = final },
	})
}

// writeRules writes the rules of a virtual service, which may be none.
func writeRules(ctx context.Context, w writer, id string, want lb.VirtualService) error {
	w.gateway.details.forget(id)
	rules := rulesFor(want)
	task, err := w.session.Balancers.SetRequestRules(ctx, id, rules)
	if _, err = w.wait(ctx, task, err); err != nil {
		return err
	}
	task, err = w.session.Balancers.SetResponseRules(ctx, id, rules)
	_, err = w.wait(ctx, task, err)
	return err
}

// movesShared reports whether an update changes an address that the virtual service shares, as far as is known.
func movesShared(known []lb.VirtualService, id string, vips []netip.Addr) bool {
	i := slices.IndexFunc(known, func(vs lb.VirtualService) bool { return vs.ID == id })
	sorted := func(vips []netip.Addr) []netip.Addr {
		return slices.SortedFunc(slices.Values(vips), netip.Addr.Compare)
	}
	if i < 0 || slices.Equal(sorted(known[i].VIPs), sorted(vips)) {
		return false
	}
	return slices.ContainsFunc(known, func(vs lb.VirtualService) bool {
		return vs.ID != id &&
			slices.ContainsFunc(vs.VIPs, func(a netip.Addr) bool { return slices.Contains(known[i].VIPs, a) })
	})
}

// updateInPlace determines whether a change was refused because of the addresses: then VCD accepts the other changes.
// In this case, the next plan recreates virtual services that share their addresses. The description is not changed,
// because it records how clients reach the virtual service.
func updateInPlace(ctx context.Context, w writer, id string, change vcd.VirtualServiceChange, refusal error) error {
	change.Address = nil
	change.IPv6Address = nil
	change.Description = nil
	task, err := w.session.Balancers.UpdateVirtualService(ctx, id, change)
	if _, err = w.wait(ctx, task, err); err != nil {
		return refusal
	}
	w.gateway.refusals.forbidMoves()
	return &failure{loadbalancer.ErrBusy, refusal}
}

func deleteService(ctx context.Context, w writer, step lb.Step) error {
	err := remove(ctx, w, w.gateway.services, step.ID, func() (vcd.Task, error) {
		return w.session.Balancers.DeleteVirtualService(ctx, step.ID)
	})
	if err == nil {
		w.gateway.used.invalidate()
		w.gateway.groups.invalidate() // a group has capacity again
	}
	return err
}

// withdrawServices deletes virtual services of an owner that were just created.
func withdrawServices(ctx context.Context, w writer, description string, created func(lb.VirtualService) bool) error {
	for _, vs := range w.gateway.services.known() {
		if !created(vs) || !sameOwner(vs.Description, description) {
			continue
		}
		task, err := w.session.Balancers.DeleteVirtualService(ctx, vs.ID)
		if _, err = w.wait(ctx, task, err); err != nil {
			return err
		}
		w.gateway.services.invalidate()
	}
	return nil
}

// resolvedService returns the virtual service of a step, with resolved references.
func resolvedService(ctx context.Context, w writer, step lb.Step) (lb.VirtualService, error) {
	want := *step.Service
	want.Object = written(step, want.Description)
	err := resolve(ctx, w, w.gateway.pools, &want.Pool)
	if err == nil {
		err = resolve(ctx, w, w.gateway.groups, &want.EngineGroup)
	}
	if err == nil {
		err = resolve(ctx, w, w.gateway.certificates, &want.Certificate)
	}
	return want, err
}

// replanServiceIfDeleted handles a refusal: if an object that the virtual service refers to is deleted, the error makes
// the caller plan again.
func replanServiceIfDeleted(ctx context.Context, w writer, want lb.VirtualService, err error) error {
	err = replanIfDeleted(ctx, w, w.gateway.pools, want.Pool.ID, err)
	return replanIfDeleted(ctx, w, w.gateway.certificates, want.Certificate.ID, err)
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
	if vs.Protocol == loadbalancer.UDP {
		port.Profile = vcd.UDPFastPath
	}
	return []vcd.ServicePort{port}
}
