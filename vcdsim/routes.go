// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/catalogs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/compute"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/control"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/entities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/firewalls"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/loadbalancing"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/network"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/orgs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/query"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

// addRoutes adds the routes of all nouns and of the control API.
func (s *Simulator) addRoutes() {
	access.OpenRoutes(s.frontend.AddOpen)
	catalogs.UploadRoutes(s.frontend.AddOpen)
	orgs.OpenRoutes(s.frontend.AddOpen)
	for _, group := range routeGroups() {
		group(s.frontend.Add)
	}
	for _, c := range s.control.Routes() {
		s.frontend.AddControl(c.Method, control.Path+c.Path, c.Handle)
	}
}

// routeGroups returns the functions that add the routes that require a session.
func routeGroups() []func(api.AddRoute) {
	return []func(api.AddRoute){
		access.Routes,
		orgs.Routes,
		vdcs.Routes,
		catalogs.Routes,
		compute.Routes,
		network.Routes,
		gateways.Routes,
		firewalls.Routes,
		loadbalancing.Routes,
		entities.Routes,
		query.Routes,
		func(add api.AddRoute) { documents.Routes(add, collections()) },
		func(add api.AddRoute) { documents.SettingRoutes(add, settings()) },
	}
}
