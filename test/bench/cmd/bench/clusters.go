// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// creators is the number of clusters that are created in parallel. A sequential creation would only measure admission.
const creators = 8

func (b *bench) createClusters(ctx context.Context) error {
	template, err := os.ReadFile(filepath.Join(b.management.Root, "templates", "cluster-template.yaml"))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for n := range b.clusters {
		group.Go(func() error { return b.createCluster(ctx, template, n) })
	}
	return group.Wait()
}

func (b *bench) createCluster(ctx context.Context, template []byte, n int) error {
	objects, err := b.render(template, n)
	if err != nil {
		return err
	}
	if b.setup == setupMachines {
		objects = append(withoutOwners(objects), b.bareMachines(n)...)
	}
	for _, obj := range objects {
		obj.SetNamespace(clusterNamespace)
		if err := b.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

func clusterName(n int) string { return fmt.Sprintf("bench-%d", n) }

// render renders the objects of cluster n from the released template, as clusterctl does.
func (b *bench) render(template []byte, n int) ([]client.Object, error) {
	variables := b.variables(n)
	text, err := yamlprocessor.NewSimpleProcessor().Process(template, func(name string) (string, error) {
		if value, ok := variables[name]; ok {
			return value, nil
		}
		return "", fmt.Errorf("variable %s has no value", name)
	})
	if err != nil {
		return nil, fmt.Errorf("rendering the template: %w", err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(text)), 4096)
	var objects []client.Object
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the template: %w", err)
		}
		if len(obj.Object) > 0 {
			objects = append(objects, obj)
		}
	}
}

// endpointsPerBlock is the number of control plane endpoints in one /24 of the network.
const endpointsPerBlock = 250

func (b *bench) variables(n int) map[string]string {
	variables := b.site.Variables()
	maps.Copy(variables, map[string]string{
		"CLUSTER_NAME":                    clusterName(n),
		"KUBERNETES_VERSION":              programs.KubernetesVersion,
		"CONTROL_PLANE_MACHINE_COUNT":     strconv.Itoa(b.controlPlanes),
		"WORKER_MACHINE_COUNT":            strconv.Itoa(b.workers),
		"VCD_CONTROL_PLANE_SIZING_POLICY": "small",
		"VCD_WORKER_SIZING_POLICY":        "small",
		"CONTROL_PLANE_ENDPOINT_IP":       fmt.Sprintf("10.0.%d.%d", 200+n/endpointsPerBlock, n%endpointsPerBlock+1),
	})
	return variables
}

// withoutOwners returns the objects of the cluster itself, without those of its control plane and workers.
func withoutOwners(objects []client.Object) []client.Object {
	var kept []client.Object
	for _, obj := range objects {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		switch u.GetKind() {
		case "Cluster":
			unstructured.RemoveNestedField(u.Object, "spec", "controlPlaneRef")
			kept = append(kept, u)
		case "VCDCluster", "VCDIdentity", "Secret":
			kept = append(kept, u)
		}
	}
	return kept
}

// bareMachines returns the machines of cluster n, with existing bootstrap data.
func (b *bench) bareMachines(n int) []client.Object {
	var objects []client.Object
	ref := func(name string) clusterv1.ContractVersionedObjectReference {
		return clusterv1.ContractVersionedObjectReference{
			APIGroup: infrav1.GroupVersion.Group,
			Kind:     "VCDMachine",
			Name:     name,
		}
	}
	for i := range 1 + b.workers {
		name := fmt.Sprintf("%s-m%d", clusterName(n), i)
		labels := map[string]string{clusterv1.ClusterNameLabel: clusterName(n)}
		objects = append(objects,
			&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: name + "-bootstrap", Labels: labels},
				Type:       clusterv1.ClusterSecretType,
				Data:       map[string][]byte{"value": []byte("#cloud-config\n"), "format": []byte("cloud-config")},
			},
			&infrav1.VCDMachine{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
				Spec: infrav1.VCDMachineSpec{
					Catalog:      "kubernetes",
					Template:     "ubuntu-2404-kube-v1.36.3",
					SizingPolicy: "small",
				},
			},
			&clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
				Spec: clusterv1.MachineSpec{
					ClusterName:       clusterName(n),
					InfrastructureRef: ref(name),
					Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To(name + "-bootstrap")},
				},
			},
		)
	}
	return objects
}
