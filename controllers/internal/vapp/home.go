// SPDX-License-Identifier: Apache-2.0

package vapp

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A Home is where vApps of a cluster are: the VDC of one of its zones, or that of the cluster.
type Home struct {
	Zone  string   // VCDDeploymentZone; empty: the VDC of the cluster
	VDC   string   // URN; empty: that of the cluster
	First string   // name of the first vApp
	Count int      // how many vApps VCD was asked to create VMs in; 0: none is the cluster's
	IDs   []string // URNs of those that VMs were deleted from
}

// NameIn returns the name of the first vApp of the cluster in a zone, or of all if zone is empty or the layout has one
// vApp for the cluster.
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
	_, _ = h.Write([]byte(name)) // a hash takes everything
	suffix := fmt.Sprintf("-%08x", h.Sum32())
	return name[:maxName-len(suffix)] + suffix
}

// HomeIn returns what is recorded on a cluster of what it has in a zone; a zero Count and VDC if nothing is.
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

// Spread reports whether a cluster has vApps in several zones, or would with one in a further zone. Its own VDC is zone
// "".
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
