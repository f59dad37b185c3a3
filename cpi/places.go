package cpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// places are the ids of those that the configuration names, as far as they were asked for.
type places struct {
	mu  sync.Mutex
	ids map[string]string
}

func (p *places) id(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[name]
}

func (p *places) put(name, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids == nil {
		p.ids = map[string]string{}
	}
	p.ids[name] = id
}

// place returns the id of a place. Once it is found it stays: load balancers are there.
func (l *LoadBalancers) place(ctx context.Context, name string) (string, error) {
	if id := l.found.id(name); id != "" {
		return id, nil
	}
	id, err := l.opts.Balancer.Place(ctx, name)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", named(name), err)
	}
	l.found.put(name, id)
	return id, nil
}

// replaced looks anew for the place of a load balancer, where nothing can be seen any more, and says whether it is another one by now.
func (e *ensuring) replaced(ctx context.Context) bool {
	id, err := e.opts.Balancer.Place(ctx, e.wish.Gateway)
	if err != nil || id == e.at {
		return false
	}
	e.found.put(e.wish.Gateway, id)
	return true
}

func named(name string) string {
	if name == "" {
		return "the default gateway"
	}
	return "gateway " + name
}

// configured are the names of all places.
func (l *LoadBalancers) configured() []string {
	out := make([]string, 0, len(l.opts.Defaults.Gateways))
	for _, g := range l.opts.Defaults.Gateways {
		out = append(out, g.Name)
	}
	return out
}

// all are the ids of all places that can be found, and why others cannot.
func (l *LoadBalancers) all(ctx context.Context) ([]string, error) {
	var ids []string
	var wrong []error
	for _, name := range l.configured() {
		id, err := l.place(ctx, name)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, errors.Join(wrong...)
}

// standing are the ids of the places where something of a Service may be that is to go: those written down on it, else all. It is an error if one of
// them cannot be found.
func (l *LoadBalancers) standing(ctx context.Context, s *corev1.Service) ([]string, error) {
	ids, err := l.located(ctx, s)
	if err != nil {
		l.stays(s, err, "it may have been on a gateway of the configuration that cannot be found: correct it there, or take it out if it is gone from VCD, "+
			"and restart the cloud controller manager")
	}
	return ids, err
}

func (l *LoadBalancers) located(ctx context.Context, s *corev1.Service) ([]string, error) {
	written := l.written(s)
	if len(written) == 0 {
		return l.all(ctx)
	}
	var ids []string
	var wrong []error
	for _, id := range written {
		if name, open := openPlace(id); open {
			if !slices.Contains(l.configured(), name) {
				continue
			}
			found, err := l.place(ctx, name)
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			id = found
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids)+len(wrong) == 0 {
		return l.all(ctx) // it says nothing any more
	}
	return ids, errors.Join(wrong...)
}

// unfound begins what is written down, in place of its id, of a place of the configuration that could not be found then; its name follows.
const unfound = "?"

// openPlace says whether what is written down is the name of a place that could not be found, and returns it.
func openPlace(written string) (name string, ok bool) {
	escaped, ok := strings.CutPrefix(written, unfound)
	if !ok {
		return "", false
	}
	name, err := url.QueryUnescape(escaped)
	return name, err == nil
}

// settled replaces names of places that could not be found by ids, as far as they were found meanwhile, and drops those that the configuration does
// not name any more. It asks nobody.
func (l *LoadBalancers) settled(written []string) []string {
	var out []string
	for _, id := range written {
		if name, open := openPlace(id); open {
			if !slices.Contains(l.configured(), name) {
				continue
			}
			id = cmp.Or(l.found.id(name), id)
		}
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// nothing says whether nothing of a Service is left at a place. What was seen earlier proves only that something is: another process may have
// made more since.
func (l *LoadBalancers) nothing(ctx context.Context, s *corev1.Service, place string) (bool, error) {
	want, err := l.absent(s, place)
	if err != nil {
		return false, err
	}
	for _, fresh := range []bool{false, true} {
		plan, err := l.opts.Balancer.Plan(ctx, place, PlanRequest{Want: want, Fresh: fresh})
		if err != nil {
			l.stays(s, err, fmt.Sprintf("it cannot be seen what is left of it at %s: if the provider has deleted this gateway, take it out of annotation %s", place, service.PlacesAnnotation))
			return false, fmt.Errorf("looking for what is left of the load balancer: %w", err)
		}
		if !plan.Done() {
			return false, nil
		}
	}
	return true, nil
}

// stays tells why a Service cannot go and what is to be done, if somebody has to do something.
func (l *LoadBalancers) stays(s *corev1.Service, err error, remedy string) {
	if errors.Is(err, lb.ErrRefused) {
		why := strings.ReplaceAll(err.Error(), "\n", "; ")
		l.teller.notices(s, []lb.Finding{{Reason: reasonStays, Message: fmt.Sprintf("The load balancer cannot be removed: %s (%s)", remedy, why)}})
	}
}

// written are the ids that are written down on a Service.
func (l *LoadBalancers) written(s *corev1.Service) []string {
	ids := service.Places(s)
	if m := l.memories.of(s.UID); len(m.standing) > 0 && !slices.Equal(m.standing, ids) {
		return m.standing // what is cached is older than what we wrote
	}
	l.memories.change(s.UID, func(m *memory) { m.standing = nil })
	return ids
}

// leaveOthers removes what the Service has at places where it is not any more. What cannot be removed yet is left for the next time: the
// load balancer is of use all the same.
func (e *ensuring) leaveOthers(ctx context.Context, status *corev1.LoadBalancerStatus) error {
	written := e.written(e.service)
	looked, stays := e.settled(written), []string{e.at}
	if len(written) == 0 {
		looked = e.everywhere(ctx)
	}
	for _, id := range looked {
		if _, open := openPlace(id); open {
			stays = append(stays, id)
			continue
		}
		if id == e.at {
			continue
		}
		if err := e.leave(ctx, id, status); err != nil {
			klog.FromContext(ctx).Error(err, "Leaving a gateway", "service", klog.KObj(e.service), "gateway", id)
			e.teller.notices(e.service, []lb.Finding{{
				Reason: reasonLeft, Message: fmt.Sprintf("what the load balancer had at %s cannot be removed yet; it is tried again, the log says why", id),
			}})
			stays = append(stays, id)
		}
	}
	var n note
	if !slices.Equal(stays, written) {
		n.places = stays
	}
	if len(stays) == 1 && len(e.unused) > 0 {
		n.addresses = slices.DeleteFunc(append([]netip.Addr{}, e.wish.Desired.Intent...), func(a netip.Addr) bool { return slices.Contains(e.unused, a) })
	}
	return e.write(ctx, n)
}

// everywhere are all places: where nothing is written down, the Service may have been at any. Those that cannot be found go by their names, unless
// the load balancer is new.
func (e *ensuring) everywhere(ctx context.Context) []string {
	ids, err := e.all(ctx)
	if err == nil {
		return ids
	}
	klog.FromContext(ctx).Error(err, "Some gateways of the configuration cannot be found: what this load balancer may have there is looked for later", "service", klog.KObj(e.service))
	for _, name := range e.configured() {
		if e.found.id(name) == "" && !e.blank {
			ids = append(ids, unfound+url.QueryEscape(name))
		}
	}
	return ids
}

// leave removes what the Service has at another place.
func (e *ensuring) leave(ctx context.Context, id string, status *corev1.LoadBalancerStatus) error {
	want, err := e.absent(e.service, id)
	if err != nil {
		return err
	}
	var before []string
	for {
		plan, err := e.opts.Balancer.Plan(ctx, id, PlanRequest{Want: want})
		if err != nil {
			return err
		}
		steps := e.leaving(plan.Steps, status)
		words := texts(steps)
		switch {
		case len(steps) == 0:
			return nil
		case slices.Equal(words, before):
			return fmt.Errorf("%s: %w", words[0], lb.ErrBusy)
		}
		before = words
		if _, err := e.run(ctx, e.service, id, steps); err != nil {
			return err
		}
	}
}

// leaving are the steps that may be run where the load balancer is not: what is the organisation's is seen there, too, and may be in use.
func (e *ensuring) leaving(steps []lb.Step, status *corev1.LoadBalancerStatus) []lb.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s lb.Step) bool {
		switch s.Kind {
		case lb.KindAddress:
			return s.Address == nil || slices.ContainsFunc(status.Ingress, func(i corev1.LoadBalancerIngress) bool { return i.IP == s.Address.Value.String() })
		case lb.KindProfile:
			return e.wish.Desired.OneArm != nil
		default:
			return !s.Kind.OnGateway()
		}
	})
}
