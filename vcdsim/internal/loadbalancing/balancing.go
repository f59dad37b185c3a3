// SPDX-License-Identifier: Apache-2.0

package loadbalancing

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Collections are the collections of load balancing.
func Collections() []*documents.Collection {
	return []*documents.Collection{
		poolCollection(),
		serviceCollection(),
		controllerCollection(),
		cloudCollection(),
		engineCollection(),
		assignmentCollection(),
	}
}

// Settings are the settings of load balancing: of edge gateways and of virtual services.
func Settings() []*documents.Setting {
	return append(policySettings(), &documents.Setting{
		Path:    "1.0.0/edgeGateways/{gateway}/loadBalancer",
		Kind:    "edgeLoadBalancer",
		Title:   "Load Balancer",
		Scope:   gateways.OnGateway,
		Prepare: prepareBalancer,
		Show:    showBalancer,
	})
}

// balancing is the state of what a gateway's load balancer has.
func (lb LoadBalancing) balancing(d *store.Object) string {
	state := documents.Realization(lb.cloud.Tasks, store.Bare(d.ID()), d.Failed)
	if state == documents.StateRealized && lb.cloud.Assume.BusyGatewayConfiguresAll && lb.cloud.Tasks.Busy(d.Parent) {
		return documents.StateConfiguring
	}
	return state
}
