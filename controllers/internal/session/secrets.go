// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// Secrets are the Secrets of identities as they were read last. One is read again when the cached metadata shows
// another version, so that a pass of a machine reads none. They are only those that sessions are open with.
type Secrets struct {
	metadata client.Reader // a cache

	mu    sync.Mutex
	byKey map[types.NamespacedName]*corev1.Secret
}

// NewSecrets returns Secrets whose versions a cache of metadata shows.
func NewSecrets(metadata client.Reader) *Secrets {
	return &Secrets{metadata: metadata, byKey: map[types.NamespacedName]*corev1.Secret{}}
}

// current returns the Secret if it was read in the version that the cache shows, else nil. A cache that does not hold
// the namespace shows none.
func (s *Secrets) current(ctx context.Context, key types.NamespacedName) *corev1.Secret {
	s.mu.Lock()
	known := s.byKey[key]
	s.mu.Unlock()
	if known == nil {
		return nil
	}
	shown := &metav1.PartialObjectMetadata{}
	shown.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := s.metadata.Get(ctx, key, shown); err != nil || shown.UID != known.UID ||
		shown.ResourceVersion != known.ResourceVersion {
		return nil
	}
	return known
}

// put stores a Secret that was read; nil forgets it.
func (s *Secrets) put(key types.NamespacedName, secret *corev1.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if secret == nil {
		delete(s.byKey, key)
		return
	}
	secret.ManagedFields = nil
	s.byKey[key] = secret
}

// known returns the Secret of an identity, which must not be changed.
func (i Identities) known(ctx context.Context, key types.NamespacedName, identity string) (*corev1.Secret,
	phases.Result, error,
) {
	if i.Secrets == nil {
		return i.Secret(ctx, key, identity)
	}
	if secret := i.Secrets.current(ctx, key); secret != nil {
		return secret, phases.Done, nil
	}
	secret, out, err := i.Secret(ctx, key, identity)
	i.Secrets.put(key, secret)
	return secret, out, err
}
