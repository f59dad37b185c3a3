// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
)

// vAppRecords are what annotations of a VCDCluster record of its vApps in one VDC.
type vAppRecords struct {
	vcdCluster  *infrav1.VCDCluster
	clusterName string
	zone        string // empty: the VDC of the cluster
}

// ids are the URNs of vApps that VMs of the cluster were in.
func (r vAppRecords) ids() []string {
	if r.zone == "" {
		return notes.VApps(r.vcdCluster)
	}
	return r.inZone().IDs
}

// inZone returns what is recorded of the zone.
func (r vAppRecords) inZone() vapp.Home { return vapp.HomeIn(r.vcdCluster, r.clusterName, r.zone) }

// count is how many vApps VCD was asked to create VMs in, or 1 if it may not have been asked.
func (r vAppRecords) count() int {
	if r.zone == "" {
		return vapp.Number(r.vcdCluster.Annotations[infrav1.VAppCreatedAnnotation])
	}
	return r.inZone().Count
}

// created reports whether it is recorded that VCD was asked to create VMs in a vApp. CAPVCD recorded nothing, and created
// the vApp of each cluster that it gave an id.
func (r vAppRecords) created() bool {
	if r.zone == "" {
		return r.vcdCluster.Annotations[infrav1.VAppCreatedAnnotation] != "" || ownership.ByCAPVCD(r.vcdCluster)
	}
	return r.inZone().Count > 0
}

// gone are the URNs of the vApps that our own tasks deleted.
func (r vAppRecords) gone() []string {
	known := r.ids()
	return slices.DeleteFunc(notes.URNs(r.vcdCluster.Annotations[infrav1.VAppGoneAnnotation]),
		func(id string) bool { return !slices.Contains(known, id) })
}

// areComplete reports whether every vApp that was ever used is recorded.
func (r vAppRecords) areComplete() bool {
	known := len(r.ids())
	return known > 0 && known >= r.count()
}

// add records a URN. The VCDCluster is not saved.
func (r vAppRecords) add(id string) {
	if r.zone == "" {
		notes.AddURN(r.vcdCluster, infrav1.VAppsAnnotation, id)
		return
	}
	home := r.inZone()
	home.IDs = append(home.IDs, id)
	key, value := home.Note()
	notes.Set(r.vcdCluster, key, value)
}
