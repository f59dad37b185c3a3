// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

func ofCluster(name, cluster string) metav1.ObjectMeta {
	m := named(name)
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: cluster}
	return m
}

// clusters returns VCDClusters with the fields that the indexes read.
func clusters() []client.Object {
	plain := &infrav1.VCDCluster{ObjectMeta: ofCluster("plain", "a")}
	plain.Spec.IdentityRef = infrav1.IdentityReference{Name: "tenant"}
	plain.Spec.InfraID = "id-1"
	two := &infrav1.VCDCluster{ObjectMeta: ofCluster("two-identities", "b")}
	two.Spec.IdentityRef = infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "tenant"}
	two.Spec.CloudProvider.IdentityRef = &infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "ccm"}
	two.Spec.Proxy.CredentialsSecretRef.Name = "proxy"
	bgp := &infrav1.VCDCluster{ObjectMeta: named("bgp")}
	peers := []infrav1.KubeVIPPeer{{PasswordSecretRef: &infrav1.SecretKeyReference{Name: "peer"}}, {}}
	bgp.Spec.ControlPlaneLoadBalancer.KubeVIP = &infrav1.KubeVIPEndpoint{BGP: &infrav1.KubeVIPBGP{Peers: peers}}
	return []client.Object{plain, two, bgp}
}

func TestSelection(t *testing.T) {
	machine := &infrav1.VCDMachine{ObjectMeta: ofCluster("m0", "a")}
	machine.Spec.RecordedState.InstanceID = "instance-1"
	identity := &infrav1.VCDIdentity{ObjectMeta: named("tenant")}
	identity.Spec.SecretRef.Name = "credentials"
	wide := &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "provider"}}
	wide.Spec.SecretRef.Name = "credentials"
	secret := &corev1.Secret{ObjectMeta: named("credentials")}
	secret.OwnerReferences = []metav1.OwnerReference{{UID: "first"}, {UID: "second"}}
	objects := append(clusters(),
		machine,
		&infrav1.VCDMachine{ObjectMeta: ofCluster("other", "b")},
		&infrav1.VCDMachine{ObjectMeta: named("without-a-cluster")},
		&clusterv1.Machine{ObjectMeta: ofCluster("m0", "a")},
		&clusterv1.Machine{ObjectMeta: ofCluster("other", "b")},
		identity,
		&infrav1.VCDIdentity{ObjectMeta: named("without-a-secret")},
		wide,
		secret,
		&corev1.Secret{ObjectMeta: named("unowned")},
	)
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, i := range index.All() {
		builder.WithIndex(i.Object, i.Field, i.Values)
	}
	c := builder.Build()
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	for name, tt := range map[string]struct {
		list client.ObjectList
		by   client.MatchingFields
		want []string
	}{
		"VCDClusters of a Cluster":                    {&infrav1.VCDClusterList{}, index.OfCluster("a"), []string{"plain"}},
		"VCDMachines of a Cluster":                    {&infrav1.VCDMachineList{}, index.OfCluster("a"), []string{"m0"}},
		"Machines of a Cluster":                       {&clusterv1.MachineList{}, index.OfCluster("a"), []string{"m0"}},
		"a Cluster without a name":                    {&infrav1.VCDMachineList{}, index.OfCluster(""), nil},
		"VCDClusters with a VCDIdentity":              {&infrav1.VCDClusterList{}, index.WithIdentity(infrav1.NamespacedIdentity, "tenant"), []string{"plain"}},
		"the default kind of an identity":             {&infrav1.VCDClusterList{}, index.WithIdentity("", "tenant"), []string{"plain"}},
		"VCDClusters with a VCDClusterIdentity":       {&infrav1.VCDClusterList{}, index.WithIdentity(infrav1.ClusterIdentity, "tenant"), []string{"two-identities"}},
		"the identity of a cloud controller manager":  {&infrav1.VCDClusterList{}, index.WithIdentity(infrav1.NamespacedIdentity, "ccm"), []string{"two-identities"}},
		"an identity that no cluster uses":            {&infrav1.VCDClusterList{}, index.WithIdentity(infrav1.ClusterIdentity, "ccm"), nil},
		"VCDIdentities with a Secret":                 {&infrav1.VCDIdentityList{}, index.WithSecret("credentials"), []string{"tenant"}},
		"VCDClusterIdentities with a Secret":          {&infrav1.VCDClusterIdentityList{}, index.WithSecret("credentials"), []string{"provider"}},
		"VCDClusters with the password of a proxy":    {&infrav1.VCDClusterList{}, index.WithPassword("proxy"), []string{"two-identities"}},
		"VCDClusters with the password of a BGP peer": {&infrav1.VCDClusterList{}, index.WithPassword("peer"), []string{"bgp"}},
		"VCDClusters with an ID":                      {&infrav1.VCDClusterList{}, index.WithInfraID("id-1"), []string{"plain"}},
		"VCDMachines with an instance ID":             {&infrav1.VCDMachineList{}, index.WithInstanceID("instance-1"), []string{"m0"}},
		"Secrets of an owner":                         {metadata.DeepCopy(), index.OwnedBy("second"), []string{"credentials"}},
		"Secrets of an unknown owner":                 {metadata.DeepCopy(), index.OwnedBy("third"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(c.List(t.Context(), tt.list, tt.by)).To(Succeed())
			var names []string
			g.Expect(meta.EachListItem(tt.list, func(obj runtime.Object) error {
				item, err := meta.Accessor(obj)
				names = append(names, item.GetName())
				return err
			})).To(Succeed())
			g.Expect(names).To(Equal(tt.want))
		})
	}
}
