// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// OtherCluster returns the objects of a second cluster that uses the same vApp name, and of a machine of that cluster.
func OtherCluster(sim *vcdsim.Simulator, machine string) []client.Object {
	cluster := NewCAPICluster()
	cluster.Name = "c2"
	cluster.UID = "uid-of-c2"
	cluster.Labels = capicluster.Labels("c2")
	cluster.Spec.InfrastructureRef.Name = "vc2"
	infra := NewVCDCluster(sim)
	infra.Name = "vc2"
	infra.UID = "uid-of-vc2"
	infra.Labels = capicluster.Labels("c2")
	infra.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Cluster",
		Name:       "c2",
		UID:        "uid-of-c2",
	}}
	infra.Spec.InfraID = "id-of-c2"
	infra.Spec.VApp.Name = ClusterName
	objects := append(NewMachine(machine), cluster, infra)
	for _, o := range objects[:2] {
		o.SetLabels(capicluster.Labels("c2"))
	}
	return objects
}
