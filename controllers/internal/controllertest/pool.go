// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"context"
	"net/netip"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A Pool is an IPAM provider with one pool, which does no more than the contract requires.
type Pool struct {
	infrav1.IPPoolReference

	Addresses []string
	Prefix    int32
	Gateway   string
}

// poolFinalizer keeps claims until the provider has released their addresses.
const poolFinalizer = "ipam.example.com/release"

// NewPool returns a pool of kind ExamplePool.
func NewPool(name string, prefix int32, gateway string, addresses ...string) *Pool {
	return &Pool{
		IPPoolReference: infrav1.IPPoolReference{Name: name, Kind: "ExamplePool", APIGroup: "ipam.example.com"},
		Addresses:       addresses,
		Prefix:          prefix,
		Gateway:         gateway,
	}
}

// Range returns n consecutive addresses.
func Range(first string, n int) []string {
	var addresses []string
	for a := netip.MustParseAddr(first); len(addresses) < n; a = a.Next() {
		addresses = append(addresses, a.String())
	}
	return addresses
}

// Object returns the pool as an object of the API server.
func (p *Pool) Object() client.Object {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(p.APIGroup + "/v1")
	u.SetKind(p.Kind)
	u.SetNamespace(Namespace)
	u.SetName(p.Name)
	return u
}

// Serve assigns addresses to claims without one, and releases those of deleted claims.
func (p *Pool) Serve(ctx context.Context, c client.Client) error {
	claims := &ipamv1.IPAddressClaimList{}
	given := &ipamv1.IPAddressList{}
	if err := c.List(ctx, claims); err != nil {
		return err
	}
	if err := c.List(ctx, given); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, a := range given.Items {
		used[a.Spec.Address] = true
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Spec.PoolRef.Name != p.Name || claim.Spec.PoolRef.Kind != p.Kind {
			continue
		}
		if !claim.DeletionTimestamp.IsZero() {
			if err := p.release(ctx, c, claim); err != nil {
				return err
			}
		} else if err := p.assign(ctx, c, claim, used); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pool) assign(ctx context.Context, c client.Client, claim *ipamv1.IPAddressClaim, used map[string]bool) error {
	if claim.Status.AddressRef.Name != "" {
		return nil
	}
	if controllerutil.AddFinalizer(claim, poolFinalizer) {
		if err := c.Update(ctx, claim); err != nil {
			return err
		}
	}
	address := &ipamv1.IPAddress{}
	err := c.Get(ctx, client.ObjectKeyFromObject(claim), address)
	if apierrors.IsNotFound(err) {
		address = p.address(claim, used)
		if address == nil {
			return nil // exhausted
		}
		err = c.Create(ctx, address)
	}
	if err != nil {
		return err
	}
	claim.Status.AddressRef.Name = address.Name
	return c.Status().Update(ctx, claim)
}

// address returns a free address for a claim; nil if the pool is exhausted.
func (p *Pool) address(claim *ipamv1.IPAddressClaim, used map[string]bool) *ipamv1.IPAddress {
	address := &ipamv1.IPAddress{}
	address.Namespace = claim.Namespace
	address.Name = claim.Name
	address.Spec = ipamv1.IPAddressSpec{
		ClaimRef: ipamv1.IPAddressClaimReference{Name: claim.Name},
		PoolRef:  claim.Spec.PoolRef,
		Gateway:  p.Gateway,
	}
	if p.Prefix > 0 {
		address.Spec.Prefix = ptr.To(p.Prefix)
	}
	for _, a := range p.Addresses {
		if !used[a] {
			address.Spec.Address = a
			used[a] = true
			return address
		}
	}
	return nil
}

func (p *Pool) release(ctx context.Context, c client.Client, claim *ipamv1.IPAddressClaim) error {
	address := &ipamv1.IPAddress{}
	address.Namespace = claim.Namespace
	address.Name = claim.Name
	if err := c.Delete(ctx, address); client.IgnoreNotFound(err) != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(claim, poolFinalizer) {
		return nil
	}
	return client.IgnoreNotFound(c.Update(ctx, claim))
}
