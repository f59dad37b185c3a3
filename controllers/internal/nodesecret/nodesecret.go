// SPDX-License-Identifier: Apache-2.0

// Package nodesecret writes Secrets of a cluster from which the bootstrap configurations of its nodes take files.
package nodesecret

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/owned"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// A Secret is a Secret from which bootstrap configurations take files.
type Secret struct {
	Client  client.Client
	Secrets client.Reader // reads Secrets
	Owner   *infrav1.VCDCluster
	Cluster string            // name of the Cluster
	Suffix  string            // appended to Cluster in the name of the Secret
	Holds   string            // purpose of the content, for messages
	Type    corev1.SecretType // empty: the type of Cluster API's Secrets
	// Creating, if not nil, runs before the Secret is created.
	Creating func(ctx context.Context) error
}

// Read returns the data of the Secret. It returns nothing if the Secret does not exist or has another owner.
func (s Secret) Read(ctx context.Context) (map[string][]byte, error) {
	key := client.ObjectKey{Namespace: s.Owner.Namespace, Name: s.Cluster + s.Suffix}
	secret := &corev1.Secret{}
	if err := s.Secrets.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting Secret %s: %w", key, err)
	}
	if !s.owns(secret) {
		return nil, nil
	}
	return secret.Data, nil
}

// Write writes data if it differs. It does not change a Secret with another owner.
func (s Secret) Write(ctx context.Context, data map[string][]byte) (phases.Result, error) {
	key := client.ObjectKey{Namespace: s.Owner.Namespace, Name: s.Cluster + s.Suffix}
	secret := &corev1.Secret{}
	err := s.Secrets.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return phases.Done, s.create(ctx, key, data)
	case err != nil:
		return phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	case !s.owns(secret):
		return owned.Conflict("Secret", key.Name, "VCDCluster", s.Holds), nil
	}
	before := secret.DeepCopy()
	secret.Data = data
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	maps.Copy(secret.Labels, capicluster.Labels(s.Cluster))
	if err := s.own(secret); err != nil || reflect.DeepEqual(before, secret) {
		return phases.Done, err
	}
	if err := s.Client.Update(ctx, secret); err != nil {
		return phases.Done, fmt.Errorf("updating Secret %s: %w", key, err)
	}
	return phases.Done, nil
}

// owns reports whether a Secret belongs to this cluster.
func (s Secret) owns(secret *corev1.Secret) bool {
	return secret.Type == s.kind() && owned.By(s.Owner, secret, clusterv1.ClusterNameLabel, s.Cluster)
}

func (s Secret) kind() corev1.SecretType { return cmp.Or(s.Type, clusterv1.ClusterSecretType) }

func (s Secret) own(secret *corev1.Secret) error {
	if err := controllerutil.SetControllerReference(s.Owner, secret, s.Client.Scheme()); err != nil {
		return fmt.Errorf("owning Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

func (s Secret) create(ctx context.Context, key client.ObjectKey, data map[string][]byte) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: capicluster.Labels(s.Cluster)},
		Type:       s.kind(),
		Data:       data,
	}
	if err := s.own(secret); err != nil {
		return err
	}
	if s.Creating != nil {
		if err := s.Creating(ctx); err != nil {
			return err
		}
	}
	if err := s.Client.Create(ctx, secret); err != nil {
		return fmt.Errorf("creating Secret %s: %w", key, err)
	}
	return nil
}
