// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// InspectTimeout bounds one inspection of a workload cluster. It is long enough for clusters with many objects.
const InspectTimeout = 30 * time.Second

// RequestTimeout bounds each request of an inspection, so that a cluster that does not respond blocks no worker.
const RequestTimeout = 5 * time.Second

// A Guest is a workload cluster. Its failures are of type [Error], or are wrapped in one before they are returned.
type Guest struct {
	client.Client

	InfraID string // identifies the objects of this cluster
}

// Get gets an object, within [RequestTimeout].
func (w *Guest) Get(ctx context.Context, key client.ObjectKey, to client.Object, opts ...client.GetOption) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return w.Client.Get(ctx, key, to, opts...)
}

// List gets a page of objects, within [RequestTimeout].
func (w *Guest) List(ctx context.Context, to client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return w.Client.List(ctx, to, opts...)
}

// Delete deletes an object, within [RequestTimeout].
func (w *Guest) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return w.Client.Delete(ctx, obj, opts...)
}

// An Error is an error from the API server of a workload cluster, or a failure to reach it.
type Error struct{ Err error }

// Error implements error.
func (e *Error) Error() string { return "querying the workload cluster: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Compare returns the current state of the objects in manifests, and the names of those that are missing or differ.
func (w *Guest) Compare(ctx context.Context, manifests []byte) (found []*unstructured.Unstructured, wrong []string, err error) {
	wanted, err := addons.Parse(manifests)
	if err != nil {
		return nil, nil, err
	}
	var differ []item
	for _, want := range wanted {
		actual := itemOf(want).object()
		if err := w.Get(ctx, client.ObjectKeyFromObject(&want), actual); client.IgnoreNotFound(err) != nil {
			return nil, nil, &Error{err}
		} else if err != nil || !addons.Holds(actual.Object, want.Object) {
			differ = append(differ, itemOf(want))
		}
		found = append(found, actual)
	}
	return found, itemNames(differ), nil
}

// remove deletes those items that are marked as this cluster's from the workload cluster, and returns their names.
func (w *Guest) remove(ctx context.Context, items []item) ([]string, error) {
	var removed []string
	for _, i := range items {
		obj := i.object()
		err := w.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil && obj.GetAnnotations()[infrav1.CloudProviderOfAnnotation] == w.InfraID {
			uid := obj.GetUID()
			removed = append(removed, i.String())
			err = w.Delete(ctx, obj, client.Preconditions{UID: &uid},
				client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
		if client.IgnoreNotFound(err) != nil {
			return removed, &Error{err}
		}
	}
	return removed, nil
}
