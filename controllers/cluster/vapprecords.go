// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
)

// vAppRecords gives access to the records of a VCDCluster about its vApps in one VDC.
type vAppRecords struct {
	vcdCluster  *infrav1.VCDCluster
	clusterName string
	zone        string // empty: the VDC of the cluster
}

// ids returns the URNs of the vApps that contain or contained VMs of the cluster.
func (r vAppRecords) ids() []string {
	if r.zone == "" {
		return r.vcdCluster.Spec.RecordedState.VAppIDs
	}
	return r.inZone().IDs
}

// inZone returns the records of the zone.
func (r vAppRecords) inZone() vapp.Home { return vapp.HomeIn(r.vcdCluster, r.clusterName, r.zone) }

// count returns the number of vApps in which the creation of VMs was requested. For the VDC of the cluster, it returns
// at least 1.
func (r vAppRecords) count() int {
	if r.zone == "" {
		return max(1, int(r.vcdCluster.Spec.RecordedState.VAppCount))
	}
	return r.inZone().Count
}

// created reports whether the creation of VMs in a vApp was requested. CAPVCD did not record such requests, but it
// created the vApp of each cluster to which it assigned an ID.
func (r vAppRecords) created() bool {
	if r.zone == "" {
		return r.vcdCluster.Spec.RecordedState.VAppCount > 0 || ownership.ByCAPVCD(r.vcdCluster)
	}
	return r.inZone().Count > 0
}

// gone returns the recorded URNs of vApps that the provider deleted.
func (r vAppRecords) gone() []string {
	known := r.ids()
	return slices.DeleteFunc(slices.Clone(r.vcdCluster.Spec.RecordedState.DeletedVAppIDs),
		func(id string) bool { return !slices.Contains(known, id) })
}

// areComplete reports whether the URN of every vApp that was ever used is recorded.
func (r vAppRecords) areComplete() bool {
	known := len(r.ids())
	return known > 0 && known >= r.count()
}

// add records a URN. It does not save the VCDCluster.
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

// missingSince returns the time when a vApp was first missing, or nil if none is missing.
func (r vAppRecords) missingSince() *metav1.Time {
	if r.zone == "" {
		return r.vcdCluster.Spec.RecordedState.VAppMissingSince
	}
	return r.vcdCluster.Spec.RecordedState.Zones[r.zone].VAppMissingSince
}

// setMissingSince records the time when a vApp was first missing; nil means that none is missing. It does not save the
// VCDCluster.
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
