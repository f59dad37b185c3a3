// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"sigs.k8s.io/cluster-api/util"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// A row is a phase, and the VCDMachines that have it.
type row struct {
	condition string
	run       func(context.Context, *scope) (phases.Result, error)
	applies   func(*inputs) bool
}

// provisioning are the phases of a VCDMachine, in order. Ready sums up their conditions.
func provisioning() []row {
	return []row{
		{infrav1.BootstrapReadyCondition, reconcileBootstrapReady, always},
		{infrav1.PlacementReadyCondition, reconcilePlacement, always},
		{infrav1.AddressesClaimedCondition, reconcileAddressesClaimed, hasStaticAddresses},
		{infrav1.VAppReadyCondition, reconcileVApp, always},
		{infrav1.VMCreatedCondition, reconcileVM, always},
		{infrav1.BootstrapInjectedCondition, reconcileBootstrapInjected, always},
		{infrav1.EndpointJoinedCondition, joinEndpoint, joinsBeforePowerOn},
		{infrav1.PoweredOnCondition, reconcilePower, always},
		{infrav1.AddressesReadyCondition, reconcileAddresses, always},
		{infrav1.EndpointJoinedCondition, joinEndpoint, joinsWithItsAddress},
		{infrav1.VMAsSpecifiedCondition, reconcileAsSpecified, hasDriftInReady},
	}
}

// upkeep are the phases whose conditions are no part of Ready. None waits for another.
func upkeep() []row {
	return []row{
		{infrav1.BootstrapDataRemovedCondition, reconcileBootstrapDataRemoved, always},
		{infrav1.VMMetadataReadyCondition, reconcileMetadata, func(in *inputs) bool { return hasMetadata(in.vcdMachine) }},
		{infrav1.VMAsSpecifiedCondition, reconcileAsSpecified, func(in *inputs) bool { return !hasDriftInReady(in) }},
	}
}

// deletionPhases are those of a VCDMachine that is deleted, in order.
func deletionPhases() []row {
	return []row{
		{infrav1.EndpointLeftCondition, leaveEndpoint, isEndpointMember},
		{infrav1.VMDeletedCondition, deleteVM, always},
		{infrav1.VAppDeletedCondition, deleteMachineVApp, always},
		{infrav1.ReleasedCondition, releaseMachine, always},
	}
}

// phasesOf returns the phases of a VCDMachine whose conditions Ready sums up.
func phasesOf(in *inputs) []phases.Phase[*scope] {
	if !in.vcdMachine.DeletionTimestamp.IsZero() {
		return tableOf(in, deletionPhases())
	}
	return tableOf(in, provisioning())
}

// upkeepOf returns the phases of a VCDMachine whose conditions are no part of Ready.
func upkeepOf(in *inputs) []phases.Phase[*scope] {
	if !in.vcdMachine.DeletionTimestamp.IsZero() {
		return nil
	}
	return tableOf(in, upkeep())
}

// tableOf returns the phases of the rows that apply.
func tableOf(in *inputs, rows []row) []phases.Phase[*scope] {
	var table []phases.Phase[*scope]
	for _, r := range rows {
		if r.applies(in) {
			table = append(table, phases.Phase[*scope]{Condition: r.condition, Run: r.run})
		}
	}
	return table
}

func always(*inputs) bool { return true }

func hasStaticAddresses(in *inputs) bool { return nics.HasStatic(in.vcdMachine) }

func hasDriftInReady(in *inputs) bool { return driftInReady(in.vcdMachine) }

// isEndpointMember reports whether the machine became a member of its cluster's endpoint on an edge gateway.
func isEndpointMember(in *inputs) bool {
	_, on := edgeendpoint.Of(in.vcdCluster)
	return on && in.vcdMachine.Annotations[infrav1.EndpointMemberAnnotation] != ""
}

// joins reports whether the machine becomes a member of its cluster's endpoint on an edge gateway.
func joins(in *inputs) bool {
	_, on := edgeendpoint.Of(in.vcdCluster)
	return on && util.IsControlPlaneMachine(in.machine)
}

// joinsBeforePowerOn reports whether the machine joins before its VM runs: VCD gives it an address by then.
func joinsBeforePowerOn(in *inputs) bool { return joins(in) && !isPrimaryByDHCP(in) }

// joinsWithItsAddress reports whether the machine joins when its guest has got an address.
func joinsWithItsAddress(in *inputs) bool { return joins(in) && isPrimaryByDHCP(in) }

func isPrimaryByDHCP(in *inputs) bool {
	networks := in.vcdMachine.Spec.Networks
	return len(networks) > 0 && networks[0].AddressSource == infrav1.AddressDHCP
}
