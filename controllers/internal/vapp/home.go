// SPDX-License-Identifier: Apache-2.0

package vapp

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

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
	home := Home{Zone: zone, First: NameIn(c, clusterName, zone)}
	fields := strings.Fields(c.Annotations[infrav1.ZoneVAppsAnnotationPrefix+zone])
	if len(fields) < 2 {
		return home
	}
	home.VDC = fields[0]
	home.IDs = fields[2:]
	if n, err := strconv.Atoi(fields[1]); err == nil {
		home.Count = min(max(0, n), maxVApps)
	}
	return home
}

// Note returns the key and value of the annotation that records a home in a zone.
func (h Home) Note() (key, value string) {
	fields := append([]string{h.VDC, strconv.Itoa(h.Count)}, h.IDs...)
	return infrav1.ZoneVAppsAnnotationPrefix + h.Zone, strings.Join(fields, " ")
}

// Zones returns the homes of a cluster in zones, sorted by zone.
func Zones(c *infrav1.VCDCluster, clusterName string) []Home {
	var homes []Home
	for key := range c.Annotations {
		if zone, ok := strings.CutPrefix(key, infrav1.ZoneVAppsAnnotationPrefix); ok {
			if home := HomeIn(c, clusterName, zone); home.VDC != "" {
				homes = append(homes, home)
			}
		}
	}
	slices.SortFunc(homes, func(a, b Home) int { return strings.Compare(a.Zone, b.Zone) })
	return homes
}

// Spread reports whether a cluster has vApps in several zones, or would with one in a further zone. Its own VDC is zone
// "".
func Spread(c *infrav1.VCDCluster, further ...string) bool {
	zones := slices.Clone(further)
	for _, home := range Zones(c, "") {
		zones = append(zones, home.Zone)
	}
	if c.Annotations[infrav1.VAppCreatedAnnotation] != "" {
		zones = append(zones, "")
	}
	slices.Sort(zones)
	return len(slices.Compact(zones)) > 1
}
