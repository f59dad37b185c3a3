// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
)

// Release frees all addresses of the owner: those of its claims, and those that it holds without a claim. The names are
// of claims that the owner may have created recently, which the cache may not show yet. Release does not wait until the
// addresses are back in their pools, which may keep them for a while.
func (c Claims) Release(ctx context.Context, names ...string) error {
	claims, err := c.owned(ctx, names)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if err := c.Free(ctx, claim); err != nil {
			return err
		}
	}
	held, err := c.held(ctx)
	for _, address := range held {
		if err := c.unhold(ctx, address); err != nil {
			return err
		}
	}
	return err
}

// owned returns the claims of the owner: those in the cache, and those with the given names, which it reads live.
func (c Claims) owned(ctx context.Context, names []string) (map[string]*ipamv1.IPAddressClaim, error) {
	claims := map[string]*ipamv1.IPAddressClaim{}
	list := &ipamv1.IPAddressClaimList{}
	if err := c.Client.List(ctx, list, client.InNamespace(c.Owner.GetNamespace()),
		capicluster.Labels(c.Cluster)); err != nil {
		return nil, fmt.Errorf("listing IPAddressClaims: %w", err)
	}
	for i := range list.Items {
		claims[list.Items[i].Name] = &list.Items[i]
	}
	for _, name := range names {
		claim := &ipamv1.IPAddressClaim{}
		if err := c.Live.Get(ctx, c.key(name), claim); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("getting IPAddressClaim %s: %w", name, err)
		}
		claims[name] = claim
	}
	maps.DeleteFunc(claims, func(_ string, claim *ipamv1.IPAddressClaim) bool {
		return claim.Name == "" || !c.owns(claim)
	})
	return claims, nil
}

// Free releases the address of a claim of the owner, and deletes the claim.
func (c Claims) Free(ctx context.Context, claim *ipamv1.IPAddressClaim) error {
	if err := c.unholdClaimed(ctx, claim); err != nil {
		return err
	}
	if !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	uid := client.Preconditions{UID: &claim.UID}
	err := c.Client.Delete(ctx, claim, uid)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting IPAddressClaim %s: %w", claim.Name, err)
	}
	return nil
}

// unholdClaimed allows the IPAddress of a claim to be deleted. It reads live, because the owner may have held the
// address a moment ago, perhaps under another ID.
func (c Claims) unholdClaimed(ctx context.Context, claim *ipamv1.IPAddressClaim) error {
	name := claim.Status.AddressRef.Name
	if name == "" {
		return nil
	}
	address := &ipamv1.IPAddress{}
	err := c.Live.Get(ctx, c.key(name), address)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("getting IPAddress %s: %w", name, err)
	case address.Annotations[infrav1.InstanceIDAnnotation] == c.ID,
		metav1.IsControlledBy(claim, c.Owner) && address.Spec.ClaimRef.Name == claim.Name:
		return c.unhold(ctx, address)
	}
	return nil
}

// held returns the IPAddresses that the owner holds.
func (c Claims) held(ctx context.Context) ([]*ipamv1.IPAddress, error) {
	list := &ipamv1.IPAddressList{}
	if err := c.Client.List(ctx, list, client.InNamespace(c.Owner.GetNamespace()),
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing IPAddresses: %w", err)
	}
	var held []*ipamv1.IPAddress
	for i := range list.Items {
		address := &list.Items[i]
		if c.ID != "" && address.Annotations[infrav1.InstanceIDAnnotation] == c.ID &&
			controllerutil.ContainsFinalizer(address, infrav1.AddressFinalizer) {
			held = append(held, address.DeepCopy())
		}
	}
	return held, nil
}

// unholdOf allows the IPAddress of a claim to be deleted, and reports whether the owner held it.
func (c Claims) unholdOf(ctx context.Context, claim string) (bool, error) {
	held, err := c.held(ctx)
	for _, address := range held {
		if address.Spec.ClaimRef.Name == claim {
			return true, c.unhold(ctx, address)
		}
	}
	return false, err
}

// unhold removes the finalizer of [Claims.Hold], so that an IPAddress can be deleted.
func (c Claims) unhold(ctx context.Context, address *ipamv1.IPAddress) error {
	was := address.DeepCopy()
	if !controllerutil.RemoveFinalizer(address, infrav1.AddressFinalizer) {
		return nil
	}
	if err := c.Client.Patch(ctx, address, lock(was)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing IPAddress %s: %w", address.Name, err)
	}
	return nil
}
