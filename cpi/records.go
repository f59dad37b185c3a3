// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

// Records are what is stored on Services: the addresses that are intended, and the locations where something stands.
type records struct {
	client   kubernetes.Interface
	services corelisters.ServiceLister
	defaults service.Defaults
	states   *perService[serviceState] // what was stored and caches may not show yet
}

// cached returns a Service as the cache has it now; nil if it is gone.
func (r *records) cached(s *corev1.Service) *corev1.Service {
	now, err := r.services.Services(s.Namespace).Get(s.Name)
	if err != nil || now.UID != s.UID {
		return nil
	}
	return now
}

// current returns a Service as the cache has it now; nil if it shall have no load balancer of ours any more. A caller
// that waited for others may have an older one, as the service controller has when it follows changes of nodes: what
// was made or removed since must stay so.
func (r *records) current(s *corev1.Service) *corev1.Service {
	now := r.cached(s)
	if now == nil || now.DeletionTimestamp != nil || now.Spec.LoadBalancerClass != nil ||
		now.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	return now
}

// live returns the UIDs of all Services.
func (r *records) live() (map[types.UID]bool, error) {
	all, err := r.services.List(labels.Everything())
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
func (r *records) store(ctx context.Context, s *corev1.Service, n note) error {
	if n.addresses == nil && n.locations == nil {
		return nil
	}
	names := r.defaults.Dialect.Names()
	annotations := map[string]any{}
	set := func(name, value string) {
		if annotations[name] = value; value == "" {
			annotations[name] = nil
		}
	}
	if n.addresses != nil {
		set(names.Intent, r.defaults.Bind(s, words(n.addresses)))
	}
	if n.locations != nil {
		set(names.Standing, r.defaults.Bind(s, n.locations))
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": s.UID, "annotations": annotations}})
	if err == nil {
		_, err = r.client.CoreV1().Services(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch,
			metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing down what is intended: %w", err)
	}
	r.states.change(s.UID, func(state *serviceState) {
		if n.addresses != nil {
			state.intent = r.defaults.Bind(s, words(n.addresses))
		}
		if n.locations != nil {
			state.standing = n.locations
		}
	})
	return nil
}

// stored returns the ids of locations stored on a Service.
func (r *records) stored(s *corev1.Service) []string {
	ids := r.defaults.Stored(s).Standing
	if state := r.states.get(s.UID); len(state.standing) > 0 && !slices.Equal(state.standing, ids) {
		return state.standing // the cache is older than what was written
	}
	r.states.change(s.UID, func(state *serviceState) { state.standing = nil })
	return ids
}

// remembered reports whether something is stored on a Service that stays.
func (r *records) remembered(s *corev1.Service) bool {
	now := r.cached(s)
	names := r.defaults.Dialect.Names()
	return now != nil && now.DeletionTimestamp == nil &&
		(now.Annotations[names.Intent] != "" || now.Annotations[names.Standing] != "")
}

// unstore removes what is stored on a Service that stays without a load balancer: the next user of its address would
// be taken for it.
func (r *records) unstore(ctx context.Context, s *corev1.Service) error {
	if !r.remembered(s) && r.states.get(s.UID).intent == "" {
		return nil
	}
	err := r.store(ctx, s, note{addresses: []netip.Addr{}, locations: []string{}})
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
