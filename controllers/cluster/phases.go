// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// A row is a phase, and the VCDClusters that have it.
type row struct {
	condition string
	run       func(context.Context, *scope) (phases.Result, error)
	applies   func(*infrav1.VCDCluster) bool
}

// provisioning are the phases of a VCDCluster, in order.
func provisioning() []row {
	return []row{
		{infrav1.IdentityReadyCondition, reconcileIdentityReady, always},
		{infrav1.FailureDomainsReadyCondition, reconcileFailureDomains, findsFirstZones},
		{infrav1.NetworkReadyCondition, reconcileNetwork, always},
		{infrav1.EndpointReadyCondition, reconcileEndpoint, always},
		{infrav1.NodeProxyReadyCondition, reconcileNodeProxy, hasNodeProxy},
		{infrav1.VAppLayoutReadyCondition, reconcileVAppLayout, hasSeveralVApps},
		// The rest of a cluster goes on when its zones are lost.
		{infrav1.FailureDomainsReadyCondition, reconcileFailureDomains, hadZones},
	}
}

// deletion are the phases of a VCDCluster that is deleted, in order.
func deletion() []row {
	return []row{
		{infrav1.LoadBalancersDeletedCondition, unlessDuplicated(deleteBalancers, nothingOwn), always},
		{infrav1.AffinityRulesDeletedCondition, unlessDuplicated(deleteAffinityRules, nothingOwn), hasAffinityRules},
		{infrav1.VAppDeletedCondition, unlessDuplicated(deleteVApp, ownVApp), always},
		{infrav1.DisksDeletedCondition, unlessDuplicated(deleteDisks, nothingOwn), deletesDisks},
		{infrav1.EndpointDeletedCondition, unlessDuplicated(deleteEndpoint, nothingOwn), isOnEdgeGateway},
		{infrav1.ReleasedCondition, releaseCluster, always},
	}
}

// phasesOf returns the phases that apply to a VCDCluster now. Each is a condition, and what makes it true.
func phasesOf(c *infrav1.VCDCluster) []phases.Phase[*scope] {
	rows := provisioning()
	if !c.DeletionTimestamp.IsZero() {
		rows = deletion()
	}
	var table []phases.Phase[*scope]
	for _, r := range rows {
		if r.applies(c) {
			table = append(table, phases.Phase[*scope]{Condition: r.condition, Run: r.run})
		}
	}
	return table
}

func always(*infrav1.VCDCluster) bool { return true }

// hadZones reports whether a cluster is in zones, and some were published when it was complete.
func hadZones(c *infrav1.VCDCluster) bool {
	return c.Spec.FailureDomainSelector != nil && ownership.Established(c) && len(c.Status.FailureDomains) > 0
}

// findsFirstZones reports whether a cluster is in zones and cannot go on without one.
func findsFirstZones(c *infrav1.VCDCluster) bool {
	return c.Spec.FailureDomainSelector != nil && !hadZones(c)
}

func hasSeveralVApps(c *infrav1.VCDCluster) bool { return vapp.PerMachine(c) || vapp.Spread(c) }

func hasAffinityRules(c *infrav1.VCDCluster) bool {
	return c.Annotations[infrav1.AffinityRulesAnnotation] != ""
}

func deletesDisks(c *infrav1.VCDCluster) bool {
	return c.Spec.OrphanedDiskPolicy == infrav1.OrphanedDiskDelete
}

func isOnEdgeGateway(c *infrav1.VCDCluster) bool {
	_, on := edgeendpoint.Of(c)
	return on
}
