// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sigs.k8s.io/cluster-api/util"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// provisioning returns the phases of a VCDMachine in order. Ready summarizes their conditions.
func provisioning() []phases.Phase[*scope] {
	return []phases.Phase[*scope]{
		{Condition: infrav1.BootstrapReadyCondition, Run: reconcileBootstrapReady},
		{Condition: infrav1.PlacementReadyCondition, Run: reconcilePlacement},
		{Condition: infrav1.AddressesClaimedCondition, Run: reconcileAddressesClaimed, Applies: hasStaticAddresses},
		{Condition: infrav1.VAppReadyCondition, Run: reconcileVApp},
		{Condition: infrav1.VMCreatedCondition, Run: reconcileVM},
		{Condition: infrav1.AdoptedCondition, Run: reconcileAdopted, Applies: isAdopted},
		{Condition: infrav1.BootstrapInjectedCondition, Run: reconcileBootstrapInjected},
		{Condition: infrav1.EndpointJoinedCondition, Run: joinEndpoint, Applies: joinsBeforePowerOn},
		{Condition: infrav1.HardwareUpdatedCondition, Run: reconcileHardware, Applies: updatesHardware, Optional: true},
		{Condition: infrav1.PoweredOnCondition, Run: reconcilePower},
		{Condition: infrav1.AddressesReadyCondition, Run: reconcileAddresses},
		{Condition: infrav1.EndpointJoinedCondition, Run: joinEndpoint, Applies: joinsAfterDHCP},
		{Condition: infrav1.VMInSyncCondition, Run: reconcileDrift, Applies: hasDriftInReady},
	}
}

// maintenance returns the phases whose conditions are not part of Ready. They apply if the VM is observed, regardless of
// its state.
func maintenance() []phases.Phase[*scope] {
	return []phases.Phase[*scope]{
		{Condition: infrav1.BootstrapDataRemovedCondition, Run: reconcileBootstrapDataRemoved, Applies: mayHaveBootstrapData},
		{Condition: infrav1.VMResetCondition, Run: reconcileReset, Applies: isResetRequested, Optional: true},
		{Condition: infrav1.RemovedFromEndpointCondition, Run: removeFromEndpointEarly, Applies: isRemovedEarly, Optional: true},
		{Condition: infrav1.VMMetadataReadyCondition, Run: reconcileMetadata, Applies: isObserved},
		{Condition: infrav1.VMInSyncCondition, Run: reconcileDrift, Applies: hasDriftBesideReady},
	}
}

// deletionPhases returns the phases of a VCDMachine that is being deleted, in order.
func deletionPhases() []phases.Phase[*scope] {
	return []phases.Phase[*scope]{
		{Condition: infrav1.RemovedFromEndpointCondition, Run: removeFromEndpoint, Applies: isEndpointMember},
		{Condition: infrav1.NodeWithdrawnCondition, Run: withdrawNode, Applies: hasNodeToWithdraw},
		{Condition: infrav1.VMDeletedCondition, Run: deleteVM},
		{Condition: infrav1.VAppDeletedCondition, Run: deleteMachineVApp},
		{Condition: infrav1.ReleasedCondition, Run: releaseMachine},
	}
}

// isObserved reports whether the pass observed a VM that ran before.
func isObserved(s *scope) bool { return s.complete || s.vm.listed != nil && s.inputs.hasRun() }

// isResetRequested reports whether a VCDRemediation requests a reset of a VM that is observed. A VM that is off for a change of
// its hardware is not reset, nor is that of a machine that is being deleted.
func isResetRequested(s *scope) bool {
	recorded := s.inputs.vcdMachine.Spec.RecordedState
	return isObserved(s) && recorded.Reset.Remediation != "" && recorded.Restart.RequestedAt == nil && !s.inputs.ownerIsDeleting()
}

func hasStaticAddresses(s *scope) bool { return nics.HasStatic(s.inputs.vcdMachine) }

func hasDriftInReady(s *scope) bool { return driftInReady(s.inputs.vcdMachine) }

func hasDriftBesideReady(s *scope) bool { return isObserved(s) && !hasDriftInReady(s) }

// mayHaveBootstrapData reports whether the VM may still contain bootstrap data that this provider wrote. Data that
// CAPVCD wrote stays, because an adopted VM is not changed.
func mayHaveBootstrapData(s *scope) bool { return isObserved(s) && !isAdopted(s) }

// isEndpointMember reports whether the machine became a member of its cluster's endpoint on an edge gateway.
func isEndpointMember(s *scope) bool {
	_, on := edgeendpoint.Of(s.inputs.vcdCluster)
	return on && s.inputs.vcdMachine.Spec.RecordedState.EndpointMember != ""
}

// joins reports whether the machine must become, or stay, a member of its cluster's endpoint on an edge gateway. A
// machine that has left the endpoint before its deletion does not join again.
func joins(s *scope) bool {
	_, on := edgeendpoint.Of(s.inputs.vcdCluster)
	return on && util.IsControlPlaneMachine(s.inputs.machine) &&
		(s.inputs.machine.DeletionTimestamp.IsZero() || isEndpointMember(s))
}

// isRemovedEarly reports whether the machine leaves its cluster's endpoint on an edge gateway although its VCDMachine is not
// being deleted yet: Cluster API is about to remove its etcd member, with which its API server fails.
func isRemovedEarly(s *scope) bool {
	in := &s.inputs
	return isObserved(s) && isEndpointMember(s) &&
		in.machine != nil && !in.machine.DeletionTimestamp.IsZero() &&
		in.cluster != nil && in.cluster.DeletionTimestamp.IsZero()
}

// joinsBeforePowerOn reports whether the machine joins before its VM runs, because VCD has assigned its address by
// then.
func joinsBeforePowerOn(s *scope) bool { return joins(s) && !isPrimaryByDHCP(s) }

// joinsAfterDHCP reports whether the machine joins once its guest has an address from DHCP.
func joinsAfterDHCP(s *scope) bool { return joins(s) && isPrimaryByDHCP(s) }

func isPrimaryByDHCP(s *scope) bool {
	networks := s.inputs.vcdMachine.Spec.Networks
	return len(networks) > 0 && networks[0].AddressSource == infrav1.AddressDHCP
}
