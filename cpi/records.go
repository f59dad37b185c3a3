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

// records are the stored data of Services: the intended addresses, and the locations where they have objects.
type records struct {
	store    *recordStore
	client   kubernetes.Interface
	services corelisters.ServiceLister
	defaults service.Defaults
	states   *perService[serviceState]
}

// cached returns the current Service from the cache, or nil if it no longer exists.
func (r *records) cached(s *corev1.Service) *corev1.Service {
	now, err := r.services.Services(s.Namespace).Get(s.Name)
	if err != nil || now.UID != s.UID {
		return nil
	}
	return now
}

// current returns the current Service from the cache, or nil if it no longer needs a load balancer of this process. A
// caller may hold an older object if it waited for other work, as the service controller does when nodes change.
// Changes since then must not be reverted.
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

// A recordChange is a change of a record. Nil fields are not changed.
type recordChange struct {
	addresses []netip.Addr
	locations []string
}

// write changes the record of a Service.
func (r *records) write(ctx context.Context, s *corev1.Service, n recordChange) error {
	record := r.store.Of(s.UID)
	changed := record
	if n.addresses != nil {
		changed.Addresses = n.addresses
	}
	if n.locations != nil {
		changed.Locations = n.locations
	}
	if slices.Equal(changed.Addresses, record.Addresses) && slices.Equal(changed.Locations, record.Locations) {
		return nil
	}
	return r.store.write(ctx, s, changed)
}

// locations returns the IDs of the locations where a Service may have objects.
func (r *records) locations(s *corev1.Service) []string { return r.store.Of(s.UID).Locations }

// remembered reports whether a Service that is not being deleted has a record.
func (r *records) remembered(s *corev1.Service) bool {
	now := r.cached(s)
	return now != nil && now.DeletionTimestamp == nil &&
		(!r.store.Of(s.UID).IsEmpty() || !r.defaults.Stored(now).Older.IsEmpty())
}

// forget removes the record of a Service without a load balancer. Otherwise, the next user of its address would be
// mistaken for it.
func (r *records) forget(ctx context.Context, s *corev1.Service) error {
	if err := r.write(ctx, s, recordChange{addresses: []netip.Addr{}, locations: []string{}}); err != nil {
		return err
	}
	now := r.cached(s)
	if now == nil || now.DeletionTimestamp != nil {
		return nil
	}
	return r.removeOlder(ctx, now)
}

// removeOlder removes the annotations in which older builds stored their records.
func (r *records) removeOlder(ctx context.Context, s *corev1.Service) error {
	if r.defaults.Stored(s).Older.IsEmpty() {
		return nil
	}
	names := r.defaults.Dialect.Names()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": s.UID,
		"annotations": map[string]any{
			names.OlderAddresses: nil,
			names.OlderLocations: nil,
		},
	}})
	if err == nil {
		_, err = r.client.CoreV1().Services(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch,
			metav1.PatchOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the record annotations of older builds: %w", err)
	}
	r.states.change(s.UID, func(state *serviceState) { state.olderRead = true })
	return nil
}

// removeOthers removes the records of Services that no longer exist, for example because a finalizer was removed by
// force. It keeps the records of live Services and those that were added after the Services were listed.
func (r *records) removeOthers(ctx context.Context, recorded []types.UID, live map[types.UID]bool) error {
	gone := slices.DeleteFunc(recorded, func(uid types.UID) bool { return live[uid] })
	return r.store.remove(ctx, gone...)
}

func words(addresses []netip.Addr) []string {
	out := make([]string, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, a.String())
	}
	return out
}
