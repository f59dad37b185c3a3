// SPDX-License-Identifier: Apache-2.0

package vcdsim

// balancingCollections are the collections of load balancing.
func balancingCollections() []*collection {
	return []*collection{
		poolCollection(),
		serviceCollection(),
		controllerCollection(),
		cloudCollection(),
		engineCollection(),
		assignmentCollection(),
	}
}

// balancingSettings are the settings of load balancing: of edge gateways and of virtual services.
func balancingSettings() []*setting {
	return append(policySettings(), &setting{
		path:    "1.0.0/edgeGateways/{gateway}/loadBalancer",
		kind:    "edgeLoadBalancer",
		title:   "Load Balancer",
		scope:   onGateway,
		prepare: prepareBalancer,
		show:    showBalancer,
	})
}
