// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	"sigs.k8s.io/cluster-api/util"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// phasesOf returns the phases whose conditions Ready sums up, in the order in which they run.
func phasesOf(m *infrav1.VCDMachine) []phases.Phase[*scope] {
	if !m.DeletionTimestamp.IsZero() {
		return []phases.Phase[*scope]{
			{Condition: infrav1.VMDeletedCondition, Run: deleteVM},
			{Condition: infrav1.VAppDeletedCondition, Run: deleteMachineVApp},
			{Condition: infrav1.ReleasedCondition, Run: releaseMachine},
		}
	}
	table := []phases.Phase[*scope]{
		{Condition: infrav1.BootstrapReadyCondition, Run: reconcileBootstrapReady},
		{Condition: infrav1.PlacementReadyCondition, Run: reconcilePlacement},
	}
	if nics.HasStatic(m) {
		table = append(table,
			phases.Phase[*scope]{Condition: infrav1.AddressesClaimedCondition, Run: reconcileAddressesClaimed})
	}
	table = append(table, []phases.Phase[*scope]{
		{Condition: infrav1.VAppReadyCondition, Run: reconcileVApp},
		{Condition: infrav1.VMCreatedCondition, Run: reconcileVM},
		{Condition: infrav1.BootstrapInjectedCondition, Run: reconcileBootstrapInjected},
		{Condition: infrav1.PoweredOnCondition, Run: reconcilePower},
		{Condition: infrav1.AddressesReadyCondition, Run: reconcileAddresses},
	}...)
	if driftInReady(m) {
		table = append(table, asSpecified)
	}
	return table
}

// withEndpoint adds to the phases of a control plane that it is a member of its cluster's endpoint on an edge gateway:
// before it is powered on, if VCD gives it an address by then, and until it is deleted.
func withEndpoint(in *inputs, table []phases.Phase[*scope]) []phases.Phase[*scope] {
	m := in.vcdMachine
	if _, on := edgeendpoint.Of(in.vcdCluster); !on {
		return table
	}
	if !m.DeletionTimestamp.IsZero() {
		if m.Annotations[infrav1.EndpointMemberAnnotation] == "" {
			return table
		}
		leave := phases.Phase[*scope]{Condition: infrav1.EndpointLeftCondition, Run: leaveEndpoint}
		return slices.Insert(table, 0, leave)
	}
	if !util.IsControlPlaneMachine(in.machine) {
		return table
	}
	first := infrav1.PoweredOnCondition
	join := phases.Phase[*scope]{Condition: infrav1.EndpointJoinedCondition, Run: joinEndpoint}
	at := slices.IndexFunc(table, func(p phases.Phase[*scope]) bool { return p.Condition == first })
	if nics := m.Spec.Networks; len(nics) > 0 && nics[0].AddressSource == infrav1.AddressDHCP {
		at = slices.IndexFunc(table,
			func(p phases.Phase[*scope]) bool { return p.Condition == infrav1.AddressesReadyCondition }) + 1
	}
	return slices.Insert(table, at, join)
}

// asSpecified is the phase that compares the VM with what it was made like.
var asSpecified = phases.Phase[*scope]{Condition: infrav1.VMAsSpecifiedCondition, Run: reconcileAsSpecified}

// extraPhases are those whose conditions are no part of Ready. None waits for another.
func extraPhases(m *infrav1.VCDMachine) []phases.Phase[*scope] {
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	extra := []phases.Phase[*scope]{
		{Condition: infrav1.BootstrapDataRemovedCondition, Run: reconcileBootstrapDataRemoved},
	}
	if hasMetadata(m) {
		extra = append(extra, phases.Phase[*scope]{
			Condition: infrav1.VMMetadataReadyCondition,
			Run:       reconcileMetadata,
		})
	}
	if !driftInReady(m) {
		extra = append(extra, asSpecified)
	}
	return extra
}
