// SPDX-License-Identifier: Apache-2.0

// Package capvcd defines the names and marks that CAPVCD 1.0 to 1.3.2, VMware's former provider, gave to objects in
// VCD. They prove which cluster an object belongs to.
package capvcd

import "regexp"

// MetadataKey is the metadata key of a vApp whose value is the ID of the cluster for which CAPVCD created the vApp.
const MetadataKey = "CapvcdInfraId"

// VMDescription is the description of every VM that CAPVCD created.
const VMDescription = "Auto-created VM"

// Prefixes of cluster IDs.
const (
	// EntityPrefix is the prefix of the ID of a cluster with a runtime defined entity. The ID is the URN of the entity.
	EntityPrefix = "urn:vcloud:entity:vmware:capvcdCluster:"
	// NoEntityPrefix is the prefix of the ID of a cluster without a runtime defined entity.
	NoEntityPrefix = "NO_RDE_"
)

var clusterID = regexp.MustCompile(`^(` + EntityPrefix + `|` + NoEntityPrefix +
	`)[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// IsClusterID reports whether id has a form that CAPVCD gives to cluster IDs.
func IsClusterID(id string) bool { return clusterID.MatchString(id) }

// VAppDescription returns the description that CAPVCD gives to a vApp with this name.
func VAppDescription(name string) string { return "Description for [" + name + "]" }
