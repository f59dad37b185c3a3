// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// Sources are the inputs of a plan.
type Sources struct {
	Manifests []io.Reader

	// Lookup reads the parts of a ClusterClass that the manifests lack. If it is nil, the manifests must be complete.
	Lookup Lookup

	// List finds out whether the network plug-in of the cluster will be installed. If it is nil, it is unknown.
	List List
}

// ReadPlan reads a plan from manifests. They contain either a VCDCluster, its VCDMachineTemplates and the objects that
// create machines from them, or a Cluster that has a topology. [Run] reports contradictions in them.
func ReadPlan(ctx context.Context, from Sources) (Plan, error) {
	m := newManifest()
	for _, reader := range from.Manifests {
		if err := m.read(reader); err != nil {
			return Plan{}, err
		}
	}
	dropClassTemplates(m.classes, m.groups, m.templates)
	var external []string
	if m.cluster == nil && m.topology != nil {
		resolved, err := resolveTopology(ctx, m.topology, classSource{
			classes: m.classes,
			objects: m.objects,
			lookUp:  from.Lookup,
		})
		if err != nil {
			return Plan{}, err
		}
		external = resolved.External
		m.clusterName = m.topology.Name
		for _, object := range resolved.Objects {
			if err := m.add(object); err != nil {
				return Plan{}, err
			}
		}
	}
	if m.cluster == nil {
		return Plan{}, errors.New("the manifest contains no VCDCluster")
	}
	plan, err := planOf(m)
	plan.external = external
	plan.missingNetworkPlugin = missingNetworkPlugin(ctx, m.objects, from.List)
	return plan, err
}

// planOf returns the plan of a manifest.
func planOf(m *manifest) (Plan, error) {
	plan := Plan{
		Cluster: m.cluster,
		Name:    cmp.Or(m.clusterName, m.cluster.Name),
		VDC:     strings.TrimSpace(m.cluster.Spec.OVDC),
	}
	if identity := m.identities[m.cluster.Spec.IdentityRef.Name]; identity != nil {
		plan.Identity = identity
		plan.Secret = m.secrets[identity.Spec.SecretRef.Name]
	}
	machines, machineProblems := machinesOf(m.groups, m.templates)
	others, identityProblems := othersOf(m)
	selected, err := selectZones(m.cluster, m.zones, m.domains)
	if err != nil {
		return Plan{}, err
	}
	plan.Machines = machines
	plan.Others = others
	plan.zones = selected.usable
	plan.otherIdentity = selected.otherIdentity
	plan.refused = selected.refused
	plan.controlPlaneZones = selected.controlPlaneZones
	plan.plainPods, plan.plainPodsRemedy = podsWithoutProxy(m.cluster, m.groups)
	plan.problems = slices.Concat(m.problems, machineProblems, controlPlaneProblems(m.groups), identityProblems, selected.problems,
		domainProblems(machines, selected.names), unplaced(m.cluster, machines, selected))
	return plan, nil
}

// machinesOf returns the machines of each group, and machines with count 0 for templates that no group uses. It reports
// groups whose template is missing as problems.
func machinesOf(groups []machineGroup, templates map[string]infrav1.VCDMachineSpec) (all []Machines, problems []string) {
	used := map[string]bool{}
	for _, group := range groups {
		spec, ok := templates[group.template]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s uses VCDMachineTemplate %q, which is not in the manifest",
				group.name, group.template))
			continue
		}
		used[group.template] = true
		all = append(all, Machines{
			Name:          group.template,
			Count:         group.count,
			Spec:          spec,
			failureDomain: group.failureDomain,
			controlPlane:  group.controlPlane,
			version:       group.version,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		if !used[name] {
			all = append(all, Machines{Name: name, Spec: templates[name]})
		}
	}
	return all, problems
}

// controlPlaneProblems reports control planes that Cluster API or etcd would reject.
func controlPlaneProblems(groups []machineGroup) []string {
	var names []string
	var problems []string
	for _, group := range groups {
		if !group.controlPlane {
			continue
		}
		names = append(names, group.name)
		if group.count%2 == 0 && group.count > 0 {
			problems = append(problems, fmt.Sprintf("%s has %d replicas, but etcd on control planes requires an odd number",
				group.name, group.count))
		}
	}
	if len(names) > 1 {
		problems = append(problems, "a cluster has one control plane, but the manifest contains "+
			strings.Join(names, " and "))
	}
	return problems
}

// domainProblems reports machines in failure domains that are not among the cluster's zones, given by name. It reports
// nothing if the manifest contains no zones, because they may exist elsewhere.
func domainProblems(all []Machines, zones []string) []string {
	var problems []string
	for _, machines := range all {
		if at := machines.failureDomain; at != "" && len(zones) > 0 && !slices.Contains(zones, at) {
			problems = append(problems, fmt.Sprintf("machines of VCDMachineTemplate %s have failure domain %q, which is not a zone that the VCDCluster selects", machines.Name, at))
		}
	}
	return problems
}

// unplaced reports machines that no VDC accepts: workers without a failure domain if the VCDCluster has no VDC of its own,
// and control planes that none of the zones accepts.
func unplaced(c *infrav1.VCDCluster, all []Machines, selected selection) []string {
	if c.Spec.FailureDomainSelector == nil || len(selected.names) == 0 {
		return nil
	}
	var problems []string
	for _, machines := range all {
		switch {
		case machines.Count == 0:
		case machines.controlPlane && selected.controlPlaneZones == 0:
			problems = append(problems, fmt.Sprintf("control planes of VCDMachineTemplate %s cannot be placed: no zone has controlPlane true", machines.Name))
		case !machines.controlPlane && machines.failureDomain == "" && c.Spec.OVDC == "":
			problems = append(problems, fmt.Sprintf("machines of VCDMachineTemplate %s cannot be placed: set their failureDomain to a zone, or spec.ovdc of the VCDCluster", machines.Name))
		}
	}
	return problems
}
