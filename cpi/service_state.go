// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
)

// perService keeps a value for each Service.
type perService[T any] struct {
	mu  sync.Mutex
	all map[types.UID]T
}

func (p *perService[T]) view(uid types.UID, f func(T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.all[uid])
}

func (p *perService[T]) get(uid types.UID) (value T) {
	p.view(uid, func(v T) { value = v })
	return value
}

func (p *perService[T]) change(uid types.UID, f func(*T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[types.UID]T{}
	}
	value := p.all[uid]
	f(&value)
	p.all[uid] = value
}

// keep drops the values of all Services but those.
func (p *perService[T]) keep(those map[types.UID]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.all, func(uid types.UID, _ T) bool { return !those[uid] })
}

func (p *perService[T]) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, uid)
}

// A serviceState is what caches may not show yet of a Service.
type serviceState struct {
	intent   string     // addresses as stored last
	standing []string   // locations as stored last, until the cache shows them
	made     bool       // its load balancer was as desired
	location string     // of the last plan
	uses     []plan.Use // of the last plan, as far as they do not stand yet
	refusal  refusal    // of a step
	// shared is when what locations share is removed again, while one of them cannot be left.
	shared time.Time
	// unleft is when locations that could not be left are tried again, by id. The map is replaced, never changed.
	unleft map[string]backoff
	// theirs is what another process has stored of locations, on a Service of another class that has nothing here.
	theirs string
}

// usesOfOthers returns what is about to be used at a location by all Services but one. What a Service was about to use
// that does not exist any more is free, unless an attempt for it still runs.
func (l *LoadBalancers) usesOfOthers(location string, but types.UID) ([]plan.Use, error) {
	live, err := l.live()
	if err != nil {
		return nil, err
	}
	var out []plan.Use
	for uid, uses := range l.usesAt(location) {
		if uid != but && (live[uid] || l.isBusy(uid)) {
			out = append(out, uses...)
		}
	}
	return out, nil
}

// usesAt returns what Services are about to use at a location.
func (l *LoadBalancers) usesAt(location string) map[types.UID][]plan.Use {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	uses := map[types.UID][]plan.Use{}
	for uid, x := range l.state.all {
		if x.location == location && len(x.uses) > 0 {
			uses[uid] = x.uses
		}
	}
	return uses
}

// isBusy reports whether an attempt for a Service runs.
func (l *LoadBalancers) isBusy(uid types.UID) bool {
	unlock, ok := l.locks.try(string(uid))
	if ok {
		unlock()
	}
	return !ok
}

// live returns the UIDs of all Services.
func (l *LoadBalancers) live() (map[types.UID]bool, error) {
	all, err := l.opts.Services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	live := map[types.UID]bool{}
	for _, s := range all {
		live[s.UID] = true
	}
	return live, nil
}

// A note is what is stored on a Service. What is nil is not written; where nothing is left, the annotation is removed.
type note struct {
	addresses []netip.Addr
	locations []string
}

// store writes a note.
func (l *LoadBalancers) store(ctx context.Context, s *corev1.Service, n note) error {
	if n.addresses == nil && n.locations == nil {
		return nil
	}
	names := l.opts.Defaults.Dialect.Names()
	annotations := map[string]any{}
	set := func(name, value string) {
		if annotations[name] = value; value == "" {
			annotations[name] = nil
		}
	}
	if n.addresses != nil {
		set(names.Intent, l.opts.Defaults.Bind(s, words(n.addresses)))
	}
	if n.locations != nil {
		set(names.Standing, l.opts.Defaults.Bind(s, n.locations))
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": s.UID, "annotations": annotations}})
	if err == nil {
		_, err = l.opts.Client.CoreV1().Services(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch,
			metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing down what is intended: %w", err)
	}
	l.state.change(s.UID, func(state *serviceState) {
		if n.addresses != nil {
			state.intent = l.opts.Defaults.Bind(s, words(n.addresses))
		}
		if n.locations != nil {
			state.standing = n.locations
		}
	})
	return nil
}

// remembered reports whether something is stored on a Service that stays.
func (l *LoadBalancers) remembered(s *corev1.Service) bool {
	now := l.cached(s)
	names := l.opts.Defaults.Dialect.Names()
	return now != nil && now.DeletionTimestamp == nil &&
		(now.Annotations[names.Intent] != "" || now.Annotations[names.Standing] != "")
}

// unstore removes what is stored on a Service that stays without a load balancer: the next user of its address would
// be taken for it.
func (l *LoadBalancers) unstore(ctx context.Context, s *corev1.Service) error {
	if !l.remembered(s) && l.state.get(s.UID).intent == "" {
		return nil
	}
	err := l.store(ctx, s, note{addresses: []netip.Addr{}, locations: []string{}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func words(addresses []netip.Addr) []string {
	out := make([]string, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, a.String())
	}
	return out
}

// stored returns the ids of locations stored on a Service.
func (l *LoadBalancers) stored(s *corev1.Service) []string {
	ids := l.opts.Defaults.Stored(s).Standing
	if state := l.state.get(s.UID); len(state.standing) > 0 && !slices.Equal(state.standing, ids) {
		return state.standing // the cache is older than what was written
	}
	l.state.change(s.UID, func(state *serviceState) { state.standing = nil })
	return ids
}
