// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// A Plan is the subject of the checks: a cluster and its machines.
type Plan struct {
	Cluster  *infrav1.VCDCluster // nil: the plan is not for a specific cluster
	Name     string              // name of the Cluster
	VDC      string              // empty: the only VDC that is visible to the user
	Networks []string            // in addition to those of the machines and the cluster
	Machines []Machines

	// Identity and Secret are the credentials of the cluster in the manifest. They are nil if the manifest does not
	// contain them.
	Identity *infrav1.VCDIdentity
	Secret   *corev1.Secret

	// Others are the identities of the manifest other than the cluster's, and Logins are the ways to log in with them.
	// [ReadPlan] sets Others; the caller sets Logins.
	Others []Other
	Logins []Login

	zones             []placement.Zone  // zones that the cluster selects and that use its identity
	otherIdentity     []string          // names of selected zones with another identity
	refused           []*checks.Finding // why the cluster cannot use other zones
	controlPlaneZones int64             // number of zones for control planes
	zone              *placement.Zone   // zone of this part of the plan; nil: the VDC of the cluster

	problems []string // problems of the manifest
	external []string // patches of the ClusterClass that require a runtime extension

	plainPods       string // reason why pods get no proxy settings; empty if they get them or no proxy is planned
	plainPodsRemedy string

	missingNetworkPlugin string // the network plug-in that the Cluster selects, if it will not be installed
}

// Machines are a number of identical machines.
type Machines struct {
	Name  string // name of their VCDMachineTemplate
	Count int64
	Spec  infrav1.VCDMachineSpec

	failureDomain string // empty: none, or chosen by Cluster API
	controlPlane  bool
	version       string // Kubernetes version; empty: unknown
}

// image returns the key of the machines' template, which is also its name in messages.
func (m Machines) image() string {
	if selector := m.Spec.TemplateSelector; selector != nil {
		query := checks.TemplateQuery(selector, m.Spec.Catalog, m.version)
		return m.Spec.Catalog + "/" + query.String()
	}
	return m.Spec.Catalog + "/" + m.Spec.Template
}

// nics returns the NICs of the machines, with defaults for network and address source.
func (p Plan) nics(m Machines) []infrav1.NetworkSpec {
	requested := m.Spec.Networks
	if len(requested) == 0 {
		requested = []infrav1.NetworkSpec{{}}
	}
	nics := make([]infrav1.NetworkSpec, 0, len(requested))
	for _, nic := range requested {
		if nic.Name == "" && p.Cluster != nil {
			nic.Name = p.Cluster.Spec.OVDCNetwork
		}
		nic.AddressSource = cmp.Or(nic.AddressSource, infrav1.AddressStaticPool)
		nics = append(nics, nic)
	}
	return nics
}

// networkNames returns the names of the networks of the plan, without duplicates.
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

// spread reports whether the cluster of the plan has zones and no VDC is set.
func (p Plan) spread() bool {
	return p.VDC == "" && p.Cluster != nil && p.Cluster.Spec.FailureDomainSelector != nil
}

// vdcField names the field that determines the VDC, for messages.
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

// InVDC returns the part of the plan for one VDC. If zones of the plan use the VDC, it is the plan of these zones.
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
	p.otherIdentity = nil
	p.refused = nil
	return p
}
