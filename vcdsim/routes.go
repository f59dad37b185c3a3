// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/catalogs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/compute"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/entities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/loadbalancing"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/network"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/orgs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/query"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

func (fe *frontend) addRoutes() {
	add := func(method, pattern string, h api.Handler, latency time.Duration) {
		fe.routes.Add(method, pattern, endpoint{handle: h, latency: latency})
	}
	open := func(method, pattern string, h api.Handler, latency time.Duration) {
		fe.routes.Add(method, pattern, endpoint{handle: h, latency: latency, open: true})
	}
	access.OpenRoutes(open)
	catalogs.UploadRoutes(open)
	for _, group := range routeGroups() {
		group(add)
	}
	fe.sim.control.addRoutes()
}

// routeGroups add the routes that need a session.
func routeGroups() []func(api.AddRoute) {
	return []func(api.AddRoute){
		access.Routes,
		orgs.Routes,
		vdcs.Routes,
		catalogs.Routes,
		compute.Routes,
		network.Routes,
		loadbalancing.Routes,
		entities.Routes,
		query.Routes,
		func(add api.AddRoute) { documents.Routes(add, collections()) },
		func(add api.AddRoute) { documents.SettingRoutes(add, settings()) },
	}
}
