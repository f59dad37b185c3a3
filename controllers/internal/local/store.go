// SPDX-License-Identifier: Apache-2.0

// Package local stores data about objects in the memory of the process, beside the API server. Its loss costs reads,
// nothing else.
package local

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Store holds one T per object. The zero value is ready to use. Only the reconcile of an object uses its T, unless
// the documentation of T states otherwise.
type Store[T any] struct {
	mu    sync.Mutex
	byUID map[types.UID]*T
}

// Of returns the T of an object. It creates a zero T if necessary.
func (s *Store[T]) Of(uid types.UID) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byUID == nil {
		s.byUID = map[types.UID]*T{}
	}
	if s.byUID[uid] == nil {
		s.byUID[uid] = new(T)
	}
	return s.byUID[uid]
}

// Drop removes the T of an object.
func (s *Store[T]) Drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byUID, uid)
}

// Len returns the number of objects with a T.
func (s *Store[T]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byUID)
}

// DropDeleted returns an event handler that drops the T of a deleted object. It triggers no reconciles.
func (s *Store[T]) DropDeleted() handler.EventHandler {
	return handler.Funcs{
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			s.Drop(e.Object.GetUID())
		},
	}
}
