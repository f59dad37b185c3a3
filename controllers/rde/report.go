// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
)

// errorNames maps conditions to CAPVCD's names of errors. Other conditions are not reported.
var errorNames = map[string]string{
	infrav1.IdentityReadyCondition:        rde.ClusterError,
	infrav1.NetworkReadyCondition:         rde.ClusterError,
	infrav1.EndpointReadyCondition:        rde.EndpointError,
	infrav1.LoadBalancersDeletedCondition: rde.EndpointError,
	infrav1.DisksDeletedCondition:         rde.ClusterError,
	infrav1.VAppReadyCondition:            rde.VAppCreationError,
	infrav1.VAppDeletedCondition:          rde.VAppDeletionError,
	infrav1.PlacementReadyCondition:       rde.MachineCreationError,
	infrav1.VMCreatedCondition:            rde.MachineCreationError,
	infrav1.BootstrapReadyCondition:       rde.MachineBootstrapError,
	infrav1.BootstrapInjectedCondition:    rde.MachineBootstrapError,
	infrav1.PoweredOnCondition:            rde.MachineError,
	infrav1.AddressesReadyCondition:       rde.MachineError,
	infrav1.VMInSyncCondition:             rde.MachineError,
	infrav1.VMDeletedCondition:            rde.MachineDeletionError,
}

// progress lists the reasons of conditions that are False while everything is in order.
var progress = []string{
	infrav1.WaitingForEarlierPhaseReason, infrav1.TaskRunningReason, infrav1.EntityBusyReason,
	infrav1.WaitingForIPAddressClaimReason, infrav1.WaitingForEndpointReason, infrav1.WaitingForMachineDeletionReason,
	infrav1.WaitingForFinalCheckReason, infrav1.ShuttingDownReason, infrav1.WaitingForAddressReason,
	infrav1.WaitingForBootstrapDataReason, infrav1.WaitingForClusterReason, infrav1.WaitingForNodeReason,
	infrav1.VAppUnverifiedReason, infrav1.ThrottledReason,
}

// errors returns the problems in the conditions of the objects.
func (o objects) errors() []rde.Entry {
	out := errorsOf(o.vcdCluster.Name, "", o.vcdCluster.Status.Conditions)
	for _, name := range slices.Sorted(maps.Keys(o.vcdMachines)) {
		m := o.vcdMachines[name]
		out = append(out, errorsOf(m.Name, vmID(m), m.Status.Conditions)...)
	}
	return out
}

func errorsOf(name, id string, all []metav1.Condition) []rde.Entry {
	var out []rde.Entry
	for _, c := range all {
		if c.Status == metav1.ConditionTrue || errorNames[c.Type] == "" || slices.Contains(progress, c.Reason) {
			continue
		}
		out = append(out, rde.Entry{
			Name:         errorNames[c.Type],
			OccurredAt:   c.LastTransitionTime.Time,
			ResourceID:   id,
			ResourceName: name,
			Detail:       c.Reason + ": " + c.Message,
		})
	}
	return out
}

func vmID(m *infrav1.VCDMachine) string {
	if m.Status.VM == nil {
		return ""
	}
	return m.Status.VM.ID
}

// events returns events for conditions that became True, and for failed health checks.
func (o objects) events() []rde.Entry {
	c := o.vcdCluster
	out := became(c, infrav1.EndpointReadyCondition, rde.EndpointAvailable, rde.Entry{ResourceName: c.Name})
	if o.cluster != nil {
		out = append(out, became(o.cluster, clusterv1.ClusterControlPlaneInitializedCondition, rde.ControlPlaneReady,
			rde.Entry{ResourceName: c.Name})...)
	}
	vApps := map[string]rde.Entry{}
	for _, name := range slices.Sorted(maps.Keys(o.vcdMachines)) {
		m := o.vcdMachines[name]
		of := rde.Entry{ResourceName: m.Name, ResourceID: vmID(m)}
		out = append(out, became(m, infrav1.PoweredOnCondition, rde.MachinePoweredOn, of)...)
		out = append(out, became(m, infrav1.BootstrapInjectedCondition, rde.MachineBootstrapped, of)...)
		for _, e := range vAppOf(m) {
			if first, ok := vApps[e.ResourceID]; !ok || e.OccurredAt.Before(first.OccurredAt) {
				vApps[e.ResourceID] = e
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(vApps)) {
		out = append(out, vApps[id])
	}
	return append(out, o.unhealthy()...)
}

func vAppOf(m *infrav1.VCDMachine) []rde.Entry {
	if m.Status.VApp == nil {
		return nil
	}
	return became(m, infrav1.VAppReadyCondition, rde.VAppAvailable,
		rde.Entry{ResourceName: m.Status.VApp.Name, ResourceID: m.Status.VApp.ID})
}

// became returns an event if a condition of an object is True, with the time at which it became True.
func became(obj conditions.Getter, condition, name string, of rde.Entry) []rde.Entry {
	c := conditions.Get(obj, condition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	of.Name = name
	of.OccurredAt = c.LastTransitionTime.Time
	return []rde.Entry{of}
}

// unhealthy returns events for failed health checks.
func (o objects) unhealthy() []rde.Entry {
	var out []rde.Entry
	for i := range o.machines {
		c := conditions.Get(&o.machines[i], clusterv1.MachineHealthCheckSucceededCondition)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		out = append(out, rde.Entry{
			Name:         rde.MachineUnhealthy,
			OccurredAt:   c.LastTransitionTime.Time,
			ResourceName: o.machines[i].Name,
			Detail:       c.Reason + ": " + c.Message,
		})
	}
	return out
}
