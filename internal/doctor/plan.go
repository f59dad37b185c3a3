// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// A Plan is what is to be checked: a cluster and its machines.
type Plan struct {
	Cluster  *infrav1.VCDCluster // nil: no certain cluster
	Name     string              // of the Cluster
	VDC      string              // empty: the only one there is
	Networks []string            // beside those of machines and of the cluster
	Machines []Machines

	// Identity and Secret are what the manifest has to log in with; nil: it has none.
	Identity *infrav1.VCDIdentity
	Secret   *corev1.Secret

	// Others are the identities of the manifest beside that of the cluster, and Logins how to log in as them. [ReadPlan]
	// finds the former; the caller adds the latter.
	Others []Other
	Logins []Login

	zones   []placement.Zone  // that the cluster selects, with its own identity
	apart   []string          // names of those that have another identity
	refused []*checks.Finding // why the cluster cannot use other zones
	planes  int64             // zones that take control planes
	zone    *placement.Zone   // that this part of a plan is for; nil: the VDC of the cluster

	problems []string // of the manifest
	external []string // patches of the ClusterClass that only runtime extensions apply

	plainPods       string // why pods get no proxy; empty: they get one, or none is planned
	plainPodsRemedy string
}

// Machines are some that are alike.
type Machines struct {
	Name  string // of their VCDMachineTemplate
	Count int64
	Spec  infrav1.VCDMachineSpec

	failureDomain string // of all of them; empty: none, or that which Cluster API chooses
	controlPlane  bool
	version       string // of Kubernetes; empty: not known
}

// image is the key of the template of machines, and its name in messages.
func (m Machines) image() string {
	if selector := m.Spec.TemplateSelector; selector != nil {
		query := checks.TemplateQuery(selector, m.Spec.Catalog, m.version)
		return m.Spec.Catalog + "/" + query.String()
	}
	return m.Spec.Catalog + "/" + m.Spec.Template
}

// nics returns the NICs of the machines, with the network of each.
func (p Plan) nics(m Machines) []infrav1.NetworkSpec {
	wished := m.Spec.Networks
	if len(wished) == 0 {
		wished = []infrav1.NetworkSpec{{}}
	}
	nics := make([]infrav1.NetworkSpec, 0, len(wished))
	for _, nic := range wished {
		if nic.Name == "" && p.Cluster != nil {
			nic.Name = p.Cluster.Spec.OVDCNetwork
		}
		nic.AddressSource = cmp.Or(nic.AddressSource, infrav1.AddressStaticPool)
		nics = append(nics, nic)
	}
	return nics
}

// networkNames returns the networks of the plan, each once.
func (p Plan) networkNames() []string {
	var names []string
	seen := map[string]bool{"": true}
	add := func(name string) {
		if !seen[name] {
			names = append(names, name)
		}
		seen[name] = true
	}
	if p.Cluster != nil {
		add(p.Cluster.Spec.OVDCNetwork)
	}
	for _, m := range p.Machines {
		for _, nic := range p.nics(m) {
			add(nic.Name)
		}
	}
	for _, name := range p.Networks {
		add(name)
	}
	return names
}

// spread reports whether the cluster of the plan has zones, and no VDC was chosen.
func (p Plan) spread() bool {
	return p.VDC == "" && p.Cluster != nil && p.Cluster.Spec.FailureDomainSelector != nil
}

// vdcField names what says which VDC is meant.
func (p Plan) vdcField() string {
	if p.zone != nil {
		return "spec.ovdc of VCDFailureDomain " + p.zone.Domain.Name
	}
	return "spec.ovdc of the VCDCluster"
}

// vAppName returns the name of the first vApp in the VDC of the plan.
func (p Plan) vAppName() string {
	name := cmp.Or(p.Cluster.Spec.VApp.Name, p.Name)
	if p.zone != nil && p.Cluster.Spec.VApp.Layout != infrav1.VAppPerCluster {
		return name + "-" + p.zone.Name
	}
	return name
}

// InVDC returns the plan for one VDC: of the zones in it, if there are such.
func (p Plan) InVDC(name string) Plan {
	var zones []placement.Zone
	for _, z := range p.zones {
		if z.Domain.Spec.OVDC == name {
			zones = append(zones, z)
		}
	}
	p.VDC = name
	if len(zones) > 0 {
		p.VDC = ""
	}
	p.zones = zones
	p.apart = nil
	p.refused = nil
	return p
}
