// SPDX-License-Identifier: Apache-2.0

// Package capvcd has the names and marks that CAPVCD 1.0 to 1.3.2, VMware's former provider, gave to objects in VCD.
// They prove which cluster these objects belong to.
package capvcd

import "regexp"

// MetadataKey is the key in the metadata of a vApp whose value is the id of the cluster that CAPVCD made it for.
const MetadataKey = "CapvcdInfraId"

// VMDescription is the description of every VM that CAPVCD made.
const VMDescription = "Auto-created VM"

// Prefixes of the ids of clusters.
const (
	// EntityPrefix begins the id of a cluster with a runtime defined entity: it is the URN of the entity.
	EntityPrefix = "urn:vcloud:entity:vmware:capvcdCluster:"
	// NoEntityPrefix begins the id of a cluster without one.
	NoEntityPrefix = "NO_RDE_"
)

var clusterID = regexp.MustCompile(`^(` + EntityPrefix + `|` + NoEntityPrefix +
	`)[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// IsClusterID reports whether id is one that CAPVCD gives to clusters.
func IsClusterID(id string) bool { return clusterID.MatchString(id) }

// VAppDescription returns the description that CAPVCD gives to the vApp of a name.
func VAppDescription(name string) string { return "Description for [" + name + "]" }
