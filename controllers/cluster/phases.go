// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// phasesOf returns the phases of a VCDCluster, in order: each is a condition, and what makes it true.
func phasesOf(c *infrav1.VCDCluster) []phases.Phase[*scope] {
	if !c.DeletionTimestamp.IsZero() {
		return deletionOf(c)
	}
	table := []phases.Phase[*scope]{{Condition: infrav1.IdentityReadyCondition, Run: reconcileIdentityReady}}
	// The rest of a cluster goes on when its zones are lost.
	zoned := phases.Phase[*scope]{Condition: infrav1.FailureDomainsReadyCondition, Run: reconcileFailureDomains}
	first := !established(c) || len(c.Status.FailureDomains) == 0
	if c.Spec.FailureDomainSelector != nil && first {
		table = append(table, zoned)
	}
	table = append(table,
		phases.Phase[*scope]{Condition: infrav1.NetworkReadyCondition, Run: reconcileNetwork},
		phases.Phase[*scope]{Condition: infrav1.EndpointReadyCondition, Run: reconcileEndpoint})
	if hasNodeProxy(c) {
		table = append(table, phases.Phase[*scope]{Condition: infrav1.NodeProxyReadyCondition, Run: reconcileNodeProxy})
	}
	if vapp.PerMachine(c) || vapp.Spread(c) {
		table = append(table,
			phases.Phase[*scope]{Condition: infrav1.VAppLayoutReadyCondition, Run: reconcileVAppLayout})
	}
	if c.Spec.FailureDomainSelector != nil && !first {
		table = append(table, zoned)
	}
	return table
}

// deletionOf returns the phases of a VCDCluster that is deleted, in order.
func deletionOf(c *infrav1.VCDCluster) []phases.Phase[*scope] {
	table := []phases.Phase[*scope]{
		{Condition: infrav1.LoadBalancersDeletedCondition, Run: unlessDuplicated(deleteBalancers, nothingOwn)},
	}
	if c.Annotations[infrav1.AffinityRulesAnnotation] != "" {
		table = append(table, phases.Phase[*scope]{
			Condition: infrav1.AffinityRulesDeletedCondition,
			Run:       unlessDuplicated(deleteAffinityRules, nothingOwn),
		})
	}
	table = append(table, phases.Phase[*scope]{
		Condition: infrav1.VAppDeletedCondition,
		Run:       unlessDuplicated(deleteVApp, ownVApp),
	})
	if c.Spec.OrphanedDiskPolicy == infrav1.OrphanedDiskDelete {
		disks := phases.Phase[*scope]{
			Condition: infrav1.DisksDeletedCondition,
			Run:       unlessDuplicated(deleteDisks, nothingOwn),
		}
		table = append(table, disks)
	}
	if _, on := edgeendpoint.Of(c); on {
		table = append(table, phases.Phase[*scope]{
			Condition: infrav1.EndpointDeletedCondition,
			Run:       unlessDuplicated(deleteEndpoint, nothingOwn),
		})
	}
	return append(table, phases.Phase[*scope]{Condition: infrav1.ReleasedCondition, Run: releaseCluster})
}
