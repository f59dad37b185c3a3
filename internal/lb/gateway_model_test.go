// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A model is an edge gateway in memory with the rules of VCD that matter to plans.
type model struct {
	ids      int
	gateway  Gateway
	caps     Capabilities
	services []VirtualService
	pools    []Pool
	sets     []Set
	claims   []Claim
	rules    []Rule
	profiles []Profile
	certs    []CertificateItem
	firewall []FirewallRule
	hosts    []loadbalancer.Use
	specs    map[string]FirewallRule
	// touched are the ids of all objects that steps changed or deleted.
	touched []string
	writes  int
	full    bool // pools and sets are always read in full
}

func newModel(mods ...func(*model)) *model {
	m := &model{
		gateway: Gateway{
			ID:     "gw",
			Name:   "edge",
			Ranges: []Range{addresses("203.0.113.10-203.0.113.40"), addresses("2001:db8::10-2001:db8::40")},
			Groups: []EngineGroup{
				{Object: Object{ID: "seg-1", Name: "small"}, Max: 10},
				{Object: Object{ID: "seg-2", Name: "large"}, Max: 1000},
			},
		},
		caps: Capabilities{
			SharedVIP:        true,
			MemberSets:       true,
			PreserveClientIP: true,
			IPv6:             true,
			Premium:          true,
			MovesSharedVIP:   true,
			SourceRanges:     true,
			HealthMonitors:   true,
			HTTPPolicies:     true,
			MaxMembers:       100,
		},
		certs: []CertificateItem{{Object: Object{
			ID:          "cert-people",
			Name:        "shop",
			Description: "bought",
			State:       Realized,
		}}},
		specs: map[string]FirewallRule{},
	}
	for _, mod := range mods {
		mod(m)
	}
	return m
}

func withSpaces(m *model) {
	m.gateway.Ranges = nil
	m.gateway.Spaces = []Space{{
		ID:     "space-1",
		Name:   "public",
		Ranges: []Range{addresses("198.51.100.1-198.51.100.30")},
	}}
}

func bare(m *model) { m.caps = Capabilities{Premium: true, MovesSharedVIP: true, MaxMembers: 3} }

// fixedVIPs keeps the addresses of virtual services that share them.
func fixedVIPs(m *model) { m.caps.MovesSharedVIP = false }

func withoutSets(m *model) { m.caps.MemberSets = false }

func addresses(text string) Range {
	from, to, _ := strings.Cut(text, "-")
	return Range{netip.MustParseAddr(from), netip.MustParseAddr(to)}
}

func (m *model) id(kind string) string {
	m.ids++
	return fmt.Sprintf("%s-%d", kind, m.ids)
}

func refusedf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errModel, fmt.Sprintf(format, args...))
}

// run does a step as a driver does.
func (m *model) run(s Step) error {
	m.writes++
	if s.ID != "" {
		m.touched = append(m.touched, s.ID)
	}
	switch s.Kind {
	case KindAddress:
		return m.runAddress(s)
	case KindCertificate:
		return change(m, &m.certs, s, func(x CertificateItem) (*Object, CertificateItem) { return &x.Object, x },
			func(o Object, _ CertificateItem) (CertificateItem, error) {
				o.Description = s.Certificate.Description
				return CertificateItem{Object: o}, nil
			}, func(x CertificateItem) error {
				if slices.ContainsFunc(m.services, func(vs VirtualService) bool { return vs.Certificate.ID == x.ID }) {
					return refusedf("certificate %s is in use", x.Name)
				}
				return nil
			})
	case KindSet:
		return change(m, &m.sets, s, func(x Set) (*Object, Set) { return &x.Object, x },
			func(o Object, _ Set) (Set, error) {
				o.Description = s.Set.Description
				return Set{Object: o, Members: s.Set.Members}, nil
			}, func(x Set) error {
				if slices.ContainsFunc(m.pools, func(p Pool) bool { return p.Group.ID == x.ID }) {
					return refusedf("set %s is in use", x.Name)
				}
				return nil
			})
	case KindPool:
		return change(m, &m.pools, s, func(x Pool) (*Object, Pool) { return &x.Object, x }, m.pool(s),
			func(x Pool) error {
				if slices.ContainsFunc(m.services, func(vs VirtualService) bool { return vs.Pool.ID == x.ID }) {
					return refusedf("pool %s is in use", x.Name)
				}
				return nil
			})
	case KindService:
		return change(m, &m.services, s, func(x VirtualService) (*Object, VirtualService) { return &x.Object, x },
			m.service(s), nil)
	case KindProfile:
		return change(m, &m.profiles, s, func(x Profile) (*Object, Profile) { return &x.Object, x },
			func(o Object, _ Profile) (Profile, error) {
				o.Description = s.Profile.Description
				return Profile{o, s.Profile.Protocol, s.Profile.Port}, nil
			}, func(x Profile) error {
				if slices.ContainsFunc(m.rules, func(r Rule) bool { return r.Profile.ID == x.ID }) {
					return refusedf("profile %s is in use", x.Name)
				}
				return nil
			})
	case KindRule:
		return change(m, &m.rules, s, func(x Rule) (*Object, Rule) { return &x.Object, x },
			func(o Object, _ Rule) (Rule, error) {
				o.Description = s.Rule.Description
				profile, err := find(m.profiles, s.Rule.Profile, func(p Profile) Object { return p.Object })
				return Rule{o, s.Rule.External, s.Rule.Internal, s.Rule.ExternalPort, profile, false},
					errors.Join(err, m.allocated(s.Rule.External))
			}, nil)
	case KindFirewall:
		return change(m, &m.firewall, s, func(x FirewallRule) (*Object, FirewallRule) { return &x.Object, x },
			func(o Object, _ FirewallRule) (FirewallRule, error) {
				o.Description = s.Firewall.Description
				m.specs[o.ID] = *s.Firewall
				return FirewallRule{Object: o, Drops: len(s.Firewall.Sources) == 0}, nil
			}, nil)
	case KindHost: // only observed
	}
	return refusedf("unknown kind %s", s.Kind)
}

// change creates, updates or deletes an object of a list.
func change[T any](m *model, list *[]T, s Step, object func(T) (*Object, T), build func(Object, T) (T, error), free func(T) error) error {
	at := slices.IndexFunc(*list, func(x T) bool { o, _ := object(x); return o.ID == s.ID })
	named := slices.IndexFunc(*list, func(x T) bool { o, _ := object(x); return o.Name == s.Name })
	switch s.Verb {
	case Create:
		if named >= 0 {
			return refusedf("%s %s exists", s.Kind, s.Name)
		}
		var zero T
		x, err := build(Object{ID: m.id(string(s.Kind)), Name: s.Name, State: Realized}, zero)
		if err != nil {
			return err
		}
		*list = append(*list, x)
	case Update:
		if at < 0 {
			return refusedf("%s %s is not there", s.Kind, s.ID)
		}
		o, old := object((*list)[at])
		x, err := build(Object{ID: o.ID, Name: o.Name, Description: o.Description, State: Realized}, old)
		if err != nil {
			return err
		}
		(*list)[at] = x
	case Delete:
		if at < 0 {
			return nil
		}
		if free != nil {
			if err := free((*list)[at]); err != nil {
				return err
			}
		}
		*list = slices.Delete(*list, at, at+1)
	default:
		return refusedf("verb %s", s.Verb)
	}
	return nil
}

func find[T any](list []T, r Ref, object func(T) Object) (Ref, error) {
	for _, x := range list {
		if o := object(x); o.ID == r.ID || r.ID == "" && o.Name == r.Name {
			return Ref{o.ID, o.Name}, nil
		}
	}
	return Ref{}, refusedf("%v is not there", r)
}

func (m *model) pool(s Step) func(Object, Pool) (Pool, error) {
	return func(o Object, old Pool) (Pool, error) {
		spec := s.Pool
		o.Description = spec.Description
		x := Pool{
			Object:    o,
			NodePort:  spec.NodePort,
			Members:   spec.Members,
			Sticky:    spec.Sticky,
			Algorithm: old.Algorithm,
		}
		x.Monitors = slices.Clone(spec.Monitors)
		for _, h := range old.Monitors {
			if !slices.Contains(s.FormerMonitors, h) && !slices.Contains(spec.Monitors, h) {
				x.Monitors = append(x.Monitors, h)
			}
		}
		if spec.Algorithm != "" {
			x.Algorithm = spec.Algorithm
		} else if x.Algorithm == "" {
			x.Algorithm = "ROUND_ROBIN"
		}
		if (spec.Group != Ref{}) && len(spec.Members) > 0 {
			return x, refusedf("members and a group")
		}
		if m.caps.MaxMembers > 0 && len(spec.Members) > m.caps.MaxMembers {
			return x, refusedf("too many members")
		}
		var err error
		if (spec.Group != Ref{}) {
			x.Group, err = find(m.sets, spec.Group, func(s Set) Object { return s.Object })
		}
		return x, err
	}
}

func (m *model) service(s Step) func(Object, VirtualService) (VirtualService, error) {
	return func(o Object, old VirtualService) (VirtualService, error) {
		spec := s.Service
		o.Description = spec.Description
		x := VirtualService{
			Object:      o,
			VIPs:        spec.VIPs,
			Protocol:    spec.Protocol,
			Port:        spec.Port,
			SSL:         spec.SSL,
			Application: spec.Application,
			Transparent: spec.Transparent,
			EngineGroup: spec.EngineGroup,
			Health:      "UP",
		}
		if old.ID != "" && old.EngineGroup.ID != spec.EngineGroup.ID {
			return x, refusedf("a virtual service stays on its engine group")
		}
		if shared := func(y VirtualService) bool {
			return y.ID != old.ID && slices.ContainsFunc(old.VIPs, func(a netip.Addr) bool {
				return slices.Contains(y.VIPs, a)
			})
		}; !m.caps.MovesSharedVIP && !slices.Equal(old.VIPs, x.VIPs) && slices.ContainsFunc(m.services, shared) {
			return x, refusedf("the address of %s stays, as it is shared", old.Name)
		}
		var err, err2 error
		x.Pool, err = find(m.pools, spec.Pool, func(p Pool) Object { return p.Object })
		if spec.Certificate != (Ref{}) {
			x.Certificate, err2 = find(m.certs, spec.Certificate, func(c CertificateItem) Object { return c.Object })
		}
		return x, errors.Join(err, err2, m.freeVIP(x))
	}
}

func (m *model) freeVIP(x VirtualService) error {
	for _, a := range x.VIPs {
		if !a.IsValid() {
			return refusedf("no address")
		}
		for _, y := range m.services {
			if y.ID == x.ID || !slices.Contains(y.VIPs, a) {
				continue
			}
			if !m.caps.SharedVIP || y.Port == x.Port && y.Protocol == x.Protocol {
				return refusedf("%s port %d is used by %s", a, x.Port, y.Name)
			}
		}
		if err := m.allocated(a); err != nil {
			return err
		}
	}
	return nil
}

// allocated refuses an address of a space that is not allocated.
func (m *model) allocated(a netip.Addr) error {
	for _, s := range m.gateway.Spaces {
		if inRanges(s.Ranges, a) && !slices.ContainsFunc(m.claims, func(c Claim) bool { return c.Value == a }) {
			return refusedf("%s is not allocated", a)
		}
	}
	return nil
}

func (m *model) runAddress(s Step) error {
	at := slices.IndexFunc(m.claims, func(c Claim) bool { return c.Value == s.Address.Value })
	switch {
	case s.Verb == Create && at < 0:
		m.claims = append(m.claims, Claim{ID: m.id("claim"), Space: s.Address.Space, Value: s.Address.Value})
	case s.Verb == Mark && at >= 0:
		m.claims[at].Description = s.Address.Description
		m.claims[at].Used = true
	case s.Verb == Delete && at >= 0:
		if slices.ContainsFunc(m.used(), func(u UsedAddress) bool { return u.Address == s.Address.Value }) {
			return refusedf("%s is in use", s.Address.Value)
		}
		m.claims = slices.Delete(m.claims, at, at+1)
	case s.Verb == Delete:
	default:
		return refusedf("%s of %s", s.Verb, s.Address.Value)
	}
	return nil
}

var errKilled = errors.New("killed")

// converge does what the provider does: observe, plan, write intent down, run steps, again, until nothing is left
// to do. It stops after so many writes, as if the process had died; a negative number does not stop it.
func (m *model) converge(d *Desired, kill int) (Plan, error) {
	facts := Facts(0)
	for range 20 {
		plan := Make(*d, m.observe(Query{Owner: d.Owner, Facts: facts}), m.caps)
		if plan.Needs != 0 {
			if facts.Has(plan.Needs) {
				return plan, fmt.Errorf("the plan asks for facts it has: %b", plan.Needs)
			}
			facts |= plan.Needs
			continue
		}
		d.Intent = slices.DeleteFunc(slices.Clone(d.Intent),
			func(a netip.Addr) bool { return slices.Contains(plan.Unused, a) })
		if plan.Done() || len(plan.Refusals) > 0 || plan.Wait != "" {
			return plan, nil
		}
		if len(plan.Intent) > 0 {
			if d.Intent = plan.Intent; kill == 0 {
				return plan, errKilled
			}
		}
		for _, s := range stepsOf(plan) {
			if kill == 0 {
				return plan, errKilled
			}
			kill--
			if err := m.run(s); err != nil {
				return plan, fmt.Errorf("%s: %w", s, err)
			}
		}
		facts = 0
	}
	return Plan{}, errors.New("does not converge")
}

// left are the names of objects of an owner that are there.
func (m *model) left(owner loadbalancer.Owner) []string {
	o := m.observe(Query{Owner: owner, Facts: ^Facts(0)})
	var out []string
	nothing := Desired{Desired: loadbalancer.Desired{
		Owner:  owner,
		Absent: true,
	}}
	for _, s := range Make(nothing, o, m.caps).Status.Objects {
		out = append(out, s.Name)
	}
	return out
}

// stepsOf are the steps of a plan: all are of this package.
func stepsOf(p Plan) []Step {
	var out []Step
	for _, s := range p.Steps {
		out = append(out, s.(Step))
	}
	return out
}
