// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/test/framework"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

type (
	ownerAssertions     = map[string]func(types.NamespacedName, []metav1.OwnerReference) error
	finalizerAssertions = map[string]func(types.NamespacedName) []string
)

var (
	cluster      = metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster"}
	machine      = controller(clusterv1.GroupVersion.String(), "Machine")
	controlPlane = controller(controlplanev1.GroupVersion.String(), "KubeadmControlPlane")
	bootstrap    = controller(bootstrapv1.GroupVersion.String(), "KubeadmConfig")
	vcdCluster   = controller(infrav1.GroupVersion.String(), "VCDCluster")
	vcdIdentity  = metav1.OwnerReference{APIVersion: infrav1.GroupVersion.String(), Kind: "VCDIdentity"}
)

func controller(apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Controller: ptr.To(true)}
}

// ownedBy checks that an object has exactly these owners.
func ownedBy(owners ...metav1.OwnerReference) func(types.NamespacedName, []metav1.OwnerReference) error {
	return func(_ types.NamespacedName, got []metav1.OwnerReference) error {
		return framework.HasExactOwners(got, owners...)
	}
}

// owners returns the expected owners in the object graph of a cluster.
func owners() []ownerAssertions {
	return []ownerAssertions{
		framework.CoreOwnerReferenceAssertion,
		framework.KubeadmBootstrapOwnerReferenceAssertions,
		framework.KubeadmControlPlaneOwnerReferenceAssertions(false),
		{
			"VCDCluster":         ownedBy(cluster),
			"VCDMachine":         ownedBy(machine),
			"VCDMachineTemplate": ownedBy(cluster),
			"VCDIdentity":        ownedBy(), // It owns its Secret, and outlives the cluster.
			"Secret":             secretOwners,
		},
	}
}

func secretOwners(name types.NamespacedName, got []metav1.OwnerReference) error {
	switch {
	case strings.HasSuffix(name.Name, "-kube-vip"):
		return framework.HasExactOwners(got, vcdCluster)
	case strings.HasSuffix(name.Name, "-credentials"):
		return framework.HasExactOwners(got, vcdIdentity)
	default:
		return framework.HasOneOfExactOwners(got, []metav1.OwnerReference{controlPlane},
			[]metav1.OwnerReference{bootstrap})
	}
}

// finalizers returns the expected finalizers in the object graph of a cluster. Kinds without an entry have none.
func finalizers() []finalizerAssertions {
	always := func(finalizer string) func(types.NamespacedName) []string {
		return func(types.NamespacedName) []string { return []string{finalizer} }
	}
	return []finalizerAssertions{
		framework.CoreFinalizersAssertionWithLegacyClusters,
		framework.KubeadmControlPlaneFinalizersAssertion,
		{
			"VCDCluster":  always(infrav1.ClusterFinalizer),
			"VCDMachine":  always(infrav1.MachineFinalizer),
			"VCDIdentity": always(infrav1.IdentityFinalizer),
			"Secret": func(name types.NamespacedName) []string {
				if strings.HasSuffix(name.Name, "-credentials") {
					return []string{infrav1.SecretFinalizer}
				}
				return nil
			},
		},
	}
}
