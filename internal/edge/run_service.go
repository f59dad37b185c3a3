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

// partsLost makes a refusal a reason to plan again, if something that the virtual service is made of is gone.
func (r *run) partsLost(ctx context.Context, pool, certificate string, err error) error {
	return lost(ctx, r, r.gateway.certificates, certificate, lost(ctx, r, r.gateway.pools, pool, err))
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
	seats := r.seatsOfService()
	before := seats.neighbours(r.gateway.services.known(), nil)
	err = create(ctx, r, creation[vcd.VirtualService]{
		part: r.gateway.services, description: spec.Description, name: serviceName,
		start: func() (vcd.Task, error) { return r.session.Balancers.CreateVirtualService(ctx, wanted) },
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
	if err != nil || before.ours || r.claimed(spec.VIPs...) || r.ruleFollows() {
		return r.partsLost(ctx, pool, certificate, err)
	}
	return r.keep(ctx, seats, before, func(ctx context.Context) error {
		return r.giveServicesUp(ctx, spec.Description, func(vs vcd.VirtualService) bool { return vs.Name == r.step.Name })
	})
}

// giveServicesUp deletes virtual services of an owner that were just made.
func (r *run) giveServicesUp(ctx context.Context, description string, made func(vcd.VirtualService) bool) error {
	for _, vs := range r.gateway.services.known() {
		if !made(vs) || !r.mine(vs.Description, description) {
			continue
		}
		task, err := r.session.Balancers.DeleteVirtualService(ctx, vs.ID)
		if _, err = r.wait(ctx, task, err); err != nil {
			return err
		}
		r.gateway.services.invalidate()
		r.gateway.pools.invalidate() // they say who sends to them
	}
	return nil
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
	err = update(ctx, r, r.gateway.services,
		func() (vcd.Task, error) { return r.session.Balancers.UpdateVirtualService(ctx, r.step.ID, change) },
		func(vs *vcd.VirtualService) {
			vs.Description, vs.Address, vs.IPv6Address, vs.Ports, vs.Application = spec.Description, v4, v6, ports, application
			vs.Transparent, vs.Status = spec.Transparent, vcd.Realized
			vs.Pool, vs.Certificate = vcd.Ref{ID: pool, Name: spec.Pool.Name}, vcd.Ref{ID: certificate, Name: spec.Certificate.Name}
		})
	return r.partsLost(ctx, pool, certificate, err)
}

func (r *run) deleteService(ctx context.Context) error {
	err := remove(ctx, r, r.gateway.services, func() (vcd.Task, error) { return r.session.Balancers.DeleteVirtualService(ctx, r.step.ID) })
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
	seats, settled := r.seatsOfRule(), r.settled()
	before := seats.neighbours(nil, r.gateway.rules.known())
	wanted := vcd.DNATSpec{
		Name: r.step.Name, Description: spec.Description, External: spec.External.String(), Internal: spec.Internal.String(),
		Port: spec.ExternalPort, Profile: profile,
	}
	err = create(ctx, r, creation[vcd.NATRule]{
		part: r.gateway.rules, description: spec.Description, name: ruleName,
		start: func() (vcd.Task, error) {
			task, err := r.session.NAT.CreateDNAT(ctx, r.gateway.id, wanted)
			return task, err
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
	if err != nil || settled {
		return lost(ctx, r, r.gateway.profiles, profile, err)
	}
	return r.keep(ctx, seats, before, r.giveRuleUp)
}

// giveRuleUp deletes the rule that was just made and, if somebody else is on the address that it leads to, the virtual services there.
func (r *run) giveRuleUp(ctx context.Context) error {
	spec := r.step.Rule
	inside := seats{services: []netip.Addr{spec.Internal}, owner: r.seatsOfRule().owner}
	defer r.gateway.rules.invalidate()
	rules, err := r.gateway.rules.get(ctx, r.session, r.fresh())
	if err != nil {
		return err
	}
	for _, rule := range rules {
		if rule.Name != r.step.Name || !r.mine(rule.Description, spec.Description) {
			continue
		}
		task, err := r.session.NAT.DeleteRule(ctx, r.gateway.id, rule.ID)
		if _, err = r.wait(ctx, task, err); err != nil {
			return err
		}
	}
	if len(inside.neighbours(r.gateway.services.known(), nil).others) == 0 {
		return nil
	}
	return r.giveServicesUp(ctx, spec.Description, func(vs vcd.VirtualService) bool { return slices.Contains(vips(vs), spec.Internal) })
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
	err = update(ctx, r, r.gateway.rules,
		func() (vcd.Task, error) { return r.session.NAT.UpdateDNAT(ctx, r.gateway.id, r.step.ID, change) },
		func(x *vcd.NATRule) {
			x.Description, x.External, x.Internal, x.Port, x.Enabled = spec.Description, external, internal, spec.ExternalPort, true
			x.Profile = vcd.Ref{ID: profile, Name: spec.Profile.Name}
		})
	return lost(ctx, r, r.gateway.profiles, profile, err)
}

func (r *run) deleteRule(ctx context.Context) error {
	defer r.gateway.used.invalidate()
	var err error
	if r.step.ID, err = r.ruleID(ctx); err != nil || r.step.ID == "" {
		return err
	}
	return remove(ctx, r, r.gateway.rules, func() (vcd.Task, error) { return r.session.NAT.DeleteRule(ctx, r.gateway.id, r.step.ID) })
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
			return r.session.NAT.CreatePortProfile(ctx, vcd.PortProfileSpec{
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
		func() (vcd.Task, error) { return r.session.NAT.UpdatePortProfile(ctx, r.step.ID, change) },
		func(p *vcd.PortProfile) {
			p.Description, p.Protocol, p.Port, p.Status = spec.Description, string(spec.Protocol), spec.Port, vcd.Realized
		})
}

func (r *run) deleteProfile(ctx context.Context) error {
	return remove(ctx, r, r.gateway.profiles, func() (vcd.Task, error) { return r.session.NAT.DeletePortProfile(ctx, r.step.ID) })
}
