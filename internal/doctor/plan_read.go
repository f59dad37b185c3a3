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

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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
	m := manifest{
		lookUp:     from.Lookup,
		classes:    map[string]*clusterv1.ClusterClass{},
		templates:  map[string]infrav1.VCDMachineSpec{},
		identities: map[string]*infrav1.VCDIdentity{},
		secrets:    map[string]*corev1.Secret{},
		domains:    map[string]*infrav1.VCDFailureDomain{},
	}
	for _, manifest := range from.Manifests {
		if err := m.read(manifest); err != nil {
			return Plan{}, err
		}
	}
	m.forgetClassTemplates()
	if m.plan.Cluster == nil && m.topology != nil {
		if err := m.addTopology(ctx); err != nil {
			return Plan{}, err
		}
	}
	if m.plan.Cluster == nil {
		return Plan{}, errors.New("the manifest has no VCDCluster")
	}
	return m.plan, m.resolve()
}

// resolve finds the template of each maker, and the zones of the cluster.
func (m *manifest) resolve() error {
	used := map[string]bool{}
	for _, maker := range m.makers {
		spec, ok := m.templates[maker.template]
		if !ok {
			m.problem("%s is made from VCDMachineTemplate %q, which the manifest has not", maker.name, maker.template)
			continue
		}
		used[maker.template] = true
		m.plan.Machines = append(m.plan.Machines, Machines{
			Name:          maker.template,
			Count:         maker.count,
			Spec:          spec,
			failureDomain: maker.failureDomain,
			controlPlane:  maker.controlPlane,
			version:       maker.version,
		})
	}
	m.checkControlPlanes()
	for _, name := range slices.Sorted(maps.Keys(m.templates)) {
		if !used[name] {
			m.plan.Machines = append(m.plan.Machines, Machines{Name: name, Spec: m.templates[name]})
		}
	}
	m.plan.Name = cmp.Or(m.plan.Name, m.plan.Cluster.Name)
	if identity := m.identities[m.plan.Cluster.Spec.IdentityRef.Name]; identity != nil {
		m.plan.Identity = identity
		m.plan.Secret = m.secrets[identity.Spec.SecretRef.Name]
	}
	m.plan.VDC = strings.TrimSpace(m.plan.Cluster.Spec.OVDC)
	m.addOthers()
	return m.selectZones()
}

// checkControlPlanes reports control planes that Cluster API or etcd refuse.
func (m *manifest) checkControlPlanes() {
	var names []string
	for _, maker := range m.makers {
		if !maker.controlPlane {
			continue
		}
		names = append(names, maker.name)
		if maker.count%2 == 0 && maker.count > 0 {
			m.problem("%s has %d replicas: etcd on control planes needs an odd number", maker.name, maker.count)
		}
	}
	if len(names) > 1 {
		m.problem("a cluster has one control plane, and the manifest has %s", strings.Join(names, " and "))
	}
}

func (m *manifest) problem(format string, args ...any) {
	m.plan.problems = append(m.plan.problems, fmt.Sprintf(format, args...))
}
