package cloudprovider

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// write writes the Secret if it changed, and the ClusterResourceSets that apply it.
func (s *scope) write(ctx context.Context) (phases.Outcome, error) {
	objects, err := s.render(s.annotation(infrav1.CloudProviderAppliedAnnotation))
	if err != nil {
		return phases.Done, fmt.Errorf("rendering the cloud controller manager: %w", err)
	}
	changed, err := s.writeSet(ctx, objects)
	if err != nil {
		return phases.Done, err
	}
	if err := s.set().Create(ctx, cloudProviderSuffix, addonsv1.ClusterResourceSetStrategyReconcile); err != nil {
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

// writeSet writes objects into the Secret, and reports whether that changed what is applied.
func (s *scope) writeSet(ctx context.Context, objects []unstructured.Unstructured) (bool, error) {
	manifests, err := addons.Marshal(objects)
	if err != nil {
		return false, err
	}
	before := s.secret
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.cluster.Namespace,
		Name:      s.key(cloudProviderSuffix).Name,
	}}
	if before != nil {
		secret = before.DeepCopy()
	}
	changed := string(secret.Data[manifestsKey]) != string(manifests)
	secret.Type, secret.Data = addonsv1.ClusterResourceSetSecretType, map[string][]byte{manifestsKey: manifests}
	if err := s.annotate(secret, itemsOf(objects), s.shared.Config.Version, changed); err != nil {
		return false, err
	}
	if err := s.set().Own(secret); err != nil {
		return false, err
	}
	if before != nil && reflect.DeepEqual(before, secret) {
		return false, nil
	}
	return changed, s.store(ctx, secret)
}

// seed has the first token of a service account applied once. From then on it is the cloud controller manager's.
func (s *scope) seed(ctx context.Context) error {
	if !s.shared.ServiceAccount {
		return nil
	}
	if err := s.Identities.Give(ctx, s.shared.Secret, s.vcdCluster.Spec.InfraID); err != nil {
		return fmt.Errorf("handing over the token of %s: %w", s.shared.Name, err)
	}
	token, err := addons.ServiceAccount([]byte(s.shared.Config.Credentials.APIToken))
	if err != nil {
		return err
	}
	objects := []unstructured.Unstructured{token}
	mark(objects, s.vcdCluster)
	manifests, err := addons.Marshal(objects)
	if err != nil {
		return err
	}
	key := s.key(seedSuffix)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Type:       addonsv1.ClusterResourceSetSecretType, Data: map[string][]byte{manifestsKey: manifests},
	}
	if err := s.set().Own(secret); err != nil {
		return err
	}
	if err := s.Client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Secret %s: %w", key, err)
	}
	return s.set().Create(ctx, seedSuffix, addonsv1.ClusterResourceSetStrategyApplyOnce)
}
