// SPDX-License-Identifier: Apache-2.0

// Package settings tells the settings in the spec of a VCDCluster or VCDMachine apart from what the controllers recorded
// there. A record changes the generation of the object, as a setting does; what depends on settings only goes by this
// package.
package settings

import (
	"encoding/json"
	"hash/fnv"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// Spec returns the spec of a cluster without what the controllers recorded. It shares memory with c.
func Spec(c *infrav1.VCDCluster) infrav1.VCDClusterSpec {
	spec := c.Spec
	spec.RecordedState = infrav1.VCDClusterRecordedState{}
	return spec
}

// MachineSpec returns the spec of a machine without what the controllers recorded. It shares memory with m.
func MachineSpec(m *infrav1.VCDMachine) infrav1.VCDMachineSpec {
	spec := m.Spec
	spec.RecordedState = infrav1.VCDMachineRecordedState{}
	return spec
}

// A Version identifies the settings of a cluster within this process.
type Version uint64

// Of returns the version of the settings of a cluster. Its id, which a controller gives it, is none of them.
func Of(c *infrav1.VCDCluster) Version {
	h := fnv.New64a()
	spec := Spec(c)
	spec.InfraID = ""
	if err := json.NewEncoder(h).Encode(spec); err != nil {
		panic(err) // A type of the API always has a JSON form.
	}
	return Version(h.Sum64())
}
