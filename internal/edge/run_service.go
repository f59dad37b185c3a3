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

func serviceName(vs vcd.VirtualService) named { return named{vs.ID, vs.Name, vs.Description} }

// parts finds the ids of what a virtual service is made of.
func (r *run) parts(ctx context.Context) (pool, group, certificate string, err error) {
	spec := r.step.Service
	if pool, err = resolve(ctx, r, r.gateway.pools, spec.Pool, poolName); err != nil {
		return "", "", "", err
	}
	if group, err = resolve(ctx, r, r.gateway.groups, spec.EngineGroup, func(g vcd.EngineGroup) named { return named{g.ID, g.Name, ""} }); err != nil {
		return "", "", "", err
	}
	certificate, err = resolve(ctx, r, r.gateway.certificates, spec.Certificate, certificateName)
	return pool, group, certificate, err
}

func (r *run) createService(ctx context.Context) error {
	spec := r.step.Service
	pool, group, certificate, err := r.parts(ctx)
	if err != nil {
		return err
	}
	v4, v6 := byFamily(spec.VIPs)
	wanted := vcd.VirtualServiceSpec{
		Name: r.step.Name, Description: spec.Description, Gateway: r.gateway.id, Pool: pool, EngineGroup: group, Certificate: certificate,
		Address: v4, IPv6Address: v6, Ports: servicePorts(spec), Application: vcd.Application(spec.Application), Transparent: spec.Transparent,
	}
	before := r.onAddresses(r.gateway.services.known(), spec.VIPs, spec.Description)
	err = create(ctx, r, creation[vcd.VirtualService]{
		part: r.gateway.services, description: spec.Description, name: serviceName,
		start: func() (vcd.Task, error) { return r.session.CreateVirtualService(ctx, wanted) },
		made: func(id string) vcd.VirtualService {
			r.linked(vcd.Ref{ID: id, Name: wanted.Name}, pool, group)
			return vcd.VirtualService{
				Ref: vcd.Ref{ID: id, Name: wanted.Name}, Description: wanted.Description, Status: vcd.Realized, Health: "PENDING", Enabled: true,
				Address: v4, IPv6Address: v6, Ports: wanted.Ports, Application: wanted.Application, Pool: vcd.Ref{ID: pool, Name: spec.Pool.Name},
				EngineGroup: vcd.Ref{ID: group, Name: spec.EngineGroup.Name}, Certificate: vcd.Ref{ID: certificate, Name: spec.Certificate.Name},
				Gateway: vcd.Ref{ID: r.gateway.id}, Transparent: wanted.Transparent,
			}
		},
	})
	if err != nil || before.ours || r.claimed(spec.VIPs...) {
		return err
	}
	return r.keepAddress(ctx, before)
}

// linked notes that a virtual service sends to a pool, and is on a service engine group.
func (r *run) linked(vs vcd.Ref, pool, group string) {
	r.gateway.pools.edit(pool, func(p *vcd.PoolSummary) {
		if !slices.Contains(p.VirtualServices, vs) {
			p.VirtualServices = append(slices.Clone(p.VirtualServices), vs)
		}
	})
	r.gateway.groups.edit(group, func(g *vcd.EngineGroup) { g.Deployed++ })
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

func servicePorts(spec *lb.ServiceSpec) []vcd.ServicePort {
	port := vcd.ServicePort{From: spec.Port, To: spec.Port, Profile: vcd.TCPProxy, SSL: spec.SSL}
	if spec.Protocol == lb.UDP {
		port.Profile = vcd.UDPFastPath
	}
	return []vcd.ServicePort{port}
}

// claimed says whether addresses are floating IPs of IP Spaces, which have one owner as it is.
func (r *run) claimed(addresses ...netip.Addr) bool {
	claims := r.gateway.claims.known()
	return !slices.ContainsFunc(addresses, func(a netip.Addr) bool {
		return !slices.ContainsFunc(claims, func(c claim) bool { return c.Address == a })
	})
}

// neighbours are who has something on the addresses of a step.
type neighbours struct {
	ours   bool
	others map[string]string // names by id
}

// onAddresses finds who has virtual services on addresses. Those who share the address with the owner do not count.
func (r *run) onAddresses(services []vcd.VirtualService, addresses []netip.Addr, description string) *neighbours {
	ours, _ := lb.ParseMarker(description)
	found := &neighbours{others: map[string]string{}}
	for _, vs := range services {
		if !slices.ContainsFunc(vips(vs), func(a netip.Addr) bool { return slices.Contains(addresses, a) }) {
			continue
		}
		found.add(ours, vs.ID, vs.Name, vs.Description)
	}
	return found
}

func (n *neighbours) add(ours lb.Marker, id, name, description string) {
	theirs, _ := lb.ParseMarker(description)
	switch {
	case theirs.Owner.Is(ours.Owner):
		n.ours = true
	case ours.Share == "" || theirs.Owner.Cluster != ours.Owner.Cluster || theirs.Share != ours.Share:
		n.others[id] = name
	}
}

// newcomer is somebody who came to the addresses since before; empty if nobody did.
func (n *neighbours) newcomer(before *neighbours) string {
	for id, name := range n.others {
		if _, known := before.others[id]; !known {
			return name
		}
	}
	return ""
}

// keepAddress makes sure that the owner is alone on addresses that it has come to first: addresses of blocks cannot be reserved, so
// somebody else, who saw them free, too, may have come in the same moment. VCD makes one thing after the other on a gateway: who
// comes later sees the other, and goes.
func (r *run) keepAddress(ctx context.Context, before *neighbours) error {
	spec := r.step.Service
	services, err := r.gateway.services.get(ctx, r.session, r.fresh())
	if err != nil {
		return err
	}
	newcomer := r.onAddresses(services, spec.VIPs, spec.Description).newcomer(before)
	if newcomer == "" {
		return nil
	}
	for _, vs := range services {
		if m, ok := lb.ParseMarker(vs.Description); vs.Name != r.step.Name || !ok || !m.Owner.Is(r.owner(spec.Description)) {
			continue
		}
		task, err := r.session.DeleteVirtualService(ctx, vs.ID)
		if _, err = r.wait(ctx, task, err); err != nil {
			return err
		}
	}
	return failed(lb.ErrBusy, "the address was taken in the same moment, by %s", newcomer)
}

func (r *run) updateService(ctx context.Context) error {
	spec := r.step.Service
	pool, _, certificate, err := r.parts(ctx)
	if err != nil {
		return err
	}
	v4, v6 := byFamily(spec.VIPs)
	ports, application := servicePorts(spec), vcd.Application(spec.Application)
	change := vcd.VirtualServiceChange{
		Description: &spec.Description, Pool: &pool, Certificate: &certificate, Address: &v4, IPv6Address: &v6, Ports: &ports,
		Application: &application, Transparent: &spec.Transparent,
	}
	for _, vs := range r.gateway.services.known() {
		if vs.ID == r.step.ID && vs.Pool.ID != pool {
			defer r.gateway.pools.invalidate() // they say who sends to them
		}
	}
	return update(ctx, r, r.gateway.services,
		func() (vcd.Task, error) { return r.session.UpdateVirtualService(ctx, r.step.ID, change) },
		func(vs *vcd.VirtualService) {
			vs.Description, vs.Address, vs.IPv6Address, vs.Ports, vs.Application = spec.Description, v4, v6, ports, application
			vs.Transparent, vs.Status = spec.Transparent, vcd.Realized
			vs.Pool, vs.Certificate = vcd.Ref{ID: pool, Name: spec.Pool.Name}, vcd.Ref{ID: certificate, Name: spec.Certificate.Name}
		})
}

func (r *run) deleteService(ctx context.Context) error {
	err := remove(ctx, r, r.gateway.services, func() (vcd.Task, error) { return r.session.DeleteVirtualService(ctx, r.step.ID) })
	if err != nil {
		return err
	}
	r.gateway.used.invalidate()
	r.gateway.groups.invalidate() // one has room again
	for _, p := range r.gateway.pools.known() {
		if !slices.ContainsFunc(p.VirtualServices, func(vs vcd.Ref) bool { return vs.ID == r.step.ID }) {
			continue
		}
		r.gateway.pools.edit(p.ID, func(p *vcd.PoolSummary) {
			p.VirtualServices = slices.DeleteFunc(slices.Clone(p.VirtualServices), func(vs vcd.Ref) bool { return vs.ID == r.step.ID })
		})
	}
	return nil
}

func ruleName(x vcd.NATRule) named { return named{x.ID, x.Name, x.Description} }

func profileName(x vcd.PortProfile) named { return named{x.ID, x.Name, x.Description} }

const (
	// natRuleURN begins the URN of a NAT rule; in all calls it goes by its UUID.
	natRuleURN = "urn:vcloud:natRule:"
	// unnamedRule begins what stands for the id of a rule that was made here, as long as it was not listed; its name follows.
	unnamedRule = "name:"
)

// ruleID finds the id of the step's rule; empty if there is none.
func (r *run) ruleID(ctx context.Context) (string, error) {
	name, unnamed := strings.CutPrefix(r.step.ID, unnamedRule)
	if !unnamed {
		return r.step.ID, nil
	}
	rules, err := r.gateway.rules.get(ctx, r.session, r.fresh())
	for _, rule := range rules {
		if rule.Name == name && rule.Type == "DNAT" {
			return rule.ID, err
		}
	}
	return "", err
}

func (r *run) createRule(ctx context.Context) error {
	spec := r.step.Rule
	profile, err := resolve(ctx, r, r.gateway.profiles, spec.Profile, profileName)
	if err != nil {
		return err
	}
	before := r.onExternal(r.gateway.rules.known())
	wanted := vcd.DNATSpec{
		Name: r.step.Name, Description: spec.Description, External: spec.External.String(), Internal: spec.Internal.String(),
		Port: spec.ExternalPort, Profile: profile,
	}
	err = create(ctx, r, creation[vcd.NATRule]{
		part: r.gateway.rules, description: spec.Description, name: ruleName,
		start: func() (vcd.Task, error) {
			task, err := r.session.CreateDNAT(ctx, r.gateway.id, wanted)
			return task, err //nolint:wrapcheck // says what was asked
		},
		made: func(owner string) vcd.NATRule {
			id, isRule := strings.CutPrefix(owner, natRuleURN)
			if !isRule {
				id = unnamedRule + r.step.Name // the task is the gateway's: VCD does not tell the id
			}
			return vcd.NATRule{
				ID: id, Name: wanted.Name, Description: wanted.Description, Type: "DNAT", Enabled: true, External: wanted.External, Internal: wanted.Internal,
				Port: wanted.Port, Profile: vcd.Ref{ID: profile, Name: spec.Profile.Name},
			}
		},
	})
	if err != nil || before.ours || r.claimed(spec.External) {
		return err
	}
	return r.keepExternal(ctx, before)
}

// onExternal finds who has rules on the external address of the step.
func (r *run) onExternal(rules []vcd.NATRule) *neighbours {
	ours, _ := lb.ParseMarker(r.step.Rule.Description)
	found := &neighbours{others: map[string]string{}}
	for _, rule := range rules {
		if address(rule.External) == r.step.Rule.External && rule.Type == "DNAT" {
			found.add(ours, rule.ID, rule.Name, rule.Description)
		}
	}
	return found
}

// keepExternal is keepAddress for the external address of a rule.
func (r *run) keepExternal(ctx context.Context, before *neighbours) error {
	rules, err := r.gateway.rules.get(ctx, r.session, r.fresh())
	if err != nil {
		return err
	}
	newcomer := r.onExternal(rules).newcomer(before)
	if newcomer == "" {
		return nil
	}
	for _, rule := range rules {
		if m, ok := lb.ParseMarker(rule.Description); rule.Name != r.step.Name || !ok || !m.Owner.Is(r.owner(r.step.Rule.Description)) {
			continue
		}
		task, err := r.session.DeleteNATRule(ctx, r.gateway.id, rule.ID)
		if _, err = r.wait(ctx, task, err); err != nil {
			return err
		}
	}
	return failed(lb.ErrBusy, "the address was taken in the same moment, by %s", newcomer)
}

func (r *run) updateRule(ctx context.Context) error {
	spec := r.step.Rule
	profile, err := resolve(ctx, r, r.gateway.profiles, spec.Profile, profileName)
	if err != nil {
		return err
	}
	external, internal, enabled := spec.External.String(), spec.Internal.String(), true
	change := vcd.DNATChange{
		Description: &spec.Description, External: &external, Internal: &internal, Port: &spec.ExternalPort, Profile: &profile, Enabled: &enabled,
	}
	if r.step.ID, err = r.ruleID(ctx); err != nil || r.step.ID == "" {
		return cmp.Or(err, failed(lb.ErrBusy, "it is gone meanwhile"))
	}
	return update(ctx, r, r.gateway.rules,
		func() (vcd.Task, error) { return r.session.UpdateDNAT(ctx, r.gateway.id, r.step.ID, change) },
		func(x *vcd.NATRule) {
			x.Description, x.External, x.Internal, x.Port, x.Enabled = spec.Description, external, internal, spec.ExternalPort, true
			x.Profile = vcd.Ref{ID: profile, Name: spec.Profile.Name}
		})
}

func (r *run) deleteRule(ctx context.Context) error {
	defer r.gateway.used.invalidate()
	var err error
	if r.step.ID, err = r.ruleID(ctx); err != nil || r.step.ID == "" {
		return err
	}
	return remove(ctx, r, r.gateway.rules, func() (vcd.Task, error) { return r.session.DeleteNATRule(ctx, r.gateway.id, r.step.ID) })
}

func (r *run) createProfile(ctx context.Context) error {
	spec := r.step.Profile
	f, err := r.gateway.fact(ctx, r.session)
	if err != nil {
		return err
	}
	return create(ctx, r, creation[vcd.PortProfile]{
		part: r.gateway.profiles, description: spec.Description, name: profileName,
		start: func() (vcd.Task, error) {
			return r.session.CreatePortProfile(ctx, vcd.PortProfileSpec{
				Name: r.step.Name, Description: spec.Description, Owner: f.gateway.Owner.ID, Protocol: string(spec.Protocol), Port: spec.Port,
			})
		},
		made: func(id string) vcd.PortProfile {
			return vcd.PortProfile{
				Ref: vcd.Ref{ID: id, Name: r.step.Name}, Description: spec.Description, Scope: "TENANT", Status: vcd.Realized,
				Protocol: string(spec.Protocol), Port: spec.Port,
			}
		},
	})
}

func (r *run) updateProfile(ctx context.Context) error {
	spec := r.step.Profile
	change := vcd.PortProfileChange{Description: &spec.Description, Port: &vcd.ProfilePort{Protocol: string(spec.Protocol), Port: spec.Port}}
	return update(ctx, r, r.gateway.profiles,
		func() (vcd.Task, error) { return r.session.UpdatePortProfile(ctx, r.step.ID, change) },
		func(p *vcd.PortProfile) {
			p.Description, p.Protocol, p.Port, p.Status = spec.Description, string(spec.Protocol), spec.Port, vcd.Realized
		})
}

func (r *run) deleteProfile(ctx context.Context) error {
	return remove(ctx, r, r.gateway.profiles, func() (vcd.Task, error) { return r.session.DeletePortProfile(ctx, r.step.ID) })
}
