// SPDX-License-Identifier: Apache-2.0

// Package topology resolves a Cluster with a topology as Cluster API's topology controller does for a new cluster: from
// the ClusterClass, its templates and the variables of the Cluster it makes the concrete objects. It talks to no API.
//
// It does not call runtime extensions, evaluate CEL rules of variables, or make MachineHealthChecks. Machine pools are
// an error, because this provider has none.
package topology

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// An Input is what a topology is resolved from.
type Input struct {
	Cluster   *clusterv1.Cluster
	Class     *clusterv1.ClusterClass
	Templates []*unstructured.Unstructured // those that [Templates] returns, in any order
}

// A Result is what becomes of a topology.
type Result struct {
	// Objects are the infrastructure cluster, the control plane, the MachineDeployments and the templates of their
	// machines, without owners. [Random] stands for what Cluster API appends to names.
	Objects []*unstructured.Unstructured

	// External are the names of the patches by runtime extensions, which are not applied.
	External []string
}

// Resolve returns what Cluster API makes of the topology of a Cluster that is new.
func Resolve(in Input) (Result, error) {
	cluster := in.Cluster.DeepCopy()
	cluster.Spec.Topology.Version = withPrefix(cluster.Spec.Topology.Version)
	values, err := resolveVariables(cluster.Spec.Topology, in.Class)
	if err != nil {
		return Result{}, fmt.Errorf("reading the variables of Cluster %s: %w", cluster.Name, err)
	}
	b, err := newBlueprint(cluster, in, values)
	if err != nil {
		return Result{}, fmt.Errorf("applying ClusterClass %s: %w", in.Class.Name, err)
	}
	external, err := applyPatches(in.Class.Spec.Patches, b.parts())
	if err != nil {
		return Result{}, fmt.Errorf("applying ClusterClass %s: %w", in.Class.Name, err)
	}
	objects, err := b.objects()
	if err != nil {
		return Result{}, fmt.Errorf("applying ClusterClass %s: %w", in.Class.Name, err)
	}
	return Result{Objects: objects, External: external}, nil
}

// withPrefix returns a version of Kubernetes with its v, which users may omit.
func withPrefix(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// Templates returns the references of a class to templates, each once.
func Templates(class *clusterv1.ClusterClass) []clusterv1.ClusterClassTemplateReference {
	spec := class.Spec
	refs := []clusterv1.ClusterClassTemplateReference{
		spec.Infrastructure.TemplateRef,
		spec.ControlPlane.TemplateRef,
		spec.ControlPlane.MachineInfrastructure.TemplateRef,
	}
	for _, workers := range spec.Workers.MachineDeployments {
		refs = append(refs, workers.Bootstrap.TemplateRef, workers.Infrastructure.TemplateRef)
	}
	for _, workers := range spec.Workers.MachinePools {
		refs = append(refs, workers.Bootstrap.TemplateRef, workers.Infrastructure.TemplateRef)
	}
	var all []clusterv1.ClusterClassTemplateReference
	seen := map[clusterv1.ClusterClassTemplateReference]bool{}
	for _, ref := range refs {
		if ref.IsDefined() && !seen[ref] {
			all = append(all, ref)
		}
		seen[ref] = true
	}
	return all
}
