// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/url"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// Balancers is the client for load balancers of edge gateways: pools, virtual services and certificates.
type Balancers struct{ client *api.Client }

// An EngineGroup is a service engine group that is assigned to a gateway.
type EngineGroup struct {
	Ref // the group, not its assignment

	Max      int // limit of virtual services of the gateway in the group; 0: unknown
	Deployed int // virtual services of the gateway in the group
}

type wireAssignment struct {
	wire.Ref

	Group    *wire.Ref `json:"serviceEngineGroupRef"`
	Gateway  *wire.Ref `json:"gatewayRef"`
	Max      int       `json:"maxVirtualServices"`
	Deployed int       `json:"numDeployedVirtualServices"`
}

// EngineGroups lists the service engine groups that are assigned to a gateway. It requires the right to view load
// balancers of gateways.
func (b *Balancers) EngineGroups(ctx context.Context, gateway string) ([]EngineGroup, error) {
	lines, err := api.ListAll[wireAssignment](ctx, b.client, api.Listing{
		Path:  "/cloudapi/1.0.0/loadBalancer/serviceEngineGroups/assignments",
		What:  "service engine groups",
		Of:    " of edge gateway " + gateway,
		Terms: []fiql.Term{fiql.Is("gatewayRef.id", gateway)},
	})
	var groups []EngineGroup
	for _, line := range lines {
		if refOf(line.Gateway).ID == gateway {
			groups = append(groups, EngineGroup{Ref: refOf(line.Group), Max: line.Max, Deployed: line.Deployed})
		}
	}
	return groups, err
}

// BalancerSettings are the settings of a gateway's load balancer.
type BalancerSettings struct {
	// Known is true if the settings were read. The zero value means that they are unknown.
	Known   bool
	Enabled bool
	// Premium is true if the feature set is the premium one, which L4TLS requires.
	Premium bool
	// Transparent is true if virtual services may preserve the address of the client (VCD 10.4.1).
	Transparent bool
	// LacksIPv4 and LacksIPv6 are true if the service network is visible and only has the other family. If none is set,
	// VCD uses a default IPv4 network.
	LacksIPv4, LacksIPv6 bool
}

// Settings reads the settings of a gateway's load balancer, which only the provider can change. It requires the right
// "Organization vDC Gateway: View Load Balancer" (VCD 10.2; the feature set is visible since 10.4).
func (b *Balancers) Settings(ctx context.Context, gateway string) (BalancerSettings, error) {
	type settings struct {
		Enabled     bool   `json:"enabled"`
		FeatureSet  string `json:"supportedFeatureSet"`
		Transparent bool   `json:"transparentModeEnabled"`
		Network     string `json:"serviceNetworkDefinition"`
		IPv6Network string `json:"ipv6ServiceNetworkDefinition"`
	}
	path := gatewaysPath + url.PathEscape(gateway) + "/loadBalancer"
	return api.Read(ctx, b.client, "the load balancer of edge gateway", gateway, path, func(s *settings) BalancerSettings {
		return BalancerSettings{
			Known:       true,
			Enabled:     s.Enabled,
			Premium:     s.FeatureSet != "STANDARD",
			Transparent: s.Transparent,
			LacksIPv4:   s.IPv6Network != "" && s.Network == "",
			LacksIPv6:   s.Network != "" && s.IPv6Network == "",
		}
	})
}
