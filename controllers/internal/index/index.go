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
	cluster    = "metadata.labels.cluster"
	owner      = "metadata.ownerReferences.uid"
	identity   = "spec.identityRef"
	secret     = "spec.secretRef.name"
	password   = "spec.passwordSecretRef.name"
	infraID    = "spec.infraID"
	instanceID = "spec.recordedState.instanceID"
)

// OfCluster selects the VCDClusters, VCDMachines or Machines with the label of the named Cluster.
func OfCluster(name string) client.MatchingFields { return client.MatchingFields{cluster: name} }

// OwnedBy selects the metadata of Secrets that an object owns.
func OwnedBy(uid types.UID) client.MatchingFields { return client.MatchingFields{owner: string(uid)} }

// WithIdentity selects the VCDClusters that refer to an identity.
func WithIdentity(kind infrav1.IdentityKind, name string) client.MatchingFields {
	return client.MatchingFields{identity: identityKey(kind, name)}
}

// WithSecret selects the VCDIdentities or VCDClusterIdentities whose credentials are in the named Secret.
func WithSecret(name string) client.MatchingFields { return client.MatchingFields{secret: name} }

// WithPassword selects the VCDClusters that take the password of a proxy or of a BGP peer from the named Secret.
func WithPassword(name string) client.MatchingFields { return client.MatchingFields{password: name} }

// WithInfraID selects the VCDClusters with an ID.
func WithInfraID(id string) client.MatchingFields { return client.MatchingFields{infraID: id} }

// WithInstanceID selects the VCDMachines whose VMs have an instance ID.
func WithInstanceID(id string) client.MatchingFields { return client.MatchingFields{instanceID: id} }

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
		{&infrav1.VCDCluster{}, cluster, clusterOf},
		{&infrav1.VCDMachine{}, cluster, clusterOf},
		{&clusterv1.Machine{}, cluster, clusterOf},
		{secrets, owner, ownersOf},
		{&infrav1.VCDCluster{}, identity, of(identitiesOf)},
		{&infrav1.VCDIdentity{}, secret, of(func(i *infrav1.VCDIdentity) []string { return []string{i.Spec.SecretRef.Name} })},
		{&infrav1.VCDClusterIdentity{}, secret, of(func(i *infrav1.VCDClusterIdentity) []string { return []string{i.Spec.SecretRef.Name} })},
		{&infrav1.VCDCluster{}, password, of(passwordsOf)},
		{&infrav1.VCDCluster{}, infraID, of(func(c *infrav1.VCDCluster) []string { return []string{c.Spec.InfraID} })},
		{&infrav1.VCDMachine{}, instanceID, of(func(m *infrav1.VCDMachine) []string { return []string{m.Spec.RecordedState.InstanceID} })},
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
