// SPDX-License-Identifier: Apache-2.0

// Package adoption compares clusters that CAPVCD created, as recorded in a management cluster, with the objects in VCD
// that carry their IDs. It applies the rules by which the manager adopts the objects, and changes nothing.
package adoption

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/leaks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A Cluster is a VCDCluster that CAPVCD created.
type Cluster struct {
	Management string // name of its management cluster
	Namespace  string
	Name       string
	Site       string // address of VCD; empty: unknown
	Org        string // empty: unknown
	ID         string // ID that its objects in VCD carry
	OneArm     bool
	WasReady   bool // CAPVCD reported it as ready
	Machines   []Machine
}

// In reports whether the cluster is in an organization of a site.
func (c Cluster) In(site, org string) bool {
	return (c.Site == "" || sites.Same(c.Site, site)) && (c.Org == "" || strings.EqualFold(c.Org, org))
}

// String names the cluster and its management cluster.
func (c Cluster) String() string {
	name := c.Namespace + "/" + c.Name
	if c.Management == "" {
		return name
	}
	return name + " in management cluster " + c.Management
}

// is reports whether two values are the same VCDCluster.
func (c Cluster) is(other Cluster) bool {
	return c.Management == other.Management && c.Namespace == other.Namespace && c.Name == other.Name
}

// A Machine is a VCDMachine of such a cluster.
type Machine struct {
	Name   string
	VMName string // name that CAPVCD gave the VM; empty: unknown
	VM     string // URN; empty: not recorded by CAPVCD
}

// State is the expected result for an object.
type State string

// States.
const (
	// Adopt means that this provider takes over the object unchanged.
	Adopt State = "adopt"
	// Recreate means that a VM never ran, so it is deleted and created again.
	Recreate State = "recreate"
	// Create means that the object is missing and will be created.
	Create State = "create"
	// Doubt means that the object does not provably belong to the cluster, so it is neither changed nor deleted.
	Doubt State = "unverified"
)

// A Row is the expected result for one object.
type Row struct {
	Cluster string `json:"cluster"` // namespace and name
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	ID      string `json:"id,omitempty"`
	State   State  `json:"state"`
	Why     string `json:"why,omitempty"`
}

// Compare returns the expected results for all objects of a cluster. others are all clusters of the management
// clusters.
func Compare(c Cluster, others []Cluster, objects []leaks.Object) []Row {
	report := &report{
		cluster: c,
		objects: slices.DeleteFunc(slices.Clone(objects), func(o leaks.Object) bool { return o.Cluster != c.ID }),
	}
	report.copies(others)
	report.vApps()
	report.machines()
	report.unknownVMs()
	report.endpoint()
	return report.rows
}

// A report collects the rows of a cluster.
type report struct {
	cluster Cluster
	objects []leaks.Object // objects of the cluster in VCD
	rows    []Row
}

func (r *report) add(kind, name, id string, state State, why string, args ...any) {
	r.rows = append(r.rows, Row{
		Cluster: r.cluster.Namespace + "/" + r.cluster.Name,
		Kind:    kind,
		Name:    name,
		ID:      id,
		State:   state,
		Why:     fmt.Sprintf(why, args...),
	})
}

// copies reports other VCDClusters with the ID of the cluster.
func (r *report) copies(others []Cluster) {
	for _, other := range others {
		if other.ID == r.cluster.ID && !other.is(r.cluster) {
			r.add("VCDCluster", r.cluster.Name, r.cluster.ID, Doubt, "VCDCluster %s has the same ID: remove the copy", other)
		}
	}
}

func (r *report) vApps() {
	found := false
	for _, o := range r.of(leaks.KindVApp) {
		found = true
		if o.Name == r.cluster.Name {
			r.add(o.Kind, o.Name, o.ID, Adopt, "")
		} else {
			r.add(o.Kind, o.Name, o.ID, Doubt, "CAPVCD created it as %s: restore this name", r.cluster.Name)
		}
	}
	switch {
	case found:
	case r.cluster.WasReady:
		r.add(leaks.KindVApp, r.cluster.Name, "", Doubt, "no vApp has metadata %s=%s: correct the metadata of the cluster's vApp",
			capvcd.MetadataKey, r.cluster.ID)
	default:
		r.add(leaks.KindVApp, r.cluster.Name, "", Create, "")
	}
}

func (r *report) machines() {
	for _, m := range r.cluster.Machines {
		if m.VM != "" {
			r.recorded(m)
		} else {
			r.unrecorded(m)
		}
	}
}

// recorded reports the VM whose URN CAPVCD has recorded.
func (r *report) recorded(m Machine) {
	vms := r.of(leaks.KindVM)
	at := slices.IndexFunc(vms, func(o leaks.Object) bool { return o.ID == m.VM })
	switch {
	case at < 0:
		r.add(leaks.KindVM, m.Name, m.VM, Doubt, "the VM is in no vApp of the cluster: search for it in VCD, or delete the Machine")
	case m.VMName == "":
		r.add(leaks.KindVM, vms[at].Name, m.VM, Doubt, "cannot derive the name of the VM of VCDMachine %s from spec.vmNamingTemplate", m.Name)
	case vms[at].Name != m.VMName:
		r.add(leaks.KindVM, vms[at].Name, m.VM, Doubt, "the VM of VCDMachine %s should have the name %s: rename it in VCD",
			m.Name, m.VMName)
	default:
		r.add(leaks.KindVM, vms[at].Name, m.VM, Adopt, "")
	}
}

// unrecorded reports the VM that CAPVCD may have created without recording its URN.
func (r *report) unrecorded(m Machine) {
	vms := r.of(leaks.KindVM)
	at := slices.IndexFunc(vms, func(o leaks.Object) bool { return o.Name == m.VMName && m.VMName != "" })
	switch {
	case at < 0:
		r.add(leaks.KindVM, m.Name, "", Create, "")
	case vms[at].Power == vcd.StatusPoweredOff.String():
		r.add(leaks.KindVM, vms[at].Name, vms[at].ID, Recreate, "CAPVCD did not start it")
	default:
		r.add(leaks.KindVM, vms[at].Name, vms[at].ID, Adopt, "")
	}
}

// unknownVMs reports VMs in vApps of the cluster that belong to no VCDMachine.
func (r *report) unknownVMs() {
	for _, o := range r.of(leaks.KindVM) {
		isKnown := slices.ContainsFunc(r.cluster.Machines, func(m Machine) bool {
			return m.VM == o.ID || m.VM == "" && m.VMName == o.Name
		})
		if !isKnown {
			r.add(o.Kind, o.Name, o.ID, Doubt, "no VCDMachine refers to it, and it blocks the deletion of its vApp: delete it, or move it to another vApp")
		}
	}
}

// endpoint reports the load balancer objects of the control plane endpoint and the entity of the cluster.
func (r *report) endpoint() {
	kinds := []string{string(lb.KindService), string(lb.KindPool)}
	if r.cluster.OneArm {
		kinds = append(kinds, string(lb.KindRule), string(lb.KindProfile))
	}
	for _, kind := range kinds {
		if len(r.ofCAPVCD(kind)) == 0 {
			r.add(kind, r.cluster.Name, "", Create, "")
		}
	}
	for _, kind := range append(kinds, string(lb.KindAddress), leaks.KindEntity) {
		for _, o := range r.ofCAPVCD(kind) {
			r.add(o.Kind, o.Name, o.ID, Adopt, "")
		}
	}
}

func (r *report) of(kind string) []leaks.Object {
	return slices.DeleteFunc(slices.Clone(r.objects), func(o leaks.Object) bool { return o.Kind != kind })
}

// ofCAPVCD returns the objects of a kind that were not created by a cloud controller manager.
func (r *report) ofCAPVCD(kind string) []leaks.Object {
	return slices.DeleteFunc(r.of(kind), func(o leaks.Object) bool { return o.By == lb.WriterCPI })
}
