// SPDX-License-Identifier: Apache-2.0

// Package topology resolves a Cluster with a topology as Cluster API's topology controller does for a new cluster. It
// computes the objects from the ClusterClass, its templates and the variables of the Cluster. It uses no API.
//
// It does not call runtime extensions, evaluate CEL rules of variables, or create MachineHealthChecks. It rejects
// machine pools, because this provider does not support them.
package topology

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// An Input holds the objects from which a topology is resolved.
type Input struct {
	Cluster   *clusterv1.Cluster
	Class     *clusterv1.ClusterClass
	Templates []*unstructured.Unstructured // the templates that [Templates] returns, in any order
}

// A Result holds the objects of a resolved topology.
type Result struct {
	// Objects are the infrastructure cluster, the control plane, the MachineDeployments and the templates of their
	// machines, without owner references. [Random] replaces the random suffix of names.
	Objects []*unstructured.Unstructured

	// External are the names of patches that require a runtime extension and are not applied.
	External []string
}

// Resolve returns the objects that Cluster API would create for the topology of a new Cluster.
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

// withPrefix returns a Kubernetes version with the prefix v, which users may omit.
func withPrefix(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// Templates returns the template references of a class, without duplicates.
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
