// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/topology"
)

// A Lookup reads an object from a management cluster.
type Lookup func(context.Context, Key) (*unstructured.Unstructured, error)

// A Key identifies an object in a management cluster.
type Key struct {
	Kind      schema.GroupVersionKind
	Namespace string // empty: the namespace of the kubeconfig context
	Name      string
}

// otherFile is the remedy if a manifest lacks a class or its templates.
const otherFile = "pass its file with another -f, such as templates/clusterclass-quick-start.yaml"

// A classSource provides the classes of Clusters and their templates.
type classSource struct {
	classes map[string]*clusterv1.ClusterClass // classes of the manifest, by name
	objects []*unstructured.Unstructured       // all objects of the manifest
	lookUp  Lookup                             // nil: no management cluster
}

// resolveTopology returns the objects that Cluster API would create from the topology of a Cluster.
func resolveTopology(ctx context.Context, cluster *clusterv1.Cluster, from classSource) (topology.Result, error) {
	class, err := from.class(ctx, cluster)
	if err != nil {
		return topology.Result{}, err
	}
	templates, err := from.templates(ctx, class)
	if err != nil {
		return topology.Result{}, err
	}
	resolved, err := topology.Resolve(topology.Input{
		Cluster:   cluster,
		Class:     class,
		Templates: templates,
	})
	if err != nil {
		return topology.Result{}, fmt.Errorf("resolving the topology: %w", err)
	}
	return resolved, nil
}

// class returns the class of a Cluster from the manifest, or from the management cluster if the manifest does not
// contain it.
func (s classSource) class(ctx context.Context, cluster *clusterv1.Cluster) (*clusterv1.ClusterClass, error) {
	key := cluster.GetClassKey()
	if class, ok := s.classes[key.Name]; ok {
		return class, nil
	}
	found, err := s.lookedUp(ctx, Key{
		Kind:      clusterv1.GroupVersion.WithKind("ClusterClass"),
		Namespace: key.Namespace,
		Name:      key.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("the manifest contains no VCDCluster: Cluster %s uses ClusterClass %s, %w: %s",
			cluster.Name, key.Name, err, otherFile)
	}
	class := &clusterv1.ClusterClass{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, class); err != nil {
		return nil, fmt.Errorf("reading ClusterClass %s: %w", key.Name, err)
	}
	return class, nil
}

// templates returns the templates of a class from the manifest, or from the management cluster if the manifest does not
// contain them.
func (s classSource) templates(ctx context.Context, class *clusterv1.ClusterClass) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, ref := range topology.Templates(class) {
		template, err := s.template(ctx, Key{
			Kind:      schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind),
			Namespace: class.Namespace,
			Name:      ref.Name,
		})
		if err != nil {
			return nil, fmt.Errorf("ClusterClass %s refers to %s %s, %w: %s", class.Name, ref.Kind, ref.Name, err, otherFile)
		}
		all = append(all, template)
	}
	return all, nil
}

func (s classSource) template(ctx context.Context, key Key) (*unstructured.Unstructured, error) {
	kind := key.Kind.GroupKind()
	for _, object := range s.objects {
		if object.GroupVersionKind().GroupKind() == kind && object.GetName() == key.Name {
			return object, nil
		}
	}
	return s.lookedUp(ctx, key)
}

// lookedUp returns an object from the management cluster. It fails if there is no management cluster.
func (s classSource) lookedUp(ctx context.Context, key Key) (*unstructured.Unstructured, error) {
	if s.lookUp == nil {
		return nil, errors.New("which is not in the manifest")
	}
	found, err := s.lookUp(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("which is neither in the manifest nor in the management cluster (%w)", err)
	}
	return found, nil
}

// dropClassTemplates removes the templates of classes that no group uses, because patches replace their values.
func dropClassTemplates(classes map[string]*clusterv1.ClusterClass, groups []machineGroup, templates map[string]infrav1.VCDMachineSpec) {
	used := map[string]bool{}
	for _, group := range groups {
		used[group.template] = true
	}
	for _, class := range classes {
		for _, ref := range topology.Templates(class) {
			if ref.Kind == machineTemplateKind && !used[ref.Name] {
				delete(templates, ref.Name)
			}
		}
	}
}
