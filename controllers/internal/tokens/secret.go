// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// tokenTimeout bounds the requests to the API server, because no login is possible meanwhile.
const tokenTimeout = 10 * time.Second

// An API gives access to the objects of the management cluster that tokens depend on.
type API struct {
	// Client reads identities, clusters and zones from the cache, and writes Secrets.
	Client client.Client
	// Live reads Secrets, which no cache holds.
	Live client.Reader
	// Namespace contains the Secrets of VCDClusterIdentities.
	Namespace string
}

// A Secret stores the token of a service account that the manager uses, in the Secret of its identity.
type Secret struct {
	API API
	Key types.NamespacedName
}

var _ vcd.TokenStore = (*Secret)(nil)

// A StoreError explains why no token is available. It holds a result for the object that logs in, or an error.
type StoreError struct {
	Result phases.Result
	Err    error
}

// Error implements error.
func (e *StoreError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Result.Message
}

// Load reads the token from the API server. It also records there that the manager holds the token and is about to
// rotate it: if this write fails, the next token could not be stored after the login either, when it would be too late.
func (s *Secret) Load(ctx context.Context) (string, error) {
	users, err := s.API.UsersOf(ctx, s.Key)
	switch {
	case err != nil:
		return "", &StoreError{Err: err}
	case users.Active > 0:
	case users.Paused > 0:
		return "", &StoreError{Result: phases.Wait(intervals.Task, clusterv1.PausedReason,
			"All clusters and zones that use Secret %s are paused", s.Key)}
	default:
		return "", &StoreError{Result: phases.Wait(intervals.Task, infrav1.WaitingForClusterReason,
			"No VCDCluster or VCDDeploymentZone uses Secret %s", s.Key)}
	}
	var token string
	err = s.Change(ctx, func(secret *corev1.Secret) error {
		if out := Problem(infrav1.CredentialServiceAccount, secret, Manager); out != phases.Done {
			return &StoreError{Result: out}
		}
		token = tokenIn(secret)
		if token == "" {
			return nil
		}
		chain, _ := ChainOf(secret)
		chain.Holder = Manager
		chain.Trading = chain.Last
		return chain.write(secret)
	})
	if err != nil {
		return "", s.problem(err)
	}
	return token, nil
}

// Store writes the next token, unless the Secret has another token than old.
func (s *Secret) Store(ctx context.Context, old, token string) error {
	return s.Change(ctx, func(secret *corev1.Secret) error {
		if tokenIn(secret) != old {
			return fmt.Errorf("writing Secret %s: another token was written: %w", s.Key, vcd.ErrConflict)
		}
		chain, _ := ChainOf(secret)
		chain.Holder = Manager
		chain.Last = fingerprint(token)
		chain.Trading = ""
		secret.Data[tokenKey(secret)] = []byte(token)
		return chain.write(secret)
	})
}

// Change changes the Secret at the API server. After a conflict it reads the Secret again and retries.
func (s *Secret) Change(ctx context.Context, change func(*corev1.Secret) error) error {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	for {
		secret := &corev1.Secret{}
		if err := s.API.Live.Get(ctx, s.Key, secret); err != nil {
			return fmt.Errorf("getting Secret %s: %w", s.Key, err)
		}
		before := secret.DeepCopy()
		if err := change(secret); err != nil || equality.Semantic.DeepEqual(before, secret) {
			return err
		}
		err := s.API.Client.Update(ctx, secret)
		switch {
		case err == nil:
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("writing Secret %s: %w", s.Key, err)
		}
	}
}

// Give records that from now on the token belongs to the cloud controller manager of a cluster. The first caller gets
// the token, which may be used as soon as it is in the workload cluster.
func (s *Secret) Give(ctx context.Context, cluster string) error {
	return s.Change(ctx, func(secret *corev1.Secret) error {
		if out := Problem(infrav1.CredentialServiceAccount, secret, cluster); out != phases.Done {
			return &StoreError{Result: out}
		}
		chain, _ := ChainOf(secret)
		chain.Holder = cluster
		return chain.write(secret)
	})
}

// problem maps an error that a user must fix to a result. Other errors are retried.
func (s *Secret) problem(err error) error {
	if problem, ok := errors.AsType[*StoreError](err); ok {
		return problem
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return &StoreError{Result: phases.Fail(intervals.Remedy, infrav1.TokenNotWritableReason,
			"Logins are suspended because the next token could not be stored (%v): allow the manager to update Secret %s", err, s.Key)}
	}
	return &StoreError{Err: err}
}
