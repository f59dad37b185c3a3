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

// Sources are where a plan is read from.
type Sources struct {
	Manifests []io.Reader

	// Lookup reads what the manifests lack of a ClusterClass; nil: nothing does.
	Lookup Lookup
}

// ReadPlan reads the plan from manifests with a VCDCluster, VCDMachineTemplates and what makes machines from them, or
// with a Cluster that has a topology. What contradicts itself is reported by [Run].
func ReadPlan(ctx context.Context, from Sources) (Plan, error) {
	m := newManifest()
	for _, reader := range from.Manifests {
		if err := m.read(reader); err != nil {
			return Plan{}, err
		}
	}
	forgetClassTemplates(m.classes, m.makers, m.templates)
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
	return plan, err
}

// planOf makes a plan of what a manifest holds.
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
	machines, unmade := machinesOf(m.makers, m.templates)
	others, unshared := othersOf(m)
	selected, err := selectZones(m.cluster, m.zones, m.domains)
	if err != nil {
		return Plan{}, err
	}
	plan.Machines = machines
	plan.Others = others
	plan.zones = selected.usable
	plan.apart = selected.apart
	plan.refused = selected.refused
	plan.planes = selected.planes
	plan.plainPods, plan.plainPodsRemedy = podsWithoutProxy(m.cluster, m.makers)
	plan.problems = slices.Concat(m.problems, unmade, controlPlaneProblems(m.makers), unshared, selected.problems,
		domainProblems(machines, selected.names))
	return plan, nil
}

// machinesOf returns the machines that makers make of templates, and those of templates that none uses, with what keeps
// further ones from being made.
func machinesOf(makers []maker, templates map[string]infrav1.VCDMachineSpec) (all []Machines, problems []string) {
	used := map[string]bool{}
	for _, maker := range makers {
		spec, ok := templates[maker.template]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s uses VCDMachineTemplate %q, which is not in the manifest",
				maker.name, maker.template))
			continue
		}
		used[maker.template] = true
		all = append(all, Machines{
			Name:          maker.template,
			Count:         maker.count,
			Spec:          spec,
			failureDomain: maker.failureDomain,
			controlPlane:  maker.controlPlane,
			version:       maker.version,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		if !used[name] {
			all = append(all, Machines{Name: name, Spec: templates[name]})
		}
	}
	return all, problems
}

// controlPlaneProblems reports control planes that Cluster API or etcd refuse.
func controlPlaneProblems(makers []maker) []string {
	var names []string
	var problems []string
	for _, maker := range makers {
		if !maker.controlPlane {
			continue
		}
		names = append(names, maker.name)
		if maker.count%2 == 0 && maker.count > 0 {
			problems = append(problems, fmt.Sprintf("%s has %d replicas, but etcd on control planes requires an "+
				"odd number",
				maker.name, maker.count))
		}
	}
	if len(names) > 1 {
		problems = append(problems, "a cluster has one control plane, but the manifest contains "+
			strings.Join(names, " and "))
	}
	return problems
}

// domainProblems reports machines in failure domains that are none of the zones of the cluster, given by name. A cluster
// without any has its zones elsewhere.
func domainProblems(all []Machines, zones []string) []string {
	var problems []string
	for _, machines := range all {
		if at := machines.failureDomain; at != "" && len(zones) > 0 && !slices.Contains(zones, at) {
			problems = append(problems, fmt.Sprintf("machines of VCDMachineTemplate %s have failure domain %q, "+
				"which is not a zone that the VCDCluster selects", machines.Name, at))
		}
	}
	return problems
}
