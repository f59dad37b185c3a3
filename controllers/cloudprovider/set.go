package cloudprovider

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
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// cloudProviderSuffix follows the name of the Cluster in the names of the Secret with the manifests and of its ClusterResourceSet.
	cloudProviderSuffix = "-cloud-provider"
	// seedSuffix follows it in the names of those that are applied once.
	seedSuffix = cloudProviderSuffix + "-seed"
	// manifestsKey is the key of the manifests in their Secret.
	manifestsKey = "manifests.yaml"
)

// names of what we make for the Cluster.
func (s *scope) key(suffix string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.cluster.Namespace, Name: s.cluster.Name + suffix}
}

// written returns an annotation of the Secret with the manifests.
func (s *scope) written(annotation string) string {
	if s.set == nil {
		return ""
	}
	return s.set.Annotations[annotation]
}

// readSet reads what was written earlier.
func (s *scope) readSet(ctx context.Context) (phases.Outcome, error) {
	secret := &corev1.Secret{}
	key := s.key(cloudProviderSuffix)
	err := s.Live.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return phases.Done, nil
	case err != nil:
		return phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	case !s.owns(secret):
		return phases.Fail(session.RemedyPoll, infrav1.NameConflictReason, "Secret %s exists and is not this VCDCluster's: delete or rename it", key.Name), nil
	}
	s.set = secret
	return phases.Done, nil
}

// owns says whether a Secret is one that we wrote for this cluster. A restore from a backup may have taken its owner away; type and label
// are still ours then.
func (s *scope) owns(secret *corev1.Secret) bool {
	if metav1.GetControllerOf(secret) != nil {
		return metav1.IsControlledBy(secret, s.vcdCluster)
	}
	return secret.Type == addonsv1.ClusterResourceSetSecretType && secret.Labels[infrav1.CloudProviderLabel] == s.cluster.Name
}

// choose has the Cluster selected by its ClusterResourceSets, of which there are none yet the first time.
func (s *scope) choose(ctx context.Context) (phases.Outcome, error) {
	return phases.Done, s.label(ctx, s.cluster.Name)
}

// label sets or, if the value is empty, removes the label on the Cluster by which ClusterResourceSets select it.
func (s *scope) label(ctx context.Context, value string) error {
	if s.cluster.Labels[infrav1.CloudProviderLabel] == value {
		return nil
	}
	before := s.cluster.DeepCopy()
	if value == "" {
		delete(s.cluster.Labels, infrav1.CloudProviderLabel)
	} else {
		if s.cluster.Labels == nil {
			s.cluster.Labels = map[string]string{}
		}
		s.cluster.Labels[infrav1.CloudProviderLabel] = value
	}
	if err := s.Client.Patch(ctx, s.cluster, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("labelling Cluster %s: %w", s.cluster.Name, err)
	}
	return nil
}

// write writes what is new: the Secret, and the ClusterResourceSet that brings it into the workload cluster.
func (s *scope) write(ctx context.Context) (phases.Outcome, error) {
	objects, err := s.render(s.written(infrav1.CloudProviderAppliedAnnotation))
	if err != nil {
		return phases.Done, fmt.Errorf("rendering the cloud controller manager: %w", err)
	}
	changed, err := s.writeSet(ctx, objects)
	if err != nil {
		return phases.Done, err
	}
	if err := s.createCRS(ctx, cloudProviderSuffix, addonsv1.ClusterResourceSetStrategyReconcile); err != nil {
		return phases.Done, err
	}
	if err := s.seed(ctx); err != nil {
		return phases.Done, err
	}
	if changed {
		return s.applying(nil), nil
	}
	return phases.Done, nil
}

// applying waits for Cluster API.
func (s *scope) applying(missing []string) phases.Outcome {
	what := "the manifests"
	if len(missing) > 0 {
		what = phases.Few(missing)
	}
	return phases.Wait(applyPoll, infrav1.CloudProviderApplyingReason, "Waiting for ClusterResourceSet %s to apply %s", s.key(cloudProviderSuffix).Name, what)
}

// writeSet writes objects into the Secret, and says whether that changed what is to be applied.
func (s *scope) writeSet(ctx context.Context, objects []unstructured.Unstructured) (bool, error) {
	manifests, err := addons.Marshal(objects)
	if err != nil {
		return false, err
	}
	before := s.set
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: s.key(cloudProviderSuffix).Name}}
	if before != nil {
		secret = before.DeepCopy()
	}
	changed := string(secret.Data[manifestsKey]) != string(manifests)
	secret.Type, secret.Data = addonsv1.ClusterResourceSetSecretType, map[string][]byte{manifestsKey: manifests}
	if err := s.annotateSet(secret, itemsOf(objects), changed); err != nil {
		return false, err
	}
	if err := s.own(secret); err != nil {
		return false, err
	}
	if before != nil && reflect.DeepEqual(before, secret) {
		return false, nil
	}
	return changed, s.storeSet(ctx, secret)
}

// annotateSet writes down what is in the Secret, and what was and has to go.
func (s *scope) annotateSet(secret *corev1.Secret, items []item, changed bool) error {
	notes := secret.Annotations
	if notes == nil {
		notes = map[string]string{}
	}
	dropped := append(readItems(notes[infrav1.CloudProviderDroppedAnnotation]), readItems(notes[infrav1.CloudProviderInventoryAnnotation])...)
	for annotation, list := range map[string][]item{
		infrav1.CloudProviderInventoryAnnotation: items, infrav1.CloudProviderDroppedAnnotation: without(dropped, items),
	} {
		text, err := writeItems(list)
		if err != nil {
			return err
		}
		notes[annotation] = text
	}
	maps.DeleteFunc(notes, func(_, value string) bool { return value == "" })
	notes[infrav1.CloudProviderCredentialsAnnotation] = s.shared.Config.Version
	if changed {
		notes[infrav1.CloudProviderWrittenAnnotation] = s.now().UTC().Format(time.RFC3339)
	}
	secret.Annotations = notes
	return nil
}

// own makes an object the VCDCluster's, with the labels that we know our own by.
func (s *scope) own(obj client.Object) error {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, session.OfCluster(s.cluster.Name))
	labels[infrav1.CloudProviderLabel] = s.cluster.Name
	obj.SetLabels(labels)
	if err := controllerutil.SetControllerReference(s.vcdCluster, obj, s.Client.Scheme()); err != nil {
		return fmt.Errorf("owning %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// storeSet creates or updates the Secret with the manifests.
func (s *scope) storeSet(ctx context.Context, secret *corev1.Secret) error {
	if secret.ResourceVersion == "" {
		if err := s.Client.Create(ctx, secret); err != nil {
			return fmt.Errorf("creating Secret %s: %w", secret.Name, err)
		}
		installing(s.Recorder, s.vcdCluster, s.Image)
	} else if err := s.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("updating Secret %s: %w", secret.Name, err)
	}
	s.set = secret
	return nil
}

// createCRS creates a ClusterResourceSet for the Secret of the same name. What it says can never be changed.
func (s *scope) createCRS(ctx context.Context, suffix string, strategy addonsv1.ClusterResourceSetStrategy) error {
	key := s.key(suffix)
	crs := &addonsv1.ClusterResourceSet{}
	err := s.Client.Get(ctx, key, crs)
	if !apierrors.IsNotFound(err) {
		return client.IgnoreNotFound(err)
	}
	crs = &addonsv1.ClusterResourceSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: addonsv1.ClusterResourceSetSpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{infrav1.CloudProviderLabel: s.cluster.Name}},
			Resources:       []addonsv1.ResourceRef{{Kind: string(addonsv1.SecretClusterResourceSetResourceKind), Name: key.Name}},
			Strategy:        string(strategy),
		},
	}
	if s.WatchFilterValue != "" {
		crs.Labels = map[string]string{clusterv1.WatchLabel: s.WatchFilterValue}
	}
	if err := s.own(crs); err != nil {
		return err
	}
	if err := s.Client.Create(ctx, crs); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ClusterResourceSet %s: %w", key, err)
	}
	return nil
}

// seed has the first token of a service account applied once. From then on it is the cloud controller manager's.
func (s *scope) seed(ctx context.Context) error {
	if !s.shared.ServiceAccount {
		return nil
	}
	if err := s.Identities.Give(ctx, s.shared.Secret, s.vcdCluster.Spec.InfraID); err != nil {
		return fmt.Errorf("giving the token of %s away: %w", s.shared.Name, err)
	}
	token, err := addons.ServiceAccount([]byte(s.shared.Config.Credentials.APIToken))
	if err != nil {
		return err
	}
	objects := []unstructured.Unstructured{token}
	s.mark(objects)
	manifests, err := addons.Marshal(objects)
	if err != nil {
		return err
	}
	key := s.key(seedSuffix)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Type:       addonsv1.ClusterResourceSetSecretType, Data: map[string][]byte{manifestsKey: manifests},
	}
	if err := s.own(secret); err != nil {
		return err
	}
	if err := s.Client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Secret %s: %w", key, err)
	}
	return s.createCRS(ctx, seedSuffix, addonsv1.ClusterResourceSetStrategyApplyOnce)
}

// hash tells two sets apart.
func (s *scope) hash() string {
	sum := sha256.Sum256(slices.Concat(s.set.Data[manifestsKey], []byte(s.written(infrav1.CloudProviderDroppedAnnotation))))
	return hex.EncodeToString(sum[:])
}
