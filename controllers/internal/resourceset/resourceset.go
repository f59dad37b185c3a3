// SPDX-License-Identifier: Apache-2.0

// Package resourceset makes Cluster API apply manifests to one workload cluster. It creates a ClusterResourceSet for a
// Secret of the same name, and a label on the Cluster that the ClusterResourceSet selects. The selector is immutable
// and may not be empty.
package resourceset

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/owned"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// ManifestsKey is the key of the manifests in their Secret.
const ManifestsKey = "manifests.yaml"

// A Set is the set of objects in the management cluster for a workload cluster.
type Set struct {
	Client  client.Client
	Owner   client.Object
	Cluster *clusterv1.Cluster
	// Label selects the Cluster, with its name as value, and marks all objects of the set.
	Label string
	// WatchFilter is the value of Cluster API's watch label; empty: none.
	WatchFilter string
}

// Key returns the name of an object of the set.
func (s Set) Key(suffix string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Cluster.Namespace, Name: s.Cluster.Name + suffix}
}

// Select sets the label on the Cluster, or removes it.
func (s Set) Select(ctx context.Context, on bool) error {
	value := ""
	if on {
		value = s.Cluster.Name
	}
	if s.Cluster.Labels[s.Label] == value {
		return nil
	}
	before := s.Cluster.DeepCopy()
	if on {
		metav1.SetMetaDataLabel(&s.Cluster.ObjectMeta, s.Label, value)
	} else {
		delete(s.Cluster.Labels, s.Label)
	}
	if err := s.Client.Patch(ctx, s.Cluster, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("labelling Cluster %s: %w", s.Cluster.Name, err)
	}
	return nil
}

// Own sets the owner reference and the labels of an object of the set.
func (s Set) Own(obj client.Object) error {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, capicluster.Labels(s.Cluster.Name))
	labels[s.Label] = s.Cluster.Name
	obj.SetLabels(labels)
	if err := controllerutil.SetControllerReference(s.Owner, obj, s.Client.Scheme()); err != nil {
		return fmt.Errorf("owning %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// Owns reports whether an object of the management cluster belongs to the set.
func (s Set) Owns(obj client.Object) bool {
	return owned.By(s.Owner, obj, s.Label, s.Cluster.Name)
}

// Create creates the ClusterResourceSet for the Secret of the same name, unless it exists. Its spec is immutable. If it
// has another owner, Create returns a conflict.
func (s Set) Create(ctx context.Context, suffix string, strategy addonsv1.ClusterResourceSetStrategy) (phases.Result, error) {
	key := s.Key(suffix)
	set := &addonsv1.ClusterResourceSet{}
	err := s.Client.Get(ctx, key, set)
	switch {
	case err == nil && !s.Owns(set):
		return owned.Conflict("ClusterResourceSet", key.Name, "VCDCluster", ""), nil
	case err == nil:
		return phases.Done, nil
	case !apierrors.IsNotFound(err):
		return phases.Done, fmt.Errorf("getting ClusterResourceSet %s: %w", key, err)
	}
	set = &addonsv1.ClusterResourceSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: addonsv1.ClusterResourceSetSpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{s.Label: s.Cluster.Name}},
			Resources: []addonsv1.ResourceRef{{
				Kind: string(addonsv1.SecretClusterResourceSetResourceKind),
				Name: key.Name,
			}},
			Strategy: string(strategy),
		},
	}
	if s.WatchFilter != "" {
		set.Labels = map[string]string{clusterv1.WatchLabel: s.WatchFilter}
	}
	if err := s.Own(set); err != nil {
		return phases.Done, err
	}
	// If the cache does not show an existing object yet, creation fails, and the next pass checks its owner.
	if err := s.Client.Create(ctx, set); err != nil {
		return phases.Done, fmt.Errorf("creating ClusterResourceSet %s: %w", key, err)
	}
	return phases.Done, nil
}
