// SPDX-License-Identifier: Apache-2.0

// Package secretcache reads Secrets only after they have changed. An informer of Secrets would hold those of all other
// programs, too. This package holds the few that reconciles read again and again, and learns from cached metadata
// whether they are still current.
package secretcache

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keepFor is how long a Secret is held after it was last read. It is longer than the interval between the reconciles of
// an object that does not change.
const keepFor = time.Hour

// Reader is a [client.Reader] that holds the Secrets it reads. It reads other kinds, and lists, from the API server. A
// Secret may be as old as the cached metadata, unless it was written with a client of [Reader.Writing].
type Reader struct {
	client.Reader // the API server

	metadata client.Reader // of Secrets, cached
	now      func() time.Time

	mu   sync.Mutex
	held map[client.ObjectKey]held
}

// held is a Secret, and when it was last read.
type held struct {
	secret *corev1.Secret
	read   time.Time
}

// New returns a reader of the API server. metadata reads the cached metadata of Secrets. If it does not contain a
// Secret, the API server is read.
func New(live, metadata client.Reader) *Reader {
	return &Reader{
		Reader:   live,
		metadata: metadata,
		now:      time.Now,
		held:     map[client.ObjectKey]held{},
	}
}

// Get reads an object. The caller may change it.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return r.Reader.Get(ctx, key, obj, opts...)
	}
	if known := r.current(ctx, key); known != nil {
		known.DeepCopyInto(secret)
		return nil
	}
	if err := r.Reader.Get(ctx, key, secret, opts...); err != nil {
		return err
	}
	r.hold(key, secret.DeepCopy())
	return nil
}

// current returns the held Secret if its version is the one that the metadata shows, or nil otherwise.
func (r *Reader) current(ctx context.Context, key client.ObjectKey) *corev1.Secret {
	known := r.use(key)
	if known == nil {
		return nil
	}
	shown := &metav1.PartialObjectMetadata{}
	shown.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.metadata.Get(ctx, key, shown, client.UnsafeDisableDeepCopy)
	if err != nil || shown.UID != known.UID || shown.ResourceVersion != known.ResourceVersion {
		return nil
	}
	return known
}

// use returns the held Secret, which may be outdated, and notes the time.
func (r *Reader) use(key client.ObjectKey) *corev1.Secret {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.held[key]
	if !ok {
		return nil
	}
	r.held[key] = held{h.secret, r.now()}
	return h.secret
}

// hold holds a Secret, and drops those that were not read for a long time.
func (r *Reader) hold(key client.ObjectKey, secret *corev1.Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	maps.DeleteFunc(r.held, func(_ client.ObjectKey, h held) bool { return now.Sub(h.read) > keepFor })
	r.held[key] = held{secret, now}
}

// forget makes the next call read a Secret from the API server.
func (r *Reader) forget(obj client.Object) {
	if _, ok := obj.(*corev1.Secret); !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, client.ObjectKeyFromObject(obj))
}

// Writing returns a client whose writes the reader notices, before the cached metadata shows them.
func (r *Reader) Writing(c client.Client) client.Client { return writer{c, r} }

// A writer is a client that makes a reader forget the Secrets that it writes. It does so for failed writes, too: after a
// conflict, the Secret has changed.
type writer struct {
	client.Client

	reader *Reader
}

func (w writer) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	defer w.reader.forget(obj)
	return w.Client.Create(ctx, obj, opts...)
}

func (w writer) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	defer w.reader.forget(obj)
	return w.Client.Update(ctx, obj, opts...)
}

func (w writer) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	defer w.reader.forget(obj)
	return w.Client.Patch(ctx, obj, patch, opts...)
}

func (w writer) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	defer w.reader.forget(obj)
	return w.Client.Delete(ctx, obj, opts...)
}
