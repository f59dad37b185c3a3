// SPDX-License-Identifier: Apache-2.0

package loadbalancing

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Collections returns the collections of load balancing.
func Collections() []*documents.Collection {
	return []*documents.Collection{
		poolCollection(),
		serviceCollection(),
		monitorCollection(),
		controllerCollection(),
		cloudCollection(),
		engineCollection(),
		assignmentCollection(),
	}
}

// Settings returns the load balancing settings of edge gateways and virtual services.
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

// realization returns the realization state of a load balancing object of a gateway. If the simulator assumes so, the
// object is configuring while the gateway is busy.
func (lb LoadBalancing) realization(d *store.Object) string {
	state := documents.Realization(lb.cloud.Tasks, store.Bare(d.ID()), d.Failed)
	if state == documents.StateRealized && lb.cloud.Assume.BusyGatewayConfiguresAll && lb.cloud.Tasks.Busy(d.Parent) {
		return documents.StateConfiguring
	}
	return state
}
