// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// unassigned returns why a claim has no address yet.
func (c Claims) unassigned(ctx context.Context, claim Claim, found *ipamv1.IPAddressClaim) (phases.Result, error) {
	out, free, err := c.pool(ctx, claim)
	if err != nil || out != phases.Done {
		return out, err
	}
	ready := conditions.Get(found, clusterv1.ReadyCondition)
	failed := ready != nil && ready.Status == metav1.ConditionFalse
	switch {
	case free == 0, failed && ready.Reason == ipamv1.IPAddressClaimReadyPoolExhaustedReason:
		return phases.Fail(intervals.Remedy, infrav1.PoolExhaustedReason, "%s %s has no free address: add addresses to it, or set another pool in %s", claim.Pool.Kind, claim.Pool.Name, claim.Field), nil
	case failed:
		return phases.Fail(intervals.Remedy, infrav1.WaitingForIPAddressClaimReason, "%s %s does not assign an address: %s (%s): check IPAddressClaim %s", claim.Pool.Kind, claim.Pool.Name, ready.Message, ready.Reason, found.Name), nil
	}
	return phases.Wait(intervals.Task, infrav1.WaitingForIPAddressClaimReason,
		"Waiting for an address from %s %s: check IPAddressClaim %s", claim.Pool.Kind, claim.Pool.Name, found.Name), nil
}

// unknown is the number of free addresses of a pool that does not report it, or that the manager may not read.
const unknown = -1

// pool returns the problem of a claim's pool, and the number of free addresses in it. The manager can read the pools of
// the in-cluster provider, and those of other providers if it is granted access.
func (c Claims) pool(ctx context.Context, claim Claim) (out phases.Result, free int64, err error) {
	kind := schema.GroupKind{Group: claim.Pool.APIGroup, Kind: claim.Pool.Kind}
	mapping, err := c.Client.RESTMapper().RESTMapping(kind)
	switch {
	case meta.IsNoMatchError(err):
		return phases.Fail(intervals.Remedy, infrav1.PoolNotFoundReason, "%s refers to a %s, but this management cluster has no such kind: install its IPAM provider, or correct kind and apiGroup", claim.Field,
			kind), unknown, nil
	case err != nil:
		return phases.Done, unknown, fmt.Errorf("looking up kind %s: %w", kind, err)
	}
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(mapping.GroupVersionKind)
	key := client.ObjectKey{Name: claim.Pool.Name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key.Namespace = c.Owner.GetNamespace()
	}
	err = c.Live.Get(ctx, key, pool)
	switch {
	case apierrors.IsForbidden(err):
		return phases.Done, unknown, nil
	case apierrors.IsNotFound(err):
		return phases.Fail(intervals.Remedy, infrav1.PoolNotFoundReason, "%s refers to %s %s, which does not exist: create it, or correct the name", claim.Field, claim.Pool.Kind, claim.Pool.Name), unknown, nil
	case err != nil:
		return phases.Done, unknown, fmt.Errorf("getting %s %s: %w", claim.Pool.Kind, key, err)
	}
	free, ok, err := unstructured.NestedInt64(pool.Object, "status", "ipAddresses", "free")
	if !ok || err != nil {
		free = unknown // The pool belongs to another provider.
	}
	return phases.Done, free, nil
}
