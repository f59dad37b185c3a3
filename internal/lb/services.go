// SPDX-License-Identifier: Apache-2.0

package lb

// planServices plans the virtual service of each listener.
func planServices(in input, lb design) outcome {
	out := in.outcome()
	for _, b := range lb.bindings {
		want := desiredService(in, lb, b)
		have := b.service
		create := Step{
			Verb:    Create,
			Kind:    KindService,
			Name:    nameFor(KindService, in.desired.Owner, b.key()),
			Service: &want,
		}
		switch x := lb.placements[b.key()]; {
		case !have.exists():
			out.step(phaseCreate, create)
		case x.replace:
			out.remove(phaseFree, KindService, have.Object)
			out.step(phaseReplace, create)
		case x.move:
			out.remove(phaseReplace, KindService, have.Object)
			out.step(phaseReplace, create)
		default:
			want.Description = describe(have.Description, serviceMarker(in, lb, b))
			if want.differs(have.object) {
				out.update(phaseUpdate, have.Object, Step{
					Kind:    KindService,
					Service: &want,
				})
			}
		}
	}
	return out
}

// desiredService returns the virtual service of a listener in the form in which it is created.
func desiredService(in input, lb design, b binding) VirtualService {
	return VirtualService{
		Object:      Object{Description: serviceMarker(in, lb, b).String()},
		VIPs:        b.vips,
		Protocol:    b.listener.Protocol,
		Port:        b.listener.Port,
		Application: b.listener.Application,
		SSL:         b.listener.Application.TLS(),
		Certificate: lb.certificates[b.key()],
		Pool:        lb.pools[b.key()],
		EngineGroup: lb.placements[b.key()].engine,
		Transparent: in.desired.PreserveClientIP,
		Rules:       b.listener.Rules,
	}
}

// serviceMarker returns the marker of a virtual service. It also records that former firewall rules, DNAT rules or
// profiles may remain, because otherwise the next plan would not look for them.
func serviceMarker(in input, lb design, b binding) Marker {
	m := b.marker(in.desired.Owner)
	m.Share = in.desired.Share
	if rules := b.listener.Rules; rules != (HTTPRules{}) {
		m.Wrote = short(rules.words()...)
	}
	m.Filtered = len(in.desired.SourceRanges)+len(in.owned.firewall) > 0
	m.Forwarded = !lb.frontend.translated && len(in.owned.rules)+len(in.owned.profiles) > 0
	switch {
	case lb.frontend.internal:
		m.Via = ViaInside
	case lb.frontend.translated:
		m.Via = ViaNAT
	}
	return m
}
