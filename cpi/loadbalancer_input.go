package cpi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	servicehelpers "k8s.io/cloud-provider/service/helpers"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// input gathers what the load balancer of a Service depends on.
func (l *LoadBalancers) input(ctx context.Context, s *corev1.Service) (service.Input, error) {
	in, err := l.identity(s)
	if err != nil {
		return in, err
	}
	if in.Nodes, in.Edition, err = l.editions.nodes(l.opts.Nodes, in.Now); err != nil {
		return in, fmt.Errorf("listing nodes: %w", err)
	}
	for _, name := range service.SecretNames(s) {
		secret, err := l.opts.Client.CoreV1().Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			in.Hidden = append(in.Hidden, name)
			continue
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return in, fmt.Errorf("reading Secret %s: %w", name, err)
		}
		if in.Secrets == nil {
			in.Secrets = map[string]*corev1.Secret{}
		}
		in.Secrets[name] = secret
	}
	return in, nil
}

// identity gathers what says whose a load balancer is.
func (l *LoadBalancers) identity(s *corev1.Service) (service.Input, error) {
	in := service.Input{Service: s, Defaults: l.opts.Defaults, Now: l.opts.Clock.Now()}
	all, err := l.opts.Services.List(labels.Everything())
	if err != nil {
		return in, fmt.Errorf("listing Services: %w", err)
	}
	for _, other := range all {
		balanced := other.Spec.Type == corev1.ServiceTypeLoadBalancer || servicehelpers.HasLBFinalizer(other)
		if balanced && other.Name == s.Name && other.Namespace != s.Namespace {
			in.Namesakes = append(in.Namesakes, other)
		}
	}
	if intent := l.memories.of(s.UID).intent; intent != "" && s.Annotations[service.IntentAnnotation] != intent {
		in.Service = s.DeepCopy() // what is cached is older than what we wrote
		metav1.SetMetaDataAnnotation(&in.Service.ObjectMeta, service.IntentAnnotation, intent)
	}
	return in, nil
}

// absent is what is asked for when nothing shall be left.
func (l *LoadBalancers) absent(s *corev1.Service, place string) (lb.Desired, error) {
	in, err := l.identity(s)
	if err != nil {
		return lb.Desired{}, err
	}
	d := service.Absent(in)
	others, err := l.others(s, place)
	d.Accompanied = len(others) > 0
	return d, err
}

// announce writes down what a plan is about to do for the first time: the addresses it uses, and where it makes something.
func (e *ensuring) announce(ctx context.Context, plan lb.Plan) error {
	n := note{addresses: plan.Intent}
	if written := e.written(e.service); len(plan.Steps) > 0 && !slices.Contains(written, e.at) {
		n.places = append([]string{e.at}, written...)
		if len(written) == 0 {
			n.places = append(n.places, slices.DeleteFunc(e.everywhere(ctx), func(id string) bool { return id == e.at })...)
		}
	}
	return e.write(ctx, n)
}

// A note is what is written down on a Service. What is nil is not written; where nothing is left, the annotation goes.
type note struct {
	addresses []netip.Addr
	places    []string
}

// annotations are what it says; nil takes one away.
func (n note) annotations() map[string]any {
	out := map[string]any{}
	if n.addresses != nil {
		out[service.IntentAnnotation] = nil
	}
	if len(n.addresses) > 0 {
		out[service.IntentAnnotation] = joined(n.addresses)
	}
	if n.places != nil {
		out[service.PlacesAnnotation] = nil
	}
	if len(n.places) > 0 {
		out[service.PlacesAnnotation] = strings.Join(n.places, ",")
	}
	return out
}

func joined(addresses []netip.Addr) string {
	words := make([]string, 0, len(addresses))
	for _, a := range addresses {
		words = append(words, a.String())
	}
	return strings.Join(words, ",")
}

// write writes a note.
func (e *ensuring) write(ctx context.Context, n note) error {
	annotations := n.annotations()
	if len(annotations) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": e.service.UID, "annotations": annotations}})
	if err != nil {
		return fmt.Errorf("writing down what is intended: %w", err)
	}
	if _, err := e.opts.Client.CoreV1().Services(e.service.Namespace).Patch(ctx, e.service.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("writing down what is intended: %w", err)
	}
	e.memories.change(e.service.UID, func(m *memory) {
		if n.addresses != nil {
			m.intent = joined(n.addresses)
		}
		if n.places != nil {
			m.standing = n.places
		}
	})
	if n.addresses != nil {
		e.wish.Desired.Intent = slices.Clone(n.addresses)
	}
	return nil
}

// A memory is what caches may not tell yet of a Service.
type memory struct {
	intent   string   // the addresses that were written down last
	standing []string // the places that were written down last, until the cache tells them
	made     bool     // its load balancer was as wanted
	place    string   // where it was last planned
	uses     []lb.Use // that plan's, as far as they do not stand yet
	refusal  refusal  // of a step
}

// memories are those of all Services.
type memories struct {
	mu  sync.Mutex
	all map[types.UID]memory
}

func (m *memories) of(uid types.UID) memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[uid]
}

// uses are what is about to be used at a place by all Services but one.
func (m *memories) uses(place string, but types.UID) []lb.Use {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []lb.Use
	for uid, x := range m.all {
		if uid != but && x.place == place {
			out = append(out, x.uses...)
		}
	}
	return out
}

func (m *memories) change(uid types.UID, f func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.UID]memory{}
	}
	x := m.all[uid]
	f(&x)
	m.all[uid] = x
}

// keep forgets all but some.
func (m *memories) keep(some map[types.UID]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.all, func(uid types.UID, _ memory) bool { return !some[uid] })
}

func (m *memories) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, uid)
}
