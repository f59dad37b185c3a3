package cloudprovider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// inspectPage is how many objects of a workload cluster are held at once.
const inspectPage = 200

// A workload is the workload cluster. Its failures are of type workloadError.
type workload struct {
	client.Client

	infraID string // marks what is ours in it
}

// A workloadError is what the API server of a workload cluster answered, or did not.
type workloadError struct{ err error }

// Error implements error.
func (e *workloadError) Error() string { return "asking the workload cluster: " + e.err.Error() }

// Unwrap returns the cause.
func (e *workloadError) Unwrap() error { return e.err }

// compare returns the Deployment, and what is missing or is not as it should be.
func (w *workload) compare(ctx context.Context, manifests []byte) (deployment *unstructured.Unstructured, wrong []item,
	err error,
) {
	wanted, err := addons.Parse(manifests)
	if err != nil {
		return nil, nil, err
	}
	for _, want := range wanted {
		actual := itemOf(want).object()
		if err := w.Get(ctx, client.ObjectKeyFromObject(&want), actual); client.IgnoreNotFound(err) != nil {
			return nil, nil, &workloadError{err}
		} else if err != nil || !addons.Holds(actual.Object, want.Object) {
			wrong = append(wrong, itemOf(want))
		}
		if want.GetKind() == "Deployment" {
			deployment = actual
		}
	}
	return deployment, wrong, nil
}

// foreign reports whether another cloud controller manager is in the workload cluster, and what to remove.
func (w *workload) foreign(ctx context.Context) (phases.Outcome, error) {
	var found []string
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.DaemonSetList{}} {
		for more := true; more; more = list.GetContinue() != "" {
			if err := w.List(ctx, list, client.Limit(inspectPage), client.Continue(list.GetContinue())); err != nil {
				return phases.Done, &workloadError{err}
			}
			found = append(found, w.foreignIn(list)...)
		}
	}
	immutable, err := w.immutableConfig(ctx)
	if err != nil {
		return phases.Done, err
	}
	if found = append(found, immutable...); len(found) == 0 {
		return phases.Done, nil
	}
	slices.Sort(found)
	return phases.Fail(session.RemedyPoll, infrav1.ForeignCloudProviderReason,
		"Another cloud controller manager is installed in the workload cluster: remove %s, and what put it there, "+
			"such as a ClusterResourceSet that selects this Cluster, or set spec.cloudProvider.mode to External",
		phases.Few(found)), nil
}

// foreignIn returns the cloud controller managers of a list that are not this cluster'w.
func (w *workload) foreignIn(list client.ObjectList) []string {
	var found []string
	add := func(kind string, meta metav1.ObjectMeta, pod corev1.PodSpec) {
		if meta.Annotations[infrav1.CloudProviderOfAnnotation] == w.infraID {
			return
		}
		for _, c := range pod.Containers {
			if isCloudProvider(c) {
				found = append(found, fmt.Sprintf("%s %s/%s (%s)", kind, meta.Namespace, meta.Name, c.Image))
				return
			}
		}
	}
	switch l := list.(type) {
	case *appsv1.DeploymentList:
		for i := range l.Items {
			add("Deployment", l.Items[i].ObjectMeta, l.Items[i].Spec.Template.Spec)
		}
	case *appsv1.DaemonSetList:
		for i := range l.Items {
			add("DaemonSet", l.Items[i].ObjectMeta, l.Items[i].Spec.Template.Spec)
		}
	}
	return found
}

// immutableConfig returns the ConfigMap that CPI left, if ours cannot replace it.
func (w *workload) immutableConfig(ctx context.Context) ([]string, error) {
	config := &corev1.ConfigMap{}
	err := w.Get(ctx, client.ObjectKey{Namespace: addons.Namespace, Name: addons.ConfigMapName}, config)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, &workloadError{err}
	case config.Immutable != nil && *config.Immutable:
		return []string{"ConfigMap " + addons.Namespace + "/" + addons.ConfigMapName + " (immutable)"}, nil
	}
	return nil, nil
}

// remove deletes those items from the workload cluster that are marked as this cluster's, and names them.
func (w *workload) remove(ctx context.Context, items []item) ([]string, error) {
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
			return removed, &workloadError{err}
		}
	}
	return removed, nil
}

// isCloudProvider reports whether a container runs a cloud controller manager, by the name of its image, or by the flag
// that each of them has.
func isCloudProvider(c corev1.Container) bool {
	name := c.Image[strings.LastIndex(c.Image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	if name == addons.Repository || strings.HasSuffix(name, "cloud-controller-manager") {
		return true
	}
	words := slices.Concat(c.Command, c.Args)
	for i, word := range words {
		if word == "--cloud-provider" && i+1 < len(words) {
			word += "=" + words[i+1]
		}
		if value, ok := strings.CutPrefix(word, "--cloud-provider="); ok && value != "" && value != "external" {
			return true
		}
	}
	return false
}
