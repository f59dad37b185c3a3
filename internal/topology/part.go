// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// A role is the purpose of a template, as distinguished by the selectors of patches.
type role int

const (
	roleInfrastructureCluster role = iota
	roleControlPlane
	roleMachineDeployment
)

// A part is a copy of a template of the class, which patches may change, with related data.
type part struct {
	role   role
	class  string // class of the workers, for MachineDeployments
	name   string // name of the resulting object
	origin string // name of the template in the class

	labels      map[string]string
	annotations map[string]string
	object      *unstructured.Unstructured
	values      values
}

func (p *part) setValues(global, override values, builtins runtimehooksv1.Builtins) error {
	var err error
	p.values, err = global.with(override, builtins)
	return err
}

// metadataOfObjects is the path in a template of the labels and annotations for objects that are created from it.
var metadataOfObjects = []string{"spec", "template", "metadata"}

// A source holds the templates of a class.
type source []*unstructured.Unstructured

// object returns a part from which an object is created, with its labels and annotations.
func (s source) object(ref clusterv1.ClusterClassTemplateReference, p part) (*part, error) {
	if err := s.fill(ref, &p); err != nil {
		return nil, err
	}
	metadata, err := metadataAt(p.object, metadataOfObjects...)
	if err != nil {
		return nil, err
	}
	metadata.Labels = merged(metadata.Labels, p.labels)
	metadata.Annotations = merged(metadata.Annotations, p.annotations, p.clonedFrom())
	p.labels = metadata.Labels
	p.annotations = metadata.Annotations
	return &p, setMetadata(p.object, metadata, metadataOfObjects...)
}

// template returns a part that becomes a template of the cluster, with its labels.
func (s source) template(ref clusterv1.ClusterClassTemplateReference, p part) (*part, error) {
	if err := s.fill(ref, &p); err != nil {
		return nil, err
	}
	annotations := merged(p.object.GetAnnotations(), p.clonedFrom())
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	p.object.SetAnnotations(annotations)
	p.object.SetLabels(merged(p.object.GetLabels(), p.labels))
	return &p, nil
}

// fill copies the template that a class refers to into a part.
func (s source) fill(ref clusterv1.ClusterClassTemplateReference, p *part) error {
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group
	for _, template := range s {
		kind := template.GroupVersionKind()
		if kind.Group != group || kind.Kind != ref.Kind || template.GetName() != ref.Name {
			continue
		}
		if template.GetAPIVersion() != ref.APIVersion {
			return fmt.Errorf("%s %s has version %s, but the ClusterClass refers to %s", ref.Kind, ref.Name,
				kind.Version, ref.APIVersion)
		}
		p.origin = ref.Name
		p.object = template.DeepCopy()
		return nil
	}
	return fmt.Errorf("there is no %s %s", ref.Kind, ref.Name)
}

// clonedFrom returns the annotations that identify the template in the class.
func (p *part) clonedFrom() map[string]string {
	return map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      p.origin,
		clusterv1.TemplateClonedFromGroupKindAnnotation: p.object.GroupVersionKind().GroupKind().String(),
	}
}

// asObject returns the object that is created from a patched part.
func (p *part) asObject(namespace string, own map[string]string) (*unstructured.Unstructured, error) {
	content, _, err := unstructured.NestedMap(p.object.Object, "spec", "template")
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", p.object.GetKind(), p.origin, err)
	}
	if content == nil {
		content = map[string]any{}
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(p.object.GetAPIVersion())
	object.SetKind(strings.TrimSuffix(p.object.GetKind(), clusterv1.TemplateSuffix))
	p.identify(object, namespace, own)
	return object, nil
}

// asTemplate returns a patched part as a template of the cluster.
func (p *part) asTemplate(namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": p.object.Object["spec"]}}
	object.SetAPIVersion(p.object.GetAPIVersion())
	object.SetKind(p.object.GetKind())
	object.SetLabels(p.object.GetLabels())
	object.SetAnnotations(p.object.GetAnnotations())
	p.identify(object, namespace, p.labels)
	return object
}

// identify sets the name of an object, and the labels and annotations that patches cannot change.
func (p *part) identify(object *unstructured.Unstructured, namespace string, own map[string]string) {
	object.SetName(p.name)
	object.SetNamespace(namespace)
	object.SetLabels(merged(object.GetLabels(), own))
	object.SetAnnotations(merged(object.GetAnnotations(), p.clonedFrom()))
}

// metadataAt reads the labels and annotations at a path. It is no error if they do not exist.
func metadataAt(object *unstructured.Unstructured, path ...string) (clusterv1.ObjectMeta, error) {
	labels, _, err := unstructured.NestedStringMap(object.Object, append(path[:len(path):len(path)], "labels")...)
	if err != nil {
		return clusterv1.ObjectMeta{}, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	annotations, _, err := unstructured.NestedStringMap(object.Object, append(path[:len(path):len(path)], "annotations")...)
	if err != nil {
		return clusterv1.ObjectMeta{}, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return clusterv1.ObjectMeta{Labels: labels, Annotations: annotations}, nil
}

// setMetadata sets the labels and annotations at a path.
func setMetadata(object *unstructured.Unstructured, metadata clusterv1.ObjectMeta, path ...string) error {
	for field, entries := range map[string]map[string]string{
		"labels":      metadata.Labels,
		"annotations": metadata.Annotations,
	} {
		if len(entries) == 0 {
			continue
		}
		err := unstructured.SetNestedStringMap(object.Object, entries, append(path[:len(path):len(path)], field)...)
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
