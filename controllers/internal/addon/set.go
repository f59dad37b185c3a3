// SPDX-License-Identifier: Apache-2.0

// Package addon installs objects in workload clusters with ClusterResourceSets of Cluster API, and repairs drift. It
// does not depend on what the objects are for. Cluster API applies a set again when its Secret changes, and removes
// nothing. This package therefore compares the workload cluster with the Secret, changes the Secret if something
// differs, and removes objects that are no longer in the Secret.
package addon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/owned"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// ApplyPoll is the interval between inspections of a workload cluster while Cluster API applies changes.
	ApplyPoll = 5 * time.Second
	// applyTime is how long Cluster API may take to apply a change.
	applyTime = time.Minute
)

// A Set holds the objects of the management cluster for a workload cluster: a Secret with manifests, and
// ClusterResourceSets that apply it.
type Set struct {
	resourceset.Set

	Secrets        client.Reader // reads Secrets
	Workload       workload.Opener
	VCDCluster     *infrav1.VCDCluster // the owner
	Suffix         string              // appended to the name of the Cluster in the names of Secret and ClusterResourceSet
	ApplyingReason string              // reason of the result while Cluster API applies changes
	Now            func() time.Time
	Created        func()         // called after the Secret was created
	Secret         *corev1.Secret // nil: not written yet; Read sets it
}

// Ready waits for the control plane of the workload cluster to be initialized.
func (s *Set) Ready() phases.Result {
	if !capicluster.Initialized(s.Cluster) {
		return phases.Wait(0, infrav1.WaitingForControlPlaneReason, "Waiting for the control plane to be initialized")
	}
	return phases.Done
}

// Annotation returns an annotation of the Secret.
func (s *Set) Annotation(annotation string) string {
	if s.Secret == nil {
		return ""
	}
	return s.Secret.Annotations[annotation]
}

// Read reads the Secret, if it exists.
func (s *Set) Read(ctx context.Context) (phases.Result, error) {
	secret := &corev1.Secret{}
	key := s.Key(s.Suffix)
	err := s.Secrets.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return phases.Done, nil
	case err != nil:
		return phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	case !s.owns(secret):
		return owned.Conflict("Secret", key.Name, "VCDCluster", ""), nil
	}
	s.Secret = secret
	return phases.Done, nil
}

// owns reports whether a Secret belongs to this cluster.
func (s *Set) owns(secret *corev1.Secret) bool {
	return secret.Type == addonsv1.ClusterResourceSetSecretType && s.Owns(secret)
}

// Selected reports whether the Cluster has the label.
func (s *Set) Selected() bool { return s.Cluster.Labels[s.Label] != "" }

// Write writes objects and annotations to the Secret, and reports whether the manifests changed.
func (s *Set) Write(ctx context.Context, objects []unstructured.Unstructured, annotations map[string]string) (bool, error) {
	manifests, err := addons.Marshal(objects)
	if err != nil {
		return false, err
	}
	before := s.Secret
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Cluster.Namespace,
		Name:      s.Key(s.Suffix).Name,
	}}
	if before != nil {
		secret = before.DeepCopy()
	}
	changed := string(secret.Data[resourceset.ManifestsKey]) != string(manifests)
	secret.Type = addonsv1.ClusterResourceSetSecretType
	secret.Data = map[string][]byte{resourceset.ManifestsKey: manifests}
	if err := s.annotate(secret, itemsOf(objects), annotations, changed); err != nil {
		return false, err
	}
	if err := s.Own(secret); err != nil {
		return false, err
	}
	if before != nil && reflect.DeepEqual(before, secret) {
		return false, nil
	}
	return changed, s.store(ctx, secret)
}

// annotate records in the Secret's annotations which objects it contains, and which former ones must be removed.
func (s *Set) annotate(secret *corev1.Secret, items []item, annotations map[string]string, changed bool) error {
	notes := secret.Annotations
	if notes == nil {
		notes = map[string]string{}
	}
	dropped := append(readItems(notes[infrav1.CloudProviderDroppedAnnotation]),
		readItems(notes[infrav1.CloudProviderInventoryAnnotation])...)
	for annotation, list := range map[string][]item{
		infrav1.CloudProviderInventoryAnnotation: items,
		infrav1.CloudProviderDroppedAnnotation:   without(dropped, items),
	} {
		text, err := writeItems(list)
		if err != nil {
			return err
		}
		notes[annotation] = text
	}
	maps.DeleteFunc(notes, func(_, value string) bool { return value == "" })
	maps.Copy(notes, annotations)
	if changed {
		notes[infrav1.CloudProviderWrittenAnnotation] = s.Now().UTC().Format(time.RFC3339)
	}
	secret.Annotations = notes
	return nil
}

// store creates or updates the Secret.
func (s *Set) store(ctx context.Context, secret *corev1.Secret) error {
	if secret.ResourceVersion == "" {
		if err := s.Client.Create(ctx, secret); err != nil {
			return fmt.Errorf("creating Secret %s: %w", secret.Name, err)
		}
		s.Created()
	} else if err := s.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("updating Secret %s: %w", secret.Name, err)
	}
	s.Secret = secret
	return nil
}

// Delete deletes an object of the set in the management cluster. An object with that name and another owner is kept.
func (s *Set) Delete(ctx context.Context, obj client.Object, suffix string) error {
	key := s.Key(suffix)
	reader := client.Reader(s.Client)
	if _, ok := obj.(*corev1.Secret); ok {
		reader = s.Secrets
	}
	switch err := reader.Get(ctx, key, obj); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("getting %T %s: %w", obj, key, err)
	case !s.Owns(obj):
		return nil
	}
	same := client.Preconditions{UID: ptr.To(obj.GetUID())}
	if err := s.Client.Delete(ctx, obj, same); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", obj, key, err)
	}
	return nil
}

// Hash returns a hash of the desired objects in the workload cluster, and of those to remove.
func (s *Set) Hash() string {
	sum := sha256.Sum256(slices.Concat(s.Secret.Data[resourceset.ManifestsKey],
		[]byte(s.Annotation(infrav1.CloudProviderDroppedAnnotation))))
	return hex.EncodeToString(sum[:])
}

// Applying waits for Cluster API to apply the missing objects, or all of them if missing is empty.
func (s *Set) Applying(missing []string) phases.Result {
	what := "the manifests"
	if len(missing) > 0 {
		what = phases.Few(missing)
	}
	return phases.Wait(ApplyPoll, s.ApplyingReason, "Waiting for ClusterResourceSet %s to apply %s",
		s.Key(s.Suffix).Name, what)
}

// Fresh reports whether Cluster API may not have had time yet to apply the last change.
func (s *Set) Fresh(every time.Duration) bool {
	at, err := time.Parse(time.RFC3339, s.Annotation(infrav1.CloudProviderWrittenAnnotation))
	return err == nil && s.Now().Sub(at) < min(applyTime, every)
}

// Again makes Cluster API apply the objects again, by changing an annotation of the manifests.
func (s *Set) Again(ctx context.Context, render func(applied string) ([]unstructured.Unstructured, error),
	annotations map[string]string,
) error {
	now := s.Now().UTC().Format(time.RFC3339)
	objects, err := render(now)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&s.Secret.ObjectMeta, infrav1.CloudProviderAppliedAnnotation, now)
	_, err = s.Write(ctx, objects, annotations)
	return err
}

// RemoveDropped removes objects that are no longer in the Secret from the workload cluster, and returns their names.
func (s *Set) RemoveDropped(ctx context.Context, w *Guest) ([]string, error) {
	dropped := readItems(s.Annotation(infrav1.CloudProviderDroppedAnnotation))
	if len(dropped) == 0 {
		return nil, nil
	}
	removed, err := w.remove(ctx, dropped)
	if err != nil {
		return removed, err
	}
	secret := s.Secret.DeepCopy()
	delete(secret.Annotations, infrav1.CloudProviderDroppedAnnotation)
	return removed, s.store(ctx, secret)
}

// RemoveAll removes all objects of the set, and more, from the workload cluster, and returns their names.
func (s *Set) RemoveAll(ctx context.Context, w *Guest, more ...unstructured.Unstructured) ([]string, error) {
	return w.remove(ctx, slices.Concat(readItems(s.Annotation(infrav1.CloudProviderInventoryAnnotation)),
		readItems(s.Annotation(infrav1.CloudProviderDroppedAnnotation)), itemsOf(more)))
}

// Mark marks objects in the workload cluster as this cluster's. The time applied, if set, makes Cluster API apply them
// again.
func (s *Set) Mark(objects []unstructured.Unstructured, applied string) {
	marks := map[string]string{infrav1.CloudProviderOfAnnotation: s.VCDCluster.Spec.InfraID}
	if applied != "" {
		marks[infrav1.CloudProviderAppliedAnnotation] = applied
	}
	addons.Annotate(objects, marks)
}

// ClusterToVCDCluster maps a Cluster to its VCDCluster.
func ClusterToVCDCluster(_ context.Context, obj client.Object) []ctrl.Request {
	cluster, ok := obj.(*clusterv1.Cluster)
	if !ok || cluster.Spec.InfrastructureRef.Kind != "VCDCluster" ||
		cluster.Spec.InfrastructureRef.APIGroup != infrav1.GroupVersion.Group {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{
		Namespace: cluster.Namespace,
		Name:      cluster.Spec.InfrastructureRef.Name,
	}}}
}
