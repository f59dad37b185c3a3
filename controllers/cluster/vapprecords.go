// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
)

// vAppRecords are what a VCDCluster records of its vApps in one VDC.
type vAppRecords struct {
	vcdCluster  *infrav1.VCDCluster
	clusterName string
	zone        string // empty: the VDC of the cluster
}

// ids are the URNs of vApps that VMs of the cluster were in.
func (r vAppRecords) ids() []string {
	if r.zone == "" {
		return r.vcdCluster.Spec.RecordedState.VAppIDs
	}
	return r.inZone().IDs
}

// inZone returns what is recorded of the zone.
func (r vAppRecords) inZone() vapp.Home { return vapp.HomeIn(r.vcdCluster, r.clusterName, r.zone) }

// count is how many vApps VCD was asked to create VMs in, or 1 if it may not have been asked.
func (r vAppRecords) count() int {
	if r.zone == "" {
		return max(1, int(r.vcdCluster.Spec.RecordedState.VAppCount))
	}
	return r.inZone().Count
}

// created reports whether it is recorded that VCD was asked to create VMs in a vApp. CAPVCD recorded nothing, and created
// the vApp of each cluster that it gave an id.
func (r vAppRecords) created() bool {
	if r.zone == "" {
		return r.vcdCluster.Spec.RecordedState.VAppCount > 0 || ownership.ByCAPVCD(r.vcdCluster)
	}
	return r.inZone().Count > 0
}

// gone are the URNs of the vApps that our own tasks deleted.
func (r vAppRecords) gone() []string {
	known := r.ids()
	return slices.DeleteFunc(slices.Clone(r.vcdCluster.Spec.RecordedState.DeletedVAppIDs),
		func(id string) bool { return !slices.Contains(known, id) })
}

// areComplete reports whether every vApp that was ever used is recorded.
func (r vAppRecords) areComplete() bool {
	known := len(r.ids())
	return known > 0 && known >= r.count()
}

// add records a URN. The VCDCluster is not saved.
func (r vAppRecords) add(id string) {
	recorded := &r.vcdCluster.Spec.RecordedState
	if r.zone == "" {
		recorded.VAppIDs = append(recorded.VAppIDs, id)
		return
	}
	entry := recorded.Zones[r.zone]
	entry.VAppIDs = append(entry.VAppIDs, id)
	recorded.Zones[r.zone] = entry
}

// missingSince is when a vApp was first not found; nil if it was not missing.
func (r vAppRecords) missingSince() *metav1.Time {
	if r.zone == "" {
		return r.vcdCluster.Spec.RecordedState.VAppMissingSince
	}
	return r.vcdCluster.Spec.RecordedState.Zones[r.zone].VAppMissingSince
}

// setMissingSince records when a vApp was first not found; nil is not missing. The VCDCluster is not saved.
func (r vAppRecords) setMissingSince(at *metav1.Time) {
	recorded := &r.vcdCluster.Spec.RecordedState
	if r.zone == "" {
		recorded.VAppMissingSince = at
		return
	}
	entry := recorded.Zones[r.zone]
	entry.VAppMissingSince = at
	recorded.Zones[r.zone] = entry
}
