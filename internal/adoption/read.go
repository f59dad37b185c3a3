// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta2"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

// clusterNameLabel is a label of each object of a cluster, in all versions of Cluster API.
const clusterNameLabel = "cluster.x-k8s.io/cluster-name"

// machineKind is the Machine kind in the API version that all Cluster API releases supported by CAPVCD serve.
var machineKind = schema.GroupVersionKind{
	Group:   "cluster.x-k8s.io",
	Version: "v1beta1",
	Kind:    "Machine",
}

// Read returns the clusters that CAPVCD created, in all namespaces of a management cluster with a name. It works before
// and after the upgrade of the management cluster.
func Read(ctx context.Context, c client.Reader, management string) ([]Cluster, error) {
	list := &v1beta2.VCDClusterList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	var clusters []Cluster
	for i := range list.Items {
		vcdCluster := &list.Items[i]
		id := cmp.Or(vcdCluster.Status.InfraID, vcdCluster.Spec.RDEID)
		if !capvcd.IsClusterID(id) {
			continue
		}
		machines, err := readMachines(ctx, c, vcdCluster)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, Cluster{
			Management: management,
			Namespace:  vcdCluster.Namespace,
			Name:       vcdCluster.Name,
			Site:       vcdCluster.Spec.Site,
			Org:        vcdCluster.Spec.Org,
			ID:         id,
			OneArm:     vcdCluster.Spec.LoadBalancerConfigSpec.UseOneArm,
			WasReady:   vcdCluster.Status.Ready,
			Machines:   machines,
		})
	}
	return clusters, nil
}

func readMachines(ctx context.Context, c client.Reader, of *v1beta2.VCDCluster) ([]Machine, error) {
	name := cmp.Or(of.Labels[clusterNameLabel], ownerOf(of, "Cluster"), of.Name)
	list := &v1beta2.VCDMachineList{}
	if err := c.List(ctx, list, client.InNamespace(of.Namespace), client.MatchingLabels{clusterNameLabel: name}); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	var machines []Machine
	for i := range list.Items {
		m := &list.Items[i]
		vmName, err := nameOfVM(ctx, c, m, name)
		if err != nil {
			return nil, err
		}
		id, err := providerid.Parse(ptr.Deref(m.Spec.ProviderID, ""))
		if err != nil {
			id = ""
		}
		machines = append(machines, Machine{
			Name:   m.Name,
			VMName: vmName,
			VM:     id,
		})
	}
	return machines, nil
}

// nameOfVM returns the name that CAPVCD gave a VM: the name of the Machine, or the result of the naming template. It is
// empty if the name cannot be determined.
func nameOfVM(ctx context.Context, c client.Reader, m *v1beta2.VCDMachine, cluster string) (string, error) {
	owner := ownerOf(m, "Machine")
	if owner == "" || m.Spec.VMNamingTemplate == "" {
		return owner, nil
	}
	machine := &metav1.PartialObjectMetadata{}
	machine.SetGroupVersionKind(machineKind)
	err := c.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: owner}, machine)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("getting Machine %s: %w", owner, err)
	}
	name, err := vmname.Render(m.Spec.VMNamingTemplate, vmname.Input{
		Cluster:    cluster,
		Machine:    vmname.ObjectOf(machine),
		VCDMachine: vmname.ObjectOf(m),
	})
	if err != nil {
		return "", nil //nolint:nilerr // CAPVCD accepted more templates.
	}
	return name, nil
}

// ownerOf returns the name of the owner of a kind, or the empty string.
func ownerOf(obj client.Object, kind string) string {
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Kind == kind {
			return owner.Name
		}
	}
	return ""
}
