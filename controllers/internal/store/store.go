// Package store keeps values by object in memory. Losing them with the process costs reads, nothing else.
package store

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Store holds a value for each object. The zero value is usable.
type Store[V any] struct {
	mu    sync.Mutex
	byUID map[types.UID]V
}

// Get returns the value of an object.
func (s *Store[V]) Get(uid types.UID) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.byUID[uid]
	return v, ok
}

// GetOrCreate returns the value of an object, which is created if there is none.
func (s *Store[V]) GetOrCreate(uid types.UID, create func() V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.byUID[uid]
	if !ok {
		v = create()
		s.set(uid, v)
	}
	return v
}

// Set replaces the value of an object.
func (s *Store[V]) Set(uid types.UID, v V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(uid, v)
}

func (s *Store[V]) set(uid types.UID, v V) {
	if s.byUID == nil {
		s.byUID = map[types.UID]V{}
	}
	s.byUID[uid] = v
}

// Delete drops the value of an object.
func (s *Store[V]) Delete(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byUID, uid)
}

// OnDelete returns a handler that drops the values of deleted objects and starts no reconcile.
func (s *Store[V]) OnDelete() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		s.Delete(e.Object.GetUID())
	}}
}
