// SPDX-License-Identifier: Apache-2.0

// Package settings separates the settings in the spec of a VCDCluster or VCDMachine from the state that controllers
// record there. Recorded state changes the generation of the object, like a setting does. Code that depends only on
// settings uses this package.
package settings

import (
	"encoding/json"
	"hash/fnv"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// Spec returns the spec of a cluster without recorded state. It shares memory with c.
func Spec(c *infrav1.VCDCluster) infrav1.VCDClusterSpec {
	spec := c.Spec
	spec.RecordedState = infrav1.VCDClusterRecordedState{}
	return spec
}

// MachineSpec returns the spec of a machine without recorded state. It shares memory with m.
func MachineSpec(m *infrav1.VCDMachine) infrav1.VCDMachineSpec {
	spec := m.Spec
	spec.RecordedState = infrav1.VCDMachineRecordedState{}
	return spec
}

// A Version identifies the settings of a cluster within this process.
type Version uint64

// Of returns the version of the settings of a cluster. It ignores the ID of the cluster, which a controller sets.
func Of(c *infrav1.VCDCluster) Version {
	h := fnv.New64a()
	spec := Spec(c)
	spec.InfraID = ""
	if err := json.NewEncoder(h).Encode(spec); err != nil {
		panic(err) // API types can always be encoded as JSON
	}
	return Version(h.Sum64())
}
