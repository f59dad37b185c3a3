package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// inspectTimeout bounds one inspection of a workload cluster.
	inspectTimeout = 5 * time.Second
	// inspectPage is how many objects of a workload cluster are held at once.
	inspectPage = 200
)

// look looks at the workload cluster, if it is time.
func (s *scope) look(ctx context.Context) (phases.Outcome, error) {
	uid, hash := s.vcdCluster.UID, s.hash()
	if out, ok := s.visits.last(uid, hash, s.LookEvery, s.now()); ok {
		return out, nil
	}
	workload, out := s.workload(ctx)
	if out != phases.Done {
		return out, nil
	}
	limited, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	out, err := s.inspect(limited, workload)
	if err != nil {
		return s.unanswered(ctx, err)
	}
	if s.hash() == hash { // Otherwise something was changed, and nothing is known of it.
		s.visits.keep(uid, visit{at: s.now(), hash: hash, out: out})
	}
	return out, nil
}

// unanswered tells failures of the workload cluster from others.
func (s *scope) unanswered(ctx context.Context, err error) (phases.Outcome, error) {
	if lost := (*workloadError)(nil); !errors.As(err, &lost) || ctx.Err() != nil {
		return phases.Done, err
	}
	return phases.Unsure(session.UnreachablePoll, infrav1.WorkloadClusterUnreachableReason, "The API server of the workload cluster does not answer: see the Cluster"), nil
}

// A workloadError is what the API server of a workload cluster answered, or did not.
type workloadError struct{ err error }

// Error implements error.
func (e *workloadError) Error() string { return "asking the workload cluster: " + e.err.Error() }

// Unwrap returns the cause.
func (e *workloadError) Unwrap() error { return e.err }

// inspect holds the workload cluster against what should be there, and mends what is not.
func (s *scope) inspect(ctx context.Context, workload client.Client) (phases.Outcome, error) {
	if out, err := s.foreign(ctx, workload); err != nil || out != phases.Done {
		return out, err
	}
	if err := s.removeDropped(ctx, workload); err != nil {
		return phases.Done, err
	}
	deployment, wrong, err := s.compare(ctx, workload)
	switch {
	case err != nil:
		return phases.Done, err
	case len(wrong) > 0:
		return s.mend(ctx, itemNames(wrong))
	}
	return s.available(deployment)
}

// compare returns the Deployment, and what is missing or is not as it should be.
func (s *scope) compare(ctx context.Context, workload client.Client) (deployment *unstructured.Unstructured, wrong []item, err error) {
	wished, err := addons.Parse(s.set.Data[manifestsKey])
	if err != nil {
		return nil, nil, err
	}
	for _, w := range wished {
		actual := itemOf(w).object()
		if err := workload.Get(ctx, client.ObjectKeyFromObject(&w), actual); client.IgnoreNotFound(err) != nil {
			return nil, nil, &workloadError{err}
		} else if err != nil || !addons.Holds(actual.Object, w.Object) {
			wrong = append(wrong, itemOf(w))
		}
		if w.GetKind() == "Deployment" {
			deployment = actual
		}
	}
	return deployment, wrong, nil
}

// mend has everything applied anew, unless Cluster API may not have had the time to do it yet.
func (s *scope) mend(ctx context.Context, wrong []string) (phases.Outcome, error) {
	if at, err := time.Parse(time.RFC3339, s.written(infrav1.CloudProviderWrittenAnnotation)); err == nil && s.now().Sub(at) < min(applyTime, s.LookEvery) {
		return s.applying(wrong), nil
	}
	now := s.now().UTC().Format(time.RFC3339)
	objects, err := s.render(now)
	if err != nil {
		return phases.Done, fmt.Errorf("rendering the cloud controller manager: %w", err)
	}
	metav1.SetMetaDataAnnotation(&s.set.ObjectMeta, infrav1.CloudProviderAppliedAnnotation, now)
	if _, err := s.writeSet(ctx, objects); err != nil {
		return phases.Done, err
	}
	repaired(s.Recorder, s.vcdCluster, wrong)
	return s.applying(wrong), nil
}

// available says whether pods of the cloud controller manager work, and are what the Deployment says by now.
func (s *scope) available(content *unstructured.Unstructured) (phases.Outcome, error) {
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, d); err != nil {
		return phases.Done, fmt.Errorf("reading Deployment %s: %w", addons.DeploymentName, err)
	}
	why := ""
	for _, c := range d.Status.Conditions {
		if stuck(c) && d.Status.ObservedGeneration >= d.Generation {
			return phases.Fail(session.RemedyPoll, infrav1.CloudProviderUnavailableReason,
				"Deployment %s/%s does not come up (%s): %s", d.Namespace, d.Name, progress(d), strings.TrimSuffix(c.Message, ".")), nil
		}
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			why = ": " + strings.TrimSuffix(c.Message, ".")
		}
	}
	if rolledOut(d) && d.Status.AvailableReplicas > 0 {
		return phases.Done, nil
	}
	return phases.Wait(startPoll, infrav1.CloudProviderUnavailableReason, "Waiting for pods of Deployment %s/%s to be available (%s)%s", d.Namespace, d.Name, progress(d), why), nil
}

// rolledOut says whether all pods of a Deployment are what it says by now. That all of them work is not asked: one is enough.
func rolledOut(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= ptr.Deref(d.Spec.Replicas, 1) && d.Status.Replicas <= d.Status.UpdatedReplicas
}

// progress says how far the pods of a Deployment are.
func progress(d *appsv1.Deployment) string {
	if d.Status.ObservedGeneration < d.Generation {
		return "it was changed just now"
	}
	text := fmt.Sprintf("%d of %d pods are as it says, %d available", d.Status.UpdatedReplicas, ptr.Deref(d.Spec.Replicas, 1), d.Status.AvailableReplicas)
	if old := d.Status.Replicas - d.Status.UpdatedReplicas; old > 0 {
		text += fmt.Sprintf(", %d still as it said before", old)
	}
	return text
}

// stuck says whether a condition of a Deployment means that somebody has to help.
func stuck(c appsv1.DeploymentCondition) bool {
	return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse || c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
}

// foreign says whether somebody else's cloud controller manager is in the workload cluster, and what to remove.
func (s *scope) foreign(ctx context.Context, workload client.Client) (phases.Outcome, error) {
	var found []string
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.DaemonSetList{}} {
		for more := true; more; more = list.GetContinue() != "" {
			if err := workload.List(ctx, list, client.Limit(inspectPage), client.Continue(list.GetContinue())); err != nil {
				return phases.Done, &workloadError{err}
			}
			found = append(found, s.foreignIn(list)...)
		}
	}
	immutable, err := s.immutableConfig(ctx, workload)
	if err != nil {
		return phases.Done, err
	}
	if found = append(found, immutable...); len(found) == 0 {
		return phases.Done, nil
	}
	slices.Sort(found)
	return phases.Fail(session.RemedyPoll, infrav1.ForeignCloudProviderReason,
		"Another cloud controller manager is installed in the workload cluster: remove %s, and what put it there, such as a ClusterResourceSet that selects this Cluster, or set spec.cloudProvider.mode to External",
		phases.Few(found)), nil
}

// foreignIn returns the cloud controller managers of a list that are not this cluster's.
func (s *scope) foreignIn(list client.ObjectList) []string {
	var found []string
	add := func(kind string, meta metav1.ObjectMeta, pod corev1.PodSpec) {
		if meta.Annotations[infrav1.CloudProviderOfAnnotation] == s.vcdCluster.Spec.InfraID {
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

// isCloudProvider says whether a container runs a cloud controller manager, by the name of its image, or by the flag that each of them has.
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

// immutableConfig returns the ConfigMap that CPI left, if ours cannot replace it.
func (s *scope) immutableConfig(ctx context.Context, workload client.Client) ([]string, error) {
	config := &corev1.ConfigMap{}
	err := workload.Get(ctx, client.ObjectKey{Namespace: addons.Namespace, Name: addons.ConfigMapName}, config)
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

// removeDropped removes from the workload cluster what is in the Secret no more.
func (s *scope) removeDropped(ctx context.Context, workload client.Client) error {
	dropped := readItems(s.written(infrav1.CloudProviderDroppedAnnotation))
	if len(dropped) == 0 {
		return nil
	}
	removed, err := s.remove(ctx, workload, dropped)
	if err != nil {
		return err
	}
	if len(removed) > 0 {
		uninstalled(s.Recorder, s.vcdCluster, removed)
	}
	secret := s.set.DeepCopy()
	delete(secret.Annotations, infrav1.CloudProviderDroppedAnnotation)
	return s.storeSet(ctx, secret)
}

// remove deletes those items from the workload cluster that are marked as this cluster's, and names them.
func (s *scope) remove(ctx context.Context, workload client.Client, items []item) ([]string, error) {
	var removed []string
	for _, i := range items {
		obj := i.object()
		err := workload.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil && obj.GetAnnotations()[infrav1.CloudProviderOfAnnotation] == s.vcdCluster.Spec.InfraID {
			uid := obj.GetUID()
			removed = append(removed, i.String())
			err = workload.Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
		if client.IgnoreNotFound(err) != nil {
			return removed, &workloadError{err}
		}
	}
	return removed, nil
}

// retire undoes what Managed did when that is wished for no more: External leaves what is in the workload cluster to the user, None removes it.
func (s *scope) retire(ctx context.Context) (phases.Outcome, error) {
	if s.cluster.Labels[infrav1.CloudProviderLabel] == "" {
		return phases.Done, nil
	}
	if out, err := s.readSet(ctx); err != nil || out != phases.Done {
		return out, err
	}
	// First, so that nothing comes back.
	if err := errors.Join(s.delete(ctx, &addonsv1.ClusterResourceSet{}, cloudProviderSuffix), s.delete(ctx, &addonsv1.ClusterResourceSet{}, seedSuffix)); err != nil {
		return phases.Done, err
	}
	if s.vcdCluster.Spec.CloudProvider.Mode == infrav1.CloudProviderNone && s.set != nil {
		if out, err := s.removeAll(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	if err := errors.Join(s.delete(ctx, &corev1.Secret{}, seedSuffix), s.delete(ctx, &corev1.Secret{}, cloudProviderSuffix)); err != nil {
		return phases.Done, err
	}
	s.visits.forget(s.vcdCluster.UID)
	return phases.Done, s.label(ctx, "")
}

// removeAll removes everything that we put into the workload cluster.
func (s *scope) removeAll(ctx context.Context) (phases.Outcome, error) {
	workload, out := s.workload(ctx)
	if out != phases.Done {
		return out, nil
	}
	limited, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	items := slices.Concat(readItems(s.written(infrav1.CloudProviderInventoryAnnotation)), readItems(s.written(infrav1.CloudProviderDroppedAnnotation)),
		[]item{{APIVersion: "v1", Kind: "Secret", Namespace: addons.Namespace, Name: addons.ServiceAccountName}})
	removed, err := s.remove(limited, workload, items)
	if err != nil {
		return s.unanswered(ctx, err)
	}
	if len(removed) > 0 {
		uninstalled(s.Recorder, s.vcdCluster, removed)
	}
	return phases.Done, nil
}

// delete deletes what we made in the management cluster.
func (s *scope) delete(ctx context.Context, obj client.Object, suffix string) error {
	key := s.key(suffix)
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	if err := s.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", obj, key, err)
	}
	return nil
}
