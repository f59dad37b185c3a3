// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// tokenTimeout bounds the requests to the API server, because no login is possible meanwhile.
	tokenTimeout = 10 * time.Second
	// tokenPoll is the delay after VCD rejected a token. A previous instance of the manager may just have used the
	// token and may be about to store the next one. VCD is not queried for that.
	tokenPoll = 35 * time.Second
)

// Accounts holds the service accounts of this process, one for each Secret. All users of a Secret share its account, so
// that there is one login at a time. The zero value is ready to use.
type Accounts struct {
	mu       sync.Mutex
	bySecret map[types.NamespacedName]*vcd.ServiceAccount
}

// Of returns the service account with its token in a Secret. It is never dropped, because two accounts for one Secret
// would lock each other out.
func (a *Accounts) Of(i Identities, secret types.NamespacedName) *vcd.ServiceAccount {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bySecret == nil {
		a.bySecret = map[types.NamespacedName]*vcd.ServiceAccount{}
	}
	if a.bySecret[secret] == nil {
		a.bySecret[secret] = vcd.NewServiceAccount(&TokenSecret{Identities: i, Key: secret})
	}
	return a.bySecret[secret]
}

// A TokenSecret stores the token of a service account that the manager uses, in the Secret of its identity.
type TokenSecret struct {
	Identities Identities
	Key        types.NamespacedName
}

var _ vcd.TokenStore = (*TokenSecret)(nil)

// A storeError explains why no token is available. It holds a result for the object that logs in, or an error.
type storeError struct {
	out phases.Result
	err error
}

// Error implements error.
func (p *storeError) Error() string {
	if p.err != nil {
		return p.err.Error()
	}
	return p.out.Message
}

// Load reads the token from the API server. It also records there that the manager holds the token and is about to
// rotate it: if this write fails, the next token could not be stored after the login either, when it would be too late.
func (t *TokenSecret) Load(ctx context.Context) (string, error) {
	users, err := t.Identities.UsersOf(ctx, t.Key)
	switch {
	case err != nil:
		return "", &storeError{err: err}
	case users.Active > 0:
	case users.Paused > 0:
		return "", &storeError{out: phases.Wait(TaskPoll, clusterv1.PausedReason,
			"All clusters and zones that use Secret %s are paused", t.Key)}
	default:
		return "", &storeError{out: phases.Wait(TaskPoll, infrav1.WaitingForClusterReason,
			"No VCDCluster or VCDDeploymentZone uses Secret %s", t.Key)}
	}
	var token string
	err = t.Change(ctx, func(secret *corev1.Secret) error {
		if out := tokenProblem(infrav1.CredentialServiceAccount, secret, ManagerHolds); out != phases.Done {
			return &storeError{out: out}
		}
		token = tokenIn(secret)
		if token == "" {
			return nil
		}
		chain, _ := ChainOf(secret)
		chain.Holder = ManagerHolds
		chain.Trading = chain.Last
		return chain.write(secret)
	})
	if err != nil {
		return "", t.problem(err)
	}
	return token, nil
}

// Store writes the next token, unless the Secret has another token than old.
func (t *TokenSecret) Store(ctx context.Context, old, token string) error {
	return t.Change(ctx, func(secret *corev1.Secret) error {
		if tokenIn(secret) != old {
			return fmt.Errorf("writing Secret %s: another token was written: %w", t.Key, vcd.ErrConflict)
		}
		chain, _ := ChainOf(secret)
		chain.Holder = ManagerHolds
		chain.Last = fingerprint(token)
		chain.Trading = ""
		secret.Data[tokenKey(secret)] = []byte(token)
		return chain.write(secret)
	})
}

// Change changes the Secret at the API server. After a conflict it reads the Secret again and retries.
func (t *TokenSecret) Change(ctx context.Context, change func(*corev1.Secret) error) error {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	for {
		secret := &corev1.Secret{}
		if err := t.Identities.Live.Get(ctx, t.Key, secret); err != nil {
			return fmt.Errorf("getting Secret %s: %w", t.Key, err)
		}
		before := secret.DeepCopy()
		if err := change(secret); err != nil || equality.Semantic.DeepEqual(before, secret) {
			return err
		}
		err := t.Identities.Client.Update(ctx, secret)
		switch {
		case err == nil:
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("writing Secret %s: %w", t.Key, err)
		}
	}
}

// problem maps an error that a user must fix to a result. Other errors are retried.
func (t *TokenSecret) problem(err error) error {
	if problem, ok := errors.AsType[*storeError](err); ok {
		return problem
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return &storeError{out: phases.Fail(RemedyPoll, infrav1.TokenNotWritableReason,
			"Logins are suspended because the next token could not be stored (%v): allow the manager to update "+
				"Secret %s", err, t.Key)}
	}
	return &storeError{err: err}
}

// Users counts the VCDClusters and VCDDeploymentZones that log in with a Secret.
type Users struct {
	Active int
	Paused int // such as those that move to another management cluster, whose manager takes over the token
}

// UsersOf counts the users of a Secret. No login with it is allowed unless a user is active. A zone counts as paused if
// all clusters of its namespace are, because they move together. A zone in a namespace without clusters counts as
// active.
func (i Identities) UsersOf(ctx context.Context, secret types.NamespacedName) (Users, error) {
	var users Users
	identities, err := i.namesOf(ctx, secret)
	if err != nil {
		return users, err
	}
	clusters := &infrav1.VCDClusterList{}
	if err := i.Client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return users, fmt.Errorf("listing VCDClusters: %w", err)
	}
	byNamespace := map[string]Users{} // all clusters, regardless of their identity
	for _, c := range clusters.Items {
		paused, err := i.Paused(ctx, &c)
		if err != nil {
			return users, err
		}
		byNamespace[c.Namespace] = byNamespace[c.Namespace].with(paused)
		if refersToOne(c.Namespace, c.Spec.IdentityRef, identities) {
			users = users.with(paused)
		}
	}
	zones := &infrav1.VCDDeploymentZoneList{}
	if err := i.Client.List(ctx, zones, client.UnsafeDisableDeepCopy); err != nil {
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
func (i Identities) namesOf(ctx context.Context, secret types.NamespacedName) (map[client.ObjectKey]bool, error) {
	found := map[client.ObjectKey]bool{}
	namespaced := &infrav1.VCDIdentityList{}
	if err := i.Live.List(ctx, namespaced, client.InNamespace(secret.Namespace)); err != nil {
		return nil, fmt.Errorf("listing VCDIdentities: %w", err)
	}
	for _, identity := range namespaced.Items {
		if identity.Spec.SecretRef.Name == secret.Name {
			found[client.ObjectKeyFromObject(&identity)] = true
		}
	}
	if secret.Namespace != i.Namespace {
		return found, nil
	}
	wide := &infrav1.VCDClusterIdentityList{}
	if err := i.Client.List(ctx, wide); err != nil {
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

// Paused reports whether c or its Cluster is paused.
func (i Identities) Paused(ctx context.Context, c *infrav1.VCDCluster) (bool, error) {
	if annotations.HasPaused(c) {
		return true, nil
	}
	cluster, err := OwnerCluster(ctx, i.Client, c)
	if err != nil {
		return false, err
	}
	return cluster != nil && annotations.IsPaused(cluster, c), nil
}
