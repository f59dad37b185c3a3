// SPDX-License-Identifier: Apache-2.0

package vapp

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A Home describes the vApps of a cluster in one VDC: that of one of its zones, or that of the cluster.
type Home struct {
	Zone  string   // VCDDeploymentZone; empty: the VDC of the cluster
	VDC   string   // URN; empty: the VDC of the cluster
	First string   // name of the first vApp
	Count int      // number of vApps in which VMs were requested from VCD; 0: the cluster has none
	IDs   []string // URNs of the vApps from which VMs were deleted
}

// NameIn returns the name of the cluster's first vApp in a zone. It returns the name of the cluster's first vApp if
// zone is empty, or if the layout is one vApp per cluster.
func NameIn(c *infrav1.VCDCluster, clusterName, zone string) string {
	base := Name(c, clusterName)
	if zone == "" || c.Spec.VApp.Layout == infrav1.VAppPerCluster {
		return base
	}
	name := base + "-" + zone
	if len(name) <= maxName {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	suffix := fmt.Sprintf("-%08x", h.Sum32())
	return name[:maxName-len(suffix)] + suffix
}

// HomeIn returns the record of a cluster for a zone. Count and VDC are zero if nothing is recorded.
func HomeIn(c *infrav1.VCDCluster, clusterName, zone string) Home {
	recorded := c.Spec.RecordedState.Zones[zone]
	return Home{
		Zone:  zone,
		VDC:   recorded.OVDCID,
		First: NameIn(c, clusterName, zone),
		Count: int(recorded.VAppCount),
		IDs:   recorded.VAppIDs,
	}
}

// Zones returns the homes of a cluster in zones, sorted by zone.
func Zones(c *infrav1.VCDCluster, clusterName string) []Home {
	var homes []Home
	for _, zone := range slices.Sorted(maps.Keys(c.Spec.RecordedState.Zones)) {
		homes = append(homes, HomeIn(c, clusterName, zone))
	}
	return homes
}

// Spread reports whether a cluster has vApps in several zones, or would have them with further zones. The zone "" is
// the VDC of the cluster.
func Spread(c *infrav1.VCDCluster, further ...string) bool {
	zones := slices.Clone(further)
	for _, home := range Zones(c, "") {
		zones = append(zones, home.Zone)
	}
	if c.Spec.RecordedState.VAppCount > 0 {
		zones = append(zones, "")
	}
	slices.Sort(zones)
	return len(slices.Compact(zones)) > 1
}
