// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"cmp"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Names of the NSX objects that a provider can use.
const (
	EdgeCluster = "edge-cluster-1"
	QosProfile  = "qos-100m"
)

// nsxBackings lists the tier-0 routers and segments that can back an external network, with their types. Segments can
// also back imported networks.
var nsxBackings = []struct{ name, kind string }{
	{"tier0", store.BackingTier0},
	{"tier0-b", store.BackingTier0},
	{"tier0-vrf", store.BackingVRF},
	{"segment-1", store.BackingSegment},
	{"segment-2", store.BackingSegment},
}

// A Backing is a tier-0 router or segment of NSX.
type Backing struct {
	ID   string
	Name string
	Kind string
}

// ExternalBackings returns all tier-0 routers and segments, including those in use.
func ExternalBackings(s *cloud.Cloud) []Backing {
	var out []Backing
	for _, r := range nsxBackings {
		out = append(out, Backing{s.IDs.Named("backing", r.name), r.name, r.kind})
	}
	return out
}

// FreeBacking reports whether no external network uses a router or segment. It does not consider imported networks. A
// tier-0 router in use remains valid: any number of networks that use IP blocks can share it.
func FreeBacking(s *cloud.Cloud, b Backing) bool {
	for _, e := range s.Store.Model.ExternalNetworks {
		if cmp.Or(e.BackingName, strings.ToLower(e.Name)) == b.Name {
			return false
		}
	}
	return true
}
