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

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/topology"
)

// A Lookup reads an object of a management cluster.
type Lookup func(context.Context, Key) (*unstructured.Unstructured, error)

// A Key names an object of a management cluster.
type Key struct {
	Kind      schema.GroupVersionKind
	Namespace string // empty: that of the context
	Name      string
}

// otherFile is what helps if a manifest lacks a class or its templates.
const otherFile = "pass its file with another -f, such as templates/clusterclass-quick-start.yaml"

// addTopology adds the objects that Cluster API makes of the topology of the Cluster.
func (m *manifest) addTopology(ctx context.Context) error {
	class, err := m.class(ctx)
	if err != nil {
		return err
	}
	templates, err := m.classTemplates(ctx, class)
	if err != nil {
		return err
	}
	resolved, err := topology.Resolve(topology.Input{
		Cluster:   m.topology,
		Class:     class,
		Templates: templates,
	})
	if err != nil {
		return fmt.Errorf("resolving the topology: %w", err)
	}
	m.plan.Name = m.topology.Name
	m.plan.external = resolved.External
	for _, object := range resolved.Objects {
		if err := m.add(object); err != nil {
			return err
		}
	}
	return nil
}

// class returns the class of the Cluster: that of the manifest, else that of the management cluster.
func (m *manifest) class(ctx context.Context) (*clusterv1.ClusterClass, error) {
	key := m.topology.GetClassKey()
	if class, ok := m.classes[key.Name]; ok {
		return class, nil
	}
	found, err := m.lookedUp(ctx, Key{
		Kind:      clusterv1.GroupVersion.WithKind("ClusterClass"),
		Namespace: key.Namespace,
		Name:      key.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("the manifest has no VCDCluster: Cluster %s is made from ClusterClass %s, %w: %s",
			m.topology.Name, key.Name, err, otherFile)
	}
	class := &clusterv1.ClusterClass{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, class); err != nil {
		return nil, fmt.Errorf("reading ClusterClass %s: %w", key.Name, err)
	}
	return class, nil
}

// classTemplates returns the templates of a class: those of the manifest, else those of the management cluster.
func (m *manifest) classTemplates(ctx context.Context, class *clusterv1.ClusterClass) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, ref := range topology.Templates(class) {
		template, err := m.classTemplate(ctx, Key{
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

func (m *manifest) classTemplate(ctx context.Context, key Key) (*unstructured.Unstructured, error) {
	if template := m.object(key.Kind.GroupKind(), key.Name); template != nil {
		return template, nil
	}
	return m.lookedUp(ctx, key)
}

// object returns an object of the manifest, nil if there is none.
func (m *manifest) object(kind schema.GroupKind, name string) *unstructured.Unstructured {
	for _, object := range m.objects {
		if object.GroupVersionKind().GroupKind() == kind && object.GetName() == name {
			return object
		}
	}
	return nil
}

// lookedUp returns an object of the management cluster, if there is one.
func (m *manifest) lookedUp(ctx context.Context, key Key) (*unstructured.Unstructured, error) {
	if m.lookUp == nil {
		return nil, errors.New("which is not in the manifest")
	}
	found, err := m.lookUp(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("which is neither in the manifest nor in the management cluster (%w)", err)
	}
	return found, nil
}

// forgetClassTemplates drops the templates of classes that makers do not use: what they have is replaced by patches.
func (m *manifest) forgetClassTemplates() {
	used := map[string]bool{}
	for _, maker := range m.makers {
		used[maker.template] = true
	}
	for _, class := range m.classes {
		for _, ref := range topology.Templates(class) {
			if ref.Kind == machineTemplateKind && !used[ref.Name] {
				delete(m.templates, ref.Name)
			}
		}
	}
}
