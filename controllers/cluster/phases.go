// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// provisioning are the phases of a VCDCluster, in order.
func provisioning() []phases.Phase[*scope] {
	return []phases.Phase[*scope]{
		{Condition: infrav1.IdentityReadyCondition, Run: reconcileIdentityReady},
		{Condition: infrav1.FailureDomainsReadyCondition, Run: reconcileFailureDomains, Applies: findsFirstZones},
		{Condition: infrav1.NetworkReadyCondition, Run: reconcileNetwork},
		{Condition: infrav1.AdoptedCondition, Run: reconcileAdopted, Applies: isOfCAPVCD},
		{Condition: infrav1.EndpointReadyCondition, Run: reconcileEndpoint},
		{Condition: infrav1.NodeProxyReadyCondition, Run: reconcileNodeProxy, Applies: hasNodeProxy},
		{Condition: infrav1.VAppLayoutReadyCondition, Run: reconcileVAppLayout, Applies: hasSeveralVApps},
		// The other phases of an established cluster continue when its zones are lost.
		{Condition: infrav1.FailureDomainsReadyCondition, Run: reconcileFailureDomains, Applies: hadZones},
	}
}

// maintenance are the phases of a VCDCluster whose conditions are not part of Ready.
func maintenance() []phases.Phase[*scope] {
	return []phases.Phase[*scope]{
		{Condition: infrav1.VAppMetadataReadyCondition, Run: reconcileVAppMetadata, Applies: isLoggedIn},
	}
}

// deletion are the phases of a VCDCluster in deletion, in order.
func deletion() []phases.Phase[*scope] {
	return []phases.Phase[*scope]{
		{Condition: infrav1.LoadBalancersDeletedCondition, Run: unlessDuplicated(deleteBalancers, nothingOwn)},
		{
			Condition: infrav1.AffinityRulesDeletedCondition,
			Run:       unlessDuplicated(deleteAffinityRules, nothingOwn),
			Applies:   hasAffinityRules,
		},
		{Condition: infrav1.VAppDeletedCondition, Run: unlessDuplicated(deleteVApp, ownVApp)},
		{
			Condition: infrav1.DisksDeletedCondition,
			Run:       unlessDuplicated(deleteDisks, nothingOwn),
			Applies:   deletesDisks,
		},
		{
			Condition: infrav1.EndpointDeletedCondition,
			Run:       unlessDuplicated(deleteEndpoint, nothingOwn),
			Applies:   isOnEdgeGateway,
		},
		{Condition: infrav1.ReleasedCondition, Run: releaseCluster},
	}
}

// hadZones reports whether a cluster is in zones, and zones were published when it was complete.
func hadZones(s *scope) bool {
	c := s.vcdCluster
	return c.Spec.FailureDomainSelector != nil && ownership.Established(c) && len(c.Status.FailureDomains) > 0
}

// findsFirstZones reports whether a cluster is in zones, and cannot continue without one.
func findsFirstZones(s *scope) bool {
	return s.vcdCluster.Spec.FailureDomainSelector != nil && !hadZones(s)
}

// isOfCAPVCD reports whether CAPVCD created the cluster.
func isOfCAPVCD(s *scope) bool { return ownership.ByCAPVCD(s.vcdCluster) }

func hasSeveralVApps(s *scope) bool {
	return vapp.PerMachine(s.vcdCluster) || vapp.Spread(s.vcdCluster)
}

func hasAffinityRules(s *scope) bool {
	return len(s.vcdCluster.Spec.RecordedState.AffinityRuleOVDCIDs) > 0
}

func deletesDisks(s *scope) bool {
	return s.vcdCluster.Spec.OrphanedDiskPolicy == infrav1.OrphanedDiskDelete
}

func isOnEdgeGateway(s *scope) bool {
	_, on := edgeendpoint.Of(s.vcdCluster)
	return on
}
