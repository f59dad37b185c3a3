// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// clusterBuiltins returns the builtin variables for all templates.
func (b *blueprint) clusterBuiltins() *runtimehooksv1.ClusterBuiltins {
	c := b.cluster
	class := c.GetClassKey()
	return &runtimehooksv1.ClusterBuiltins{
		Name:      c.Name,
		Namespace: c.Namespace,
		UID:       c.UID,
		Metadata:  builtinMetadata(merged(c.Labels, b.ownLabels()), c.Annotations),
		Topology: &runtimehooksv1.ClusterTopologyBuiltins{
			Version:        c.Spec.Topology.Version,
			Class:          class.Name,
			ClassNamespace: class.Namespace,
			ClassRef: runtimehooksv1.ClusterTopologyClusterClassRefBuiltins{
				Name:      class.Name,
				Namespace: class.Namespace,
			},
		},
		Network: networkBuiltins(c.Spec.ClusterNetwork),
	}
}

// networkBuiltins returns nil if the Cluster defines no networks.
func networkBuiltins(network clusterv1.ClusterNetwork) *runtimehooksv1.ClusterNetworkBuiltins {
	if network.ServiceDomain == "" && network.Services.CIDRBlocks == nil && network.Pods.CIDRBlocks == nil {
		return nil
	}
	builtins := &runtimehooksv1.ClusterNetworkBuiltins{
		Services: network.Services.CIDRBlocks,
		Pods:     network.Pods.CIDRBlocks,
	}
	if network.ServiceDomain != "" {
		builtins.ServiceDomain = &network.ServiceDomain
	}
	return builtins
}

// controlPlaneBuiltins returns the builtin variables for the templates of the control plane and its machines.
func (b *blueprint) controlPlaneBuiltins() *runtimehooksv1.ControlPlaneBuiltins {
	builtins := &runtimehooksv1.ControlPlaneBuiltins{
		Version:  b.cluster.Spec.Topology.Version,
		Name:     b.controlPlane.name,
		Replicas: b.cluster.Spec.Topology.ControlPlane.Replicas,
		Metadata: builtinMetadata(b.controlPlane.labels, b.controlPlane.annotations),
	}
	if b.controlPlaneMachine != nil {
		builtins.MachineTemplate = &runtimehooksv1.ControlPlaneMachineTemplateBuiltins{
			InfrastructureRef: runtimehooksv1.ControlPlaneMachineTemplateInfrastructureRefBuiltins{
				Name: b.controlPlaneMachine.name,
			},
		}
	}
	return builtins
}

// builtins returns the builtin variables for the templates of workers.
func (w *workers) builtins(version string) *runtimehooksv1.MachineDeploymentBuiltins {
	builtins := &runtimehooksv1.MachineDeploymentBuiltins{
		Version:      version,
		Class:        w.topology.Class,
		Name:         w.name,
		TopologyName: w.topology.Name,
		Metadata:     builtinMetadata(w.labels, w.annotations),
		Bootstrap: &runtimehooksv1.MachineBootstrapBuiltins{
			ConfigRef: &runtimehooksv1.MachineBootstrapConfigRefBuiltins{Name: w.bootstrap.name},
		},
		InfrastructureRef: &runtimehooksv1.MachineInfrastructureRefBuiltins{Name: w.infrastructure.name},
	}
	if w.topology.Replicas != nil {
		builtins.Replicas = ptr.To(int64(*w.topology.Replicas))
	}
	return builtins
}

func builtinMetadata(labels, annotations map[string]string) *runtimehooksv1.ObjectMeta {
	if labels == nil && annotations == nil {
		return nil
	}
	annotations = maps.Clone(annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return &runtimehooksv1.ObjectMeta{Labels: labels, Annotations: annotations}
}

// with returns the values together with overrides and the builtin variables.
func (v values) with(override values, builtins runtimehooksv1.Builtins) (values, error) {
	raw, err := json.Marshal(builtins)
	if err != nil {
		return nil, fmt.Errorf("reading the builtin variables: %w", err)
	}
	builtin, err := decode(raw)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(v)
	maps.Copy(all, override)
	all[runtimehooksv1.BuiltinsName] = builtin
	return all, nil
}
