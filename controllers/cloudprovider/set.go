// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/owned"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/tokens"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// write writes the Secret if it changed, and creates the ClusterResourceSets that apply it.
func (s *scope) write(ctx context.Context) (phases.Result, error) {
	objects, err := s.render(s.set.Annotation(infrav1.CloudProviderAppliedAnnotation))
	if err != nil {
		return phases.Done, fmt.Errorf("rendering the cloud controller manager: %w", err)
	}
	changed, err := s.set.Write(ctx, objects, s.notes())
	if err != nil {
		return phases.Done, err
	}
	out, err := s.set.Create(ctx, cloudProviderSuffix, addonsv1.ClusterResourceSetStrategyReconcile)
	if err != nil || out != phases.Done {
		return out, err
	}
	if out, err := s.seed(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if changed {
		return s.set.Applying(nil), nil
	}
	return phases.Done, nil
}

// notes returns the annotations of the Secret, with the version of the login that it contains.
func (s *scope) notes() map[string]string {
	return map[string]string{infrav1.CloudProviderCredentialsAnnotation: loginVersion(s.shared.Config)}
}

// seed applies the first token of a service account once. From then on, only the cloud controller manager may use it.
func (s *scope) seed(ctx context.Context) (phases.Result, error) {
	if !s.shared.ServiceAccount {
		return phases.Done, nil
	}
	// Check this before the token is handed over, because that cannot be undone.
	if out, err := s.seedConflict(ctx); err != nil || out != phases.Done {
		return out, err
	}
	token := &tokens.Secret{API: s.reconciler.Identities.Tokens(), Key: s.shared.Secret}
	if err := token.Give(ctx, s.vcdCluster.Spec.InfraID); err != nil {
		return phases.Done, fmt.Errorf("transferring the token of %s: %w", s.shared.Name, err)
	}
	if err := s.createSeed(ctx); err != nil {
		return phases.Done, err
	}
	return s.set.Create(ctx, seedSuffix, addonsv1.ClusterResourceSetStrategyApplyOnce)
}

// seedConflict reports a Secret of another owner that has the name of the seed.
func (s *scope) seedConflict(ctx context.Context) (phases.Result, error) {
	key := s.set.Key(seedSuffix)
	secret := &corev1.Secret{}
	err := s.set.Secrets.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return phases.Done, nil
	case err != nil:
		return phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	case !s.set.Owns(secret):
		return owned.Conflict("Secret", key.Name, "VCDCluster", "the token of the cloud controller manager"), nil
	}
	return phases.Done, nil
}

// createSeed creates the Secret with the token, unless it exists.
func (s *scope) createSeed(ctx context.Context) error {
	token, err := addons.ServiceAccount([]byte(s.shared.Config.Credentials.APIToken))
	if err != nil {
		return err
	}
	objects := []unstructured.Unstructured{token}
	s.set.Mark(objects, "")
	manifests, err := addons.Marshal(objects)
	if err != nil {
		return err
	}
	key := s.set.Key(seedSuffix)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Type:       addonsv1.ClusterResourceSetSecretType,
		Data:       map[string][]byte{resourceset.ManifestsKey: manifests},
	}
	if err := s.set.Own(secret); err != nil {
		return err
	}
	if err := s.reconciler.Client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Secret %s: %w", key, err)
	}
	return nil
}
