// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// objects returns the objects that result from the patched parts.
func (b *blueprint) objects() ([]*unstructured.Unstructured, error) {
	namespace := b.cluster.Namespace
	infrastructure, err := b.infrastructure.asObject(namespace, b.ownLabels())
	if err != nil {
		return nil, err
	}
	controlPlane, err := b.controlPlaneObject()
	if err != nil {
		return nil, err
	}
	all := []*unstructured.Unstructured{infrastructure, controlPlane}
	if b.controlPlaneMachine != nil {
		all = append(all, b.controlPlaneMachine.asTemplate(namespace))
	}
	for _, w := range b.workers {
		deployment, err := b.deployment(w)
		if err != nil {
			return nil, err
		}
		all = append(all, deployment, w.bootstrap.asTemplate(namespace), w.infrastructure.asTemplate(namespace))
	}
	return all, nil
}

// A setting is a field that the topology sets. A zero value leaves the field unchanged.
type setting struct {
	path  []string
	value any
}

// controlPlaneObject returns the control plane, with the fields of Cluster API's contract v1beta2.
func (b *blueprint) controlPlaneObject() (*unstructured.Unstructured, error) {
	object, err := b.controlPlane.asObject(b.cluster.Namespace, b.ownLabels())
	if err != nil {
		return nil, err
	}
	settings := slices.Concat(b.controlPlaneSettings(), b.controlPlaneMachineSettings())
	for _, s := range settings {
		if reflect.ValueOf(s.value).IsZero() {
			continue
		}
		value, err := asJSON(s.value)
		if err == nil {
			err = unstructured.SetNestedField(object.Object, value, append([]string{"spec"}, s.path...)...)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return object, nil
}

func (b *blueprint) controlPlaneSettings() []setting {
	topology := b.cluster.Spec.Topology.ControlPlane
	return []setting{
		{[]string{"version"}, b.cluster.Spec.Topology.Version},
		{[]string{"replicas"}, topology.Replicas},
		{[]string{"rollout", "after"}, topology.Rollout.After},
	}
}

func (b *blueprint) controlPlaneMachineSettings() []setting {
	topology := b.cluster.Spec.Topology.ControlPlane
	class := b.class.Spec.ControlPlane
	machine := func(field ...string) []string { return append([]string{"machineTemplate", "spec"}, field...) }
	settings := []setting{
		{machine("readinessGates"), or(topology.ReadinessGates, class.ReadinessGates)},
		{machine("taints"), or(topology.Taints, class.Taints)},
		{
			machine("deletion", "nodeDrainTimeoutSeconds"),
			cmp.Or(topology.Deletion.NodeDrainTimeoutSeconds, class.Deletion.NodeDrainTimeoutSeconds),
		},
		{
			machine("deletion", "nodeVolumeDetachTimeoutSeconds"),
			cmp.Or(topology.Deletion.NodeVolumeDetachTimeoutSeconds, class.Deletion.NodeVolumeDetachTimeoutSeconds),
		},
		{
			machine("deletion", "nodeDeletionTimeoutSeconds"),
			cmp.Or(topology.Deletion.NodeDeletionTimeoutSeconds, class.Deletion.NodeDeletionTimeoutSeconds),
		},
	}
	if p := b.controlPlaneMachine; p != nil {
		settings = append(settings,
			setting{machine("infrastructureRef"), p.reference()},
			setting{[]string{"machineTemplate", "metadata"}, b.machineMetadata})
	}
	return settings
}

// deployment returns the MachineDeployment of workers.
func (b *blueprint) deployment(w *workers) (*unstructured.Unstructured, error) {
	typed := &clusterv1.MachineDeployment{
		TypeMeta: metav1.TypeMeta{
			APIVersion: clusterv1.GroupVersion.String(),
			Kind:       "MachineDeployment",
		},
		ObjectMeta: metav1.ObjectMeta{
			Name:        w.name,
			Namespace:   b.cluster.Namespace,
			Labels:      w.labels,
			Annotations: w.annotations,
		},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: b.cluster.Name,
			Replicas:    w.topology.Replicas,
			Rollout:     w.rollout(),
			Selector: metav1.LabelSelector{
				MatchLabels: w.infrastructure.labels,
			},
			Deletion: clusterv1.MachineDeploymentDeletionSpec{
				Order: cmp.Or(w.topology.Deletion.Order, w.class.Deletion.Order),
			},
			Remediation: clusterv1.MachineDeploymentRemediationSpec{
				MaxInFlight: cmp.Or(w.topology.HealthCheck.Remediation.MaxInFlight, w.class.HealthCheck.Remediation.MaxInFlight),
			},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{
					Labels:      w.labels,
					Annotations: w.annotations,
				},
				Spec: w.machine(b.cluster),
			},
		},
	}
	content, err := asJSON(typed)
	if err != nil {
		return nil, fmt.Errorf("MachineDeployment %s: %w", w.name, err)
	}
	fields, _ := content.(map[string]any)
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}, nil
}

// machine returns the spec of the machines of workers. Fields that the topology does not set come from the class.
func (w *workers) machine(c *clusterv1.Cluster) clusterv1.MachineSpec {
	topology := w.topology
	class := w.class
	return clusterv1.MachineSpec{
		ClusterName:       c.Name,
		Version:           c.Spec.Topology.Version,
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: w.bootstrap.reference()},
		InfrastructureRef: w.infrastructure.reference(),
		FailureDomain:     cmp.Or(topology.FailureDomain, class.FailureDomain),
		MinReadySeconds:   cmp.Or(topology.MinReadySeconds, class.MinReadySeconds),
		ReadinessGates:    or(topology.ReadinessGates, class.ReadinessGates),
		Taints:            or(topology.Taints, class.Taints),
		Deletion: clusterv1.MachineDeletionSpec{
			NodeDrainTimeoutSeconds: cmp.Or(topology.Deletion.NodeDrainTimeoutSeconds,
				class.Deletion.NodeDrainTimeoutSeconds),
			NodeVolumeDetachTimeoutSeconds: cmp.Or(topology.Deletion.NodeVolumeDetachTimeoutSeconds,
				class.Deletion.NodeVolumeDetachTimeoutSeconds),
			NodeDeletionTimeoutSeconds: cmp.Or(topology.Deletion.NodeDeletionTimeoutSeconds,
				class.Deletion.NodeDeletionTimeoutSeconds),
		},
	}
}

// rollout returns the rollout settings of the topology, or those of the class if the topology has none.
func (w *workers) rollout() clusterv1.MachineDeploymentRolloutSpec {
	var rollout clusterv1.MachineDeploymentRolloutSpec
	if own := w.topology.Rollout; !reflect.ValueOf(own).IsZero() {
		rollout.After = own.After
		rollout.Strategy.Type = own.Strategy.Type
		rollout.Strategy.RollingUpdate.MaxUnavailable = own.Strategy.RollingUpdate.MaxUnavailable
		rollout.Strategy.RollingUpdate.MaxSurge = own.Strategy.RollingUpdate.MaxSurge
		return rollout
	}
	class := w.class.Rollout.Strategy
	rollout.Strategy.Type = class.Type
	rollout.Strategy.RollingUpdate.MaxUnavailable = class.RollingUpdate.MaxUnavailable
	rollout.Strategy.RollingUpdate.MaxSurge = class.RollingUpdate.MaxSurge
	return rollout
}

// reference returns a reference to the object that is created from a part.
func (p *part) reference() clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{
		APIGroup: p.object.GroupVersionKind().Group,
		Kind:     p.object.GetKind(),
		Name:     p.name,
	}
}

// or returns the first list if it is not nil, even if it is empty, otherwise the second list.
func or[T any](first, second []T) []T {
	if first != nil {
		return first
	}
	return second
}

// asJSON converts a value to the form that unstructured objects use.
func asJSON(value any) (any, error) {
	wrapped, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Value any `json:"value"`
	}{value})
	if err != nil {
		return nil, fmt.Errorf("converting it: %w", err)
	}
	return wrapped["value"], nil
}
