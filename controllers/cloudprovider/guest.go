package cloudprovider

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// inspectPage is how many objects of a workload cluster are held at once.
const inspectPage = 200

// A guest is a workload cluster. Its failures are of type guestError.
type guest struct {
	client.Client

	infraID string // marks what is ours in it
}

// Get gets an object, within [requestTimeout].
func (w *guest) Get(ctx context.Context, key client.ObjectKey, to client.Object, opts ...client.GetOption) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return w.Client.Get(ctx, key, to, opts...)
}

// List gets a page of objects, within [requestTimeout].
func (w *guest) List(ctx context.Context, to client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return w.Client.List(ctx, to, opts...)
}

// Delete deletes an object, within [requestTimeout].
func (w *guest) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return w.Client.Delete(ctx, obj, opts...)
}

// A guestError is what the API server of a workload cluster answered, or did not.
type guestError struct{ err error }

// Error implements error.
func (e *guestError) Error() string { return "asking the workload cluster: " + e.err.Error() }

// Unwrap returns the cause.
func (e *guestError) Unwrap() error { return e.err }

// compare returns the Deployment, and what is missing or is not as it should be.
func (w *guest) compare(ctx context.Context, manifests []byte) (deployment *unstructured.Unstructured, wrong []item,
	err error,
) {
	wanted, err := addons.Parse(manifests)
	if err != nil {
		return nil, nil, err
	}
	for _, want := range wanted {
		actual := itemOf(want).object()
		if err := w.Get(ctx, client.ObjectKeyFromObject(&want), actual); client.IgnoreNotFound(err) != nil {
			return nil, nil, &guestError{err}
		} else if err != nil || !addons.Holds(actual.Object, want.Object) {
			wrong = append(wrong, itemOf(want))
		}
		if want.GetKind() == "Deployment" {
			deployment = actual
		}
	}
	return deployment, wrong, nil
}

// remove deletes those items from the workload cluster that are marked as this cluster's, and names them.
func (w *guest) remove(ctx context.Context, items []item) ([]string, error) {
	var removed []string
	for _, i := range items {
		obj := i.object()
		err := w.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil && obj.GetAnnotations()[infrav1.CloudProviderOfAnnotation] == w.infraID {
			uid := obj.GetUID()
			removed = append(removed, i.String())
			err = w.Delete(ctx, obj, client.Preconditions{UID: &uid},
				client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
		if client.IgnoreNotFound(err) != nil {
			return removed, &guestError{err}
		}
	}
	return removed, nil
}
