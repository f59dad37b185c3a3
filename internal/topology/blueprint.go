// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"errors"
	"fmt"
	"maps"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// A blueprint holds the inputs from which the objects of a cluster are created.
type blueprint struct {
	cluster *clusterv1.Cluster
	class   *clusterv1.ClusterClass

	infrastructure      *part
	controlPlane        *part
	controlPlaneMachine *part // nil: the class does not define it
	workers             []*workers

	machineMetadata clusterv1.ObjectMeta // metadata of control-plane machines
}

// workers are the machines of a MachineDeployment.
type workers struct {
	topology clusterv1.MachineDeploymentTopology
	class    clusterv1.MachineDeploymentClass

	name           string // name of the MachineDeployment
	labels         map[string]string
	annotations    map[string]string
	bootstrap      *part
	infrastructure *part
}

// newBlueprint copies the templates that a cluster needs and computes the variables for each.
func newBlueprint(c *clusterv1.Cluster, in Input, all variables) (*blueprint, error) {
	if len(c.Spec.Topology.Workers.MachinePools) > 0 {
		return nil, errors.New("the topology has machine pools, which are not supported: use machineDeployments")
	}
	b := &blueprint{cluster: c, class: in.Class}
	from := source(in.Templates)
	if err := b.addCluster(from); err != nil {
		return nil, err
	}
	if err := b.addControlPlane(from); err != nil {
		return nil, err
	}
	for _, topology := range c.Spec.Topology.Workers.MachineDeployments {
		if err := b.addWorkers(from, topology); err != nil {
			return nil, fmt.Errorf("machineDeployment %s: %w", topology.Name, err)
		}
	}
	return b, b.setValues(all)
}

func (b *blueprint) addCluster(from source) error {
	class := b.class.Spec.Infrastructure
	name, err := nameByTemplate(class.Naming.Template, clusterNaming, b.cluster.Name, "")
	if err != nil {
		return err
	}
	b.infrastructure, err = from.object(class.TemplateRef, part{
		role:   roleInfrastructureCluster,
		name:   name,
		labels: b.ownLabels(),
	})
	return err
}

func (b *blueprint) addControlPlane(from source) error {
	class := b.class.Spec.ControlPlane
	metadata := b.cluster.Spec.Topology.ControlPlane.Metadata
	name, err := nameByTemplate(class.Naming.Template, clusterNaming, b.cluster.Name, "")
	if err != nil {
		return err
	}
	b.controlPlane, err = from.object(class.TemplateRef, part{
		role:        roleControlPlane,
		name:        name,
		labels:      merged(class.Metadata.Labels, metadata.Labels, b.ownLabels()),
		annotations: merged(class.Metadata.Annotations, metadata.Annotations),
	})
	if err != nil || !class.MachineInfrastructure.TemplateRef.IsDefined() {
		return err
	}
	given, err := metadataAt(b.controlPlane.object, "spec", "template", "spec", "machineTemplate", "metadata")
	if err != nil {
		return err
	}
	b.machineMetadata.Labels = merged(given.Labels, b.controlPlane.labels)
	b.machineMetadata.Annotations = merged(given.Annotations, class.Metadata.Annotations, metadata.Annotations)
	b.controlPlaneMachine, err = from.template(class.MachineInfrastructure.TemplateRef, part{
		role:   roleControlPlane,
		name:   nameOfTemplate(b.cluster.Name),
		labels: b.ownLabels(),
	})
	return err
}

func (b *blueprint) addWorkers(from source, topology clusterv1.MachineDeploymentTopology) error {
	class, err := b.workersClass(topology.Class)
	if err != nil {
		return err
	}
	own := b.ownLabels()
	own[clusterv1.ClusterTopologyMachineDeploymentNameLabel] = topology.Name
	w := &workers{
		topology:    topology,
		class:       class,
		labels:      merged(class.Metadata.Labels, topology.Metadata.Labels, own),
		annotations: merged(class.Metadata.Annotations, topology.Metadata.Annotations),
	}
	delete(w.annotations, clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation)
	delete(w.annotations, clusterv1.ClusterTopologyDeferUpgradeAnnotation)
	if w.name, err = nameByTemplate(class.Naming.Template, workersNaming, b.cluster.Name, topology.Name); err != nil {
		return err
	}
	common := part{
		role:   roleMachineDeployment,
		class:  topology.Class,
		name:   nameOfTemplate(b.cluster.Name + "-" + topology.Name),
		labels: own,
	}
	if w.bootstrap, err = from.template(class.Bootstrap.TemplateRef, common); err != nil {
		return err
	}
	if w.infrastructure, err = from.template(class.Infrastructure.TemplateRef, common); err != nil {
		return err
	}
	b.workers = append(b.workers, w)
	return nil
}

func (b *blueprint) workersClass(name string) (clusterv1.MachineDeploymentClass, error) {
	for _, class := range b.class.Spec.Workers.MachineDeployments {
		if class.Class == name {
			return class, nil
		}
	}
	return clusterv1.MachineDeploymentClass{}, fmt.Errorf("the ClusterClass has no machineDeployment class %q", name)
}

// ownLabels returns the labels that all objects of the topology have.
func (b *blueprint) ownLabels() map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel:          b.cluster.Name,
		clusterv1.ClusterTopologyOwnedLabel: "",
	}
}

// setValues computes the variables of each part.
func (b *blueprint) setValues(all variables) error {
	builtins := runtimehooksv1.Builtins{Cluster: b.clusterBuiltins()}
	if err := b.infrastructure.setValues(all.global, nil, builtins); err != nil {
		return err
	}
	ofControlPlane := builtins
	ofControlPlane.ControlPlane = b.controlPlaneBuiltins()
	if err := b.controlPlane.setValues(all.global, all.controlPlane, ofControlPlane); err != nil {
		return err
	}
	if b.controlPlaneMachine != nil {
		b.controlPlaneMachine.values = b.controlPlane.values
	}
	for _, w := range b.workers {
		ofWorkers := builtins
		ofWorkers.MachineDeployment = w.builtins(b.cluster.Spec.Topology.Version)
		if err := w.bootstrap.setValues(all.global, all.workers[w.topology.Name], ofWorkers); err != nil {
			return err
		}
		w.infrastructure.values = w.bootstrap.values
	}
	return nil
}

// parts returns all parts that patches may change.
func (b *blueprint) parts() []*part {
	all := []*part{b.infrastructure, b.controlPlane}
	if b.controlPlaneMachine != nil {
		all = append(all, b.controlPlaneMachine)
	}
	for _, w := range b.workers {
		all = append(all, w.bootstrap, w.infrastructure)
	}
	return all
}

// merged merges maps. Later maps take precedence.
func merged(all ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, one := range all {
		maps.Copy(result, one)
	}
	return result
}
