// SPDX-License-Identifier: Apache-2.0

// Package index selects objects by fields that the manager's cache indexes. Such a look-up costs the same however many
// objects there are; a look-up by label compares all objects of the namespace. Readers without the cache do not support
// these fields.
package index

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// Fields of the indexes.
const (
	byCluster    = "metadata.labels.cluster"
	byOwner      = "metadata.ownerReferences.uid"
	byIdentity   = "spec.identityRef"
	bySecret     = "spec.secretRef.name" //nolint:gosec // the name of a field, not a secret
	byPassword   = "spec.passwordSecretRef.name"
	byInfraID    = "spec.infraID"
	byInstanceID = "spec.recordedState.instanceID"
)

// OfCluster selects the VCDClusters, VCDMachines or Machines with the label of the named Cluster.
func OfCluster(name string) client.MatchingFields { return client.MatchingFields{byCluster: name} }

// OwnedBy selects the metadata of Secrets that an object owns.
func OwnedBy(uid types.UID) client.MatchingFields { return client.MatchingFields{byOwner: string(uid)} }

// WithIdentity selects the VCDClusters that refer to an identity.
func WithIdentity(kind infrav1.IdentityKind, name string) client.MatchingFields {
	return client.MatchingFields{byIdentity: identityKey(kind, name)}
}

// WithSecret selects the VCDIdentities or VCDClusterIdentities whose credentials are in the named Secret.
func WithSecret(name string) client.MatchingFields { return client.MatchingFields{bySecret: name} }

// WithPassword selects the VCDClusters that take the password of a proxy or of a BGP peer from the named Secret.
func WithPassword(name string) client.MatchingFields { return client.MatchingFields{byPassword: name} }

// WithInfraID selects the VCDClusters with an ID.
func WithInfraID(id string) client.MatchingFields { return client.MatchingFields{byInfraID: id} }

// WithInstanceID selects the VCDMachines whose VMs have an instance ID.
func WithInstanceID(id string) client.MatchingFields { return client.MatchingFields{byInstanceID: id} }

// An Index is an index of the objects of one kind.
type Index struct {
	Object client.Object
	Field  string
	Values client.IndexerFunc
}

// All returns the indexes.
func All() []Index {
	secrets := &metav1.PartialObjectMetadata{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return []Index{
		{&infrav1.VCDCluster{}, byCluster, clusterOf},
		{&infrav1.VCDMachine{}, byCluster, clusterOf},
		{&clusterv1.Machine{}, byCluster, clusterOf},
		{secrets, byOwner, ownersOf},
		{&infrav1.VCDCluster{}, byIdentity, of(identitiesOf)},
		{&infrav1.VCDIdentity{}, bySecret, of(secretOf)},
		{&infrav1.VCDClusterIdentity{}, bySecret, of(clusterSecretOf)},
		{&infrav1.VCDCluster{}, byPassword, of(passwordsOf)},
		{&infrav1.VCDCluster{}, byInfraID, of(infraIDOf)},
		{&infrav1.VCDMachine{}, byInstanceID, of(instanceIDOf)},
	}
}

// Register adds the indexes to the cache of a manager. It must run before the manager starts.
func Register(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range All() {
		if err := indexer.IndexField(ctx, i.Object, i.Field, i.Values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.Object, i.Field, err)
		}
	}
	return nil
}

// of returns the indexer of a kind. Objects without a value are not in the index.
func of[T client.Object](values func(T) []string) client.IndexerFunc {
	return func(obj client.Object) []string {
		typed, ok := obj.(T)
		if !ok {
			return nil
		}
		return slices.DeleteFunc(values(typed), func(value string) bool { return value == "" })
	}
}

func clusterOf(obj client.Object) []string {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return []string{name}
}

func ownersOf(obj client.Object) []string {
	var uids []string
	for _, ref := range obj.GetOwnerReferences() {
		uids = append(uids, string(ref.UID))
	}
	return uids
}

func identitiesOf(c *infrav1.VCDCluster) []string {
	keys := []string{identityKey(c.Spec.IdentityRef.Kind, c.Spec.IdentityRef.Name)}
	if other := c.Spec.CloudProvider.IdentityRef; other != nil {
		keys = append(keys, identityKey(other.Kind, other.Name))
	}
	return keys
}

// identityKey returns the key of an identity. A reference without a kind refers to a VCDIdentity.
func identityKey(kind infrav1.IdentityKind, name string) string {
	return string(cmp.Or(kind, infrav1.NamespacedIdentity)) + "/" + name
}

func passwordsOf(c *infrav1.VCDCluster) []string {
	names := []string{c.Spec.Proxy.CredentialsSecretRef.Name}
	kube := c.Spec.ControlPlaneLoadBalancer.KubeVIP
	if kube == nil || kube.BGP == nil {
		return names
	}
	for _, peer := range kube.BGP.Peers {
		if peer.PasswordSecretRef != nil {
			names = append(names, peer.PasswordSecretRef.Name)
		}
	}
	return names
}

func secretOf(i *infrav1.VCDIdentity) []string { return []string{i.Spec.SecretRef.Name} }

func clusterSecretOf(i *infrav1.VCDClusterIdentity) []string { return []string{i.Spec.SecretRef.Name} }

func infraIDOf(c *infrav1.VCDCluster) []string { return []string{c.Spec.InfraID} }

func instanceIDOf(m *infrav1.VCDMachine) []string { return []string{m.Spec.RecordedState.InstanceID} }
