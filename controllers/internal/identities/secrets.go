// SPDX-License-Identifier: Apache-2.0

package identities

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// Secrets caches the Secrets of identities for which sessions are open. A Secret is read again when the cached metadata
// shows another version, so that reconciles of machines usually read none.
type Secrets struct {
	metadata client.Reader // cached

	mu    sync.Mutex
	byKey map[types.NamespacedName]*corev1.Secret
}

// NewSecrets returns Secrets that compare versions with the cached metadata.
func NewSecrets(metadata client.Reader) *Secrets {
	return &Secrets{metadata: metadata, byKey: map[types.NamespacedName]*corev1.Secret{}}
}

// current returns the cached Secret if its version is the one that the metadata shows, or nil otherwise. It returns nil
// if the metadata cache does not contain the namespace.
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

// put caches a Secret that was read; nil removes it.
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

// known returns the Secret of an identity, from the cache if it is current. The caller must not change it.
func (r Resolver) known(ctx context.Context, key types.NamespacedName, identity string) (*corev1.Secret,
	phases.Result, error,
) {
	if r.Secrets == nil {
		return r.Secret(ctx, key, identity)
	}
	if secret := r.Secrets.current(ctx, key); secret != nil {
		return secret, phases.Done, nil
	}
	secret, out, err := r.Secret(ctx, key, identity)
	r.Secrets.put(key, secret)
	return secret, out, err
}
