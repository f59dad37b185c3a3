// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// WakeUps triggers a reconcile when a task in VCD ends. The zero value is ready to use.
type WakeUps struct {
	once sync.Once
	ch   chan event.GenericEvent
}

func (w *WakeUps) channel() chan event.GenericEvent {
	w.once.Do(func() { w.ch = make(chan event.GenericEvent, 1024) })
	return w.ch
}

// Source returns the source that a controller must watch.
func (w *WakeUps) Source() source.Source {
	return source.Channel(w.channel(), &handler.EnqueueRequestForObject{})
}

// ForObject returns a function that triggers a reconcile of obj. It never blocks. If the channel is full, the event is
// lost, and the next scheduled reconcile replaces it.
func (w *WakeUps) ForObject(obj client.Object) func() {
	name := metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	wake := event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: name}}
	return func() {
		select {
		case w.channel() <- wake:
		default:
		}
	}
}

// Deletions passes only delete events.
func Deletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
