// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Names of errors in the section of a cluster, as CAPVCD writes them.
const (
	ClusterError          = "VCDClusterError"
	EndpointError         = "LoadBalancerError"
	VAppCreationError     = "VCDClusterVAppCreationError"
	VAppDeletionError     = "VCDClusterVAppDeleteError"
	MachineCreationError  = "VcdMachineCreationError"
	MachineBootstrapError = "VcdMachineScriptExecutionError"
	MachineDeletionError  = "VcdMachineDeletionError"
	MachineError          = "VCDMachineError"
)

// Names of events in the section of a cluster, as CAPVCD writes them.
const (
	EndpointAvailable   = "LoadBalancerAvailable"
	VAppAvailable       = "InfraVappAvailable"
	ControlPlaneReady   = "ControlplaneReady"
	MachinePoweredOn    = "VcdMachineInfraVMPoweredOn"
	MachineBootstrapped = "VcdMachineBootstrapped"
	MachineUnhealthy    = "VcdMachineHealthCheckFailedEvent"
)

// clusterErrors are the errors that the section of a cluster lists only while they last: the names above, and others
// that CAPVCD wrote.
var clusterErrors = []string{
	ClusterError, EndpointError, VAppCreationError, VAppDeletionError, MachineCreationError, MachineBootstrapError,
	MachineDeletionError, MachineError,
	"RdeError", "LoadBalancerPending", "VcdMachineScriptGenerationError", "CAPVCDObjectPatchError",
}

func isClusterError(name string) bool { return slices.Contains(clusterErrors, name) }

// A stamped is an element of a window with a time stamp.
type stamped struct {
	wireEntry

	raw json.RawMessage
}

func compareStamps(a, b stamped) int {
	return cmp.Or(a.OccurredAt.Compare(b.OccurredAt), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.ResourceName, b.ResourceName))
}

// window keeps the latest entries, old and given ones, sorted by time. Old entries whose name matches passes are kept
// only if they are also given. Elements that cannot be parsed count as oldest.
func window(detail string, entries []Entry, passes func(name string) bool) func(json.RawMessage) (json.RawMessage, error) {
	return editList(func(elements []json.RawMessage) ([]json.RawMessage, error) {
		add := stampsOf(detail, entries)
		var all []stamped
		for _, element := range elements {
			have := stamped{raw: element}
			_ = json.Unmarshal(element, &have.wireEntry) // an invalid element counts as oldest
			i := slices.IndexFunc(add, func(s stamped) bool { return sameEntry(s.wireEntry, have.wireEntry, detail) })
			switch {
			case i >= 0:
				add = slices.Delete(add, i, i+1)
			case passes != nil && passes(have.Name):
				continue
			}
			all = append(all, have)
		}
		all = append(all, add...)
		slices.SortStableFunc(all, compareStamps)
		var out []json.RawMessage
		for _, s := range all[max(0, len(all)-clusterWindow):] {
			if s.raw == nil {
				var err error
				if s.raw, err = json.Marshal(s.wireEntry); err != nil {
					return nil, err
				}
			}
			out = append(out, s.raw)
		}
		return out, nil
	})
}

// stampsOf returns the JSON form of entries, without duplicates. Times are truncated to seconds, as in conditions.
func stampsOf(detail string, entries []Entry) []stamped {
	var out []stamped
	for _, e := range entries {
		w := wireEntry{
			e.Name,
			e.OccurredAt.UTC().Truncate(time.Second),
			e.ResourceID,
			e.ResourceName,
			map[string]string{detail: e.Detail},
		}
		if !slices.ContainsFunc(out, func(s stamped) bool { return sameEntry(s.wireEntry, w, detail) }) {
			out = append(out, stamped{wireEntry: w})
		}
	}
	return out
}

func sameEntry(a, b wireEntry, detail string) bool {
	return a.Name == b.Name && a.ResourceName == b.ResourceName && a.OccurredAt.Equal(b.OccurredAt) &&
		a.Details[detail] == b.Details[detail]
}
