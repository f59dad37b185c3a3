// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
)

// Users counts the VCDClusters and VCDDeploymentZones that log in with a Secret.
type Users struct {
	Active int
	Paused int // such as those that move to another management cluster, whose manager takes over the token
}

// UsersOf counts the users of a Secret. No login with it is allowed unless a user is active. A zone counts as paused if
// all clusters of its namespace are, because they move together. A zone in a namespace without clusters counts as
// active.
func (a API) UsersOf(ctx context.Context, secret types.NamespacedName) (Users, error) {
	var users Users
	identities, err := a.namesOf(ctx, secret)
	if err != nil {
		return users, err
	}
	clusters := &infrav1.VCDClusterList{}
	if err := a.Client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return users, fmt.Errorf("listing VCDClusters: %w", err)
	}
	byNamespace := map[string]Users{} // all clusters, regardless of their identity
	for _, c := range clusters.Items {
		paused, err := capicluster.Paused(ctx, a.Client, &c)
		if err != nil {
			return users, err
		}
		byNamespace[c.Namespace] = byNamespace[c.Namespace].with(paused)
		if refersToOne(c.Namespace, c.Spec.IdentityRef, identities) {
			users = users.with(paused)
		}
	}
	zones := &infrav1.VCDDeploymentZoneList{}
	if err := a.Client.List(ctx, zones, client.UnsafeDisableDeepCopy); err != nil {
		return users, fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	for _, z := range zones.Items {
		if refersToOne(z.Namespace, z.Spec.IdentityRef, identities) {
			around := byNamespace[z.Namespace]
			moves := around.Active == 0 && around.Paused > 0
			users = users.with(moves || annotations.HasPaused(&z))
		}
	}
	return users, nil
}

// with returns the counts with another user.
func (u Users) with(paused bool) Users {
	if paused {
		u.Paused++
	} else {
		u.Active++
	}
	return u
}

// namesOf finds the identities whose credentials are in a Secret. The keys of VCDClusterIdentities have no namespace.
// It reads VCDIdentities live, because the cache may lack the namespace of the Secret.
func (a API) namesOf(ctx context.Context, secret types.NamespacedName) (map[client.ObjectKey]bool, error) {
	found := map[client.ObjectKey]bool{}
	namespaced := &infrav1.VCDIdentityList{}
	if err := a.Live.List(ctx, namespaced, client.InNamespace(secret.Namespace)); err != nil {
		return nil, fmt.Errorf("listing VCDIdentities: %w", err)
	}
	for _, identity := range namespaced.Items {
		if identity.Spec.SecretRef.Name == secret.Name {
			found[client.ObjectKeyFromObject(&identity)] = true
		}
	}
	if secret.Namespace != a.Namespace {
		return found, nil
	}
	wide := &infrav1.VCDClusterIdentityList{}
	if err := a.Client.List(ctx, wide); err != nil {
		return nil, fmt.Errorf("listing VCDClusterIdentities: %w", err)
	}
	for _, identity := range wide.Items {
		if identity.Spec.SecretRef.Name == secret.Name {
			found[client.ObjectKeyFromObject(&identity)] = true
		}
	}
	return found, nil
}

// refersToOne reports whether a reference in a namespace refers to one of the identities.
func refersToOne(namespace string, ref infrav1.IdentityReference, identities map[client.ObjectKey]bool) bool {
	key := client.ObjectKey{Namespace: namespace, Name: ref.Name}
	if ref.Kind == infrav1.ClusterIdentity {
		key.Namespace = ""
	}
	return identities[key]
}
