// SPDX-License-Identifier: Apache-2.0

// Package ipam claims addresses from pools of Cluster API's IPAM contract, and frees them.
package ipam

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=ipaddressclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=ipaddresses,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=inclusterippools;globalinclusterippools,verbs=get

// Claims manages the addresses that one object claims.
type Claims struct {
	Client client.Client
	Live   client.Reader // for kinds without a cache, and reads for which the cache may be too old
	Owner  client.Object
	// ID identifies the owner in annotations of its claims. Unlike its UID, it survives a move and a restore.
	ID string
	// Cluster is the name of the Cluster.
	Cluster string
}

// A Claim requests one address.
type Claim struct {
	Name  string
	Pool  infrav1.IPPoolReference
	Field string // field that names the pool, for messages
	// InUse means that the address may be in use, so that it is neither released nor replaced.
	InUse bool
}

// An Address is the address that was assigned to a claim.
type Address struct {
	Addr    netip.Addr
	Bits    int        // prefix length of the subnet; 0: the pool does not define it
	Gateway netip.Addr // invalid: the pool does not define it

	object *ipamv1.IPAddress
}

// Ensure claims an address if necessary, and returns it once it is assigned. Until then the result is not Done.
func (c Claims) Ensure(ctx context.Context, claim Claim) (Address, phases.Result, error) {
	found := &ipamv1.IPAddressClaim{}
	err := c.Client.Get(ctx, c.key(claim.Name), found)
	switch {
	case apierrors.IsNotFound(err):
		out, err := c.create(ctx, claim)
		return Address{}, out, err
	case err != nil:
		return Address{}, phases.Done, fmt.Errorf("getting IPAddressClaim %s: %w", claim.Name, err)
	case !c.owns(found):
		return Address{}, phases.Fail(intervals.Remedy, infrav1.NameConflictReason, "IPAddressClaim %s does not belong to this %s: delete it, or remove the pool from %s", claim.Name, c.kind(), claim.Field), nil
	case !found.DeletionTimestamp.IsZero():
		out, err := c.awaitDeletion(ctx, claim)
		return Address{}, out, err
	case !metav1.IsControlledBy(found, c.Owner):
		return Address{}, phases.Wait(intervals.Busy, infrav1.WaitingForIPAddressClaimReason, "Adopting IPAddressClaim %s",
			claim.Name), c.adopt(ctx, found)
	case found.Spec.PoolRef != poolRef(claim.Pool) && !claim.InUse:
		return Address{}, phases.Wait(intervals.Busy, infrav1.WaitingForIPAddressClaimReason,
				"Deleting IPAddressClaim %s because the pool changed", claim.Name),
			c.Free(ctx, found)
	}
	return c.assigned(ctx, claim, found)
}

// assigned returns the address that was assigned to a claim.
func (c Claims) assigned(ctx context.Context, claim Claim, found *ipamv1.IPAddressClaim) (Address, phases.Result, error) {
	name := found.Status.AddressRef.Name
	if name == "" {
		out, err := c.unassigned(ctx, claim, found)
		return Address{}, out, err
	}
	object := &ipamv1.IPAddress{}
	err := c.Client.Get(ctx, c.key(name), object)
	switch {
	case apierrors.IsNotFound(err):
		return Address{}, phases.Wait(intervals.Task, infrav1.WaitingForIPAddressClaimReason, "Waiting for IPAddress %s", name),
			nil
	case err != nil:
		return Address{}, phases.Done, fmt.Errorf("getting IPAddress %s: %w", name, err)
	case object.Spec.ClaimRef.Name != claim.Name:
		return Address{}, phases.Fail(intervals.Remedy, infrav1.AddressInvalidReason, "IPAddress %s belongs to IPAddressClaim %s, not to %s, which refers to it: delete IPAddressClaim %s", name, object.Spec.ClaimRef.Name,
			claim.Name, claim.Name), nil
	}
	address, ok := parse(object)
	if !ok {
		return Address{}, phases.Fail(intervals.Remedy, infrav1.AddressInvalidReason, "IPAddress %s has address %q and gateway %q, which are not valid addresses: correct %s %s, then delete IPAddressClaim %s", name,
			object.Spec.Address, object.Spec.Gateway, claim.Pool.Kind, claim.Pool.Name, claim.Name), nil
	}
	return address, phases.Done, nil
}

// parse reads an IPAddress. It returns false if the address or its gateway is invalid.
func parse(object *ipamv1.IPAddress) (address Address, ok bool) {
	var err, errGateway error
	address.object = object
	address.Bits = int(ptr.Deref(object.Spec.Prefix, 0))
	address.Addr, err = netip.ParseAddr(object.Spec.Address)
	if object.Spec.Gateway != "" {
		address.Gateway, errGateway = netip.ParseAddr(object.Spec.Gateway)
	}
	return address, err == nil && errGateway == nil
}

// create creates a claim, unless an earlier claim still holds an address or the pool does not exist.
func (c Claims) create(ctx context.Context, claim Claim) (phases.Result, error) {
	if claim.InUse {
		return c.lost(claim, "does not exist"), nil
	}
	if left, err := c.unholdOf(ctx, claim.Name); err != nil || left {
		return c.waitForDeletion(claim), err
	}
	if out, _, err := c.pool(ctx, claim); err != nil || out != phases.Done {
		return out, err
	}
	object := &ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   c.Owner.GetNamespace(),
			Name:        claim.Name,
			Labels:      capicluster.Labels(c.Cluster),
			Annotations: map[string]string{infrav1.InstanceIDAnnotation: c.ID},
		},
		Spec: ipamv1.IPAddressClaimSpec{ClusterName: c.Cluster, PoolRef: poolRef(claim.Pool)},
	}
	if err := controllerutil.SetControllerReference(c.Owner, object, c.Client.Scheme()); err != nil {
		return phases.Done, fmt.Errorf("owning IPAddressClaim %s: %w", claim.Name, err)
	}
	if err := c.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return phases.Done, fmt.Errorf("creating IPAddressClaim %s: %w", claim.Name, err)
	}
	return phases.Wait(intervals.Task, infrav1.WaitingForIPAddressClaimReason, "Waiting for an address from %s %s",
		claim.Pool.Kind, claim.Pool.Name), nil
}

// awaitDeletion waits until a claim that is being deleted is gone. Its address is not used again.
func (c Claims) awaitDeletion(ctx context.Context, claim Claim) (phases.Result, error) {
	if claim.InUse {
		return c.lost(claim, "is being deleted"), nil
	}
	_, err := c.unholdOf(ctx, claim.Name)
	return c.waitForDeletion(claim), err
}

func (c Claims) waitForDeletion(claim Claim) phases.Result {
	return phases.Wait(intervals.Task, infrav1.WaitingForIPAddressClaimReason,
		"Waiting for an earlier IPAddressClaim %s to be deleted", claim.Name)
}

// lost reports that the claim of an address in use does not exist, or is being deleted.
func (c Claims) lost(claim Claim, why string) phases.Result {
	return phases.Fail(intervals.Remedy, infrav1.AddressClaimLostReason, "IPAddressClaim %s, whose address is in use, %s, so %s %s may assign the address again: replace this %s", claim.Name, why, claim.Pool.Kind,
		claim.Pool.Name, c.kind())
}

// Kept returns a problem if the claim of an address in use no longer reserves it.
func (c Claims) Kept(ctx context.Context, claim Claim) (phases.Result, error) {
	found := &ipamv1.IPAddressClaim{}
	err := c.Client.Get(ctx, c.key(claim.Name), found)
	switch {
	case apierrors.IsNotFound(err):
		return c.unclaimed(ctx, claim, "does not exist")
	case err != nil:
		return phases.Done, fmt.Errorf("getting IPAddressClaim %s: %w", claim.Name, err)
	case !found.DeletionTimestamp.IsZero():
		return c.unclaimed(ctx, claim, "is being deleted")
	case c.owns(found) && !metav1.IsControlledBy(found, c.Owner):
		return phases.Done, c.adopt(ctx, found)
	}
	return phases.Done, nil
}

// unclaimed reports that a claim does not exist or is being deleted. It is only a warning while the owner holds the
// address.
func (c Claims) unclaimed(ctx context.Context, claim Claim, why string) (phases.Result, error) {
	held, err := c.held(ctx)
	for _, address := range held {
		if address.Spec.ClaimRef.Name == claim.Name {
			return phases.Warn(infrav1.AddressClaimLostReason,
				"IPAddressClaim %s %s, but its IPAddress %s is held until this %s is deleted",
				claim.Name, why, address.Name, c.kind()), nil
		}
	}
	return c.lost(claim, why), err
}

// Unclaimed returns a warning that an address in use no longer has any of its claims. The message states whether the
// owner holds an IPAddress of these claims, which keeps the address from being assigned again.
func (c Claims) Unclaimed(ctx context.Context, address string, claims []Claim) (phases.Result, error) {
	held, err := c.held(ctx)
	if err != nil {
		return phases.Done, err
	}
	names := make([]string, 0, len(claims))
	pools := make([]string, 0, len(claims))
	for _, claim := range claims {
		names = append(names, claim.Name)
		pools = append(pools, claim.Pool.Kind+" "+claim.Pool.Name)
	}
	for _, object := range held {
		if slices.Contains(names, object.Spec.ClaimRef.Name) {
			return phases.Warn(infrav1.AddressClaimLostReason,
				"IPAddressClaim %s does not exist, but its IPAddress %s is held until this %s is deleted",
				object.Spec.ClaimRef.Name, object.Name, c.kind()), nil
		}
	}
	return phases.Warn(infrav1.AddressClaimLostReason,
		"Address %s is in use, but it has neither an IPAddressClaim (%s) nor an IPAddress, so %s may assign it again. Exclude the address from the pool, or restore both objects", address, strings.Join(names, ", "),
		strings.Join(pools, ", ")), nil
}

// adopt makes the owner the controller of its claim again, because a restore from a backup changed the owner's UID.
func (c Claims) adopt(ctx context.Context, claim *ipamv1.IPAddressClaim) error {
	ours := claim.DeepCopy()
	ours.OwnerReferences = nil
	if err := controllerutil.SetControllerReference(c.Owner, ours, c.Client.Scheme()); err != nil {
		return fmt.Errorf("owning IPAddressClaim %s: %w", claim.Name, err)
	}
	if err := c.Client.Patch(ctx, ours, lock(claim)); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("adopting IPAddressClaim %s: %w", claim.Name, err)
	}
	return nil
}

// owns reports whether a claim belongs to the owner. Claims that an earlier release created have no ID.
func (c Claims) owns(claim *ipamv1.IPAddressClaim) bool {
	return metav1.IsControlledBy(claim, c.Owner) ||
		c.ID != "" && claim.Annotations[infrav1.InstanceIDAnnotation] == c.ID
}

func (c Claims) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.Owner.GetNamespace(), Name: name}
}

// kind returns the kind of the owner, for messages.
func (c Claims) kind() string {
	if gvk, err := c.Client.GroupVersionKindFor(c.Owner); err == nil {
		return gvk.Kind
	}
	return "object"
}

func poolRef(pool infrav1.IPPoolReference) ipamv1.IPPoolReference {
	return ipamv1.IPPoolReference{Name: pool.Name, Kind: pool.Kind, APIGroup: pool.APIGroup}
}

// lock returns a merge patch from an old version of an object. The patch fails if the object was changed meanwhile.
func lock(was client.Object) client.Patch {
	return client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
}

// Hold adds a finalizer to the IPAddress of an address, so that the address does not become free if its claim is
// deleted early. Call it before anything uses the address. The call may be repeated after the owner got its ID.
func (c Claims) Hold(ctx context.Context, address Address) error {
	if controllerutil.ContainsFinalizer(address.object, infrav1.AddressFinalizer) &&
		address.object.Annotations[infrav1.InstanceIDAnnotation] == c.ID {
		return nil
	}
	held := address.object.DeepCopy()
	notes.Set(held, infrav1.InstanceIDAnnotation, c.ID)
	controllerutil.AddFinalizer(held, infrav1.AddressFinalizer)
	if err := c.Client.Patch(ctx, held, lock(address.object)); err != nil {
		return fmt.Errorf("holding IPAddress %s: %w", held.Name, err)
	}
	return nil
}
