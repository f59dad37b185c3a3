// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/url"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// Balancers are the load balancers of edge gateways: pools, virtual services and certificates.
type Balancers struct{ client *api.Client }

// An EngineGroup is a service engine group that a gateway may put virtual services on.
type EngineGroup struct {
	Ref // of the group, not of its assignment

	Max      int // virtual services that the gateway may have on it; 0 is unknown
	Deployed int // virtual services that the gateway has on it
}

type wireAssignment struct {
	wire.Ref

	Group    *wire.Ref `json:"serviceEngineGroupRef"`
	Gateway  *wire.Ref `json:"gatewayRef"`
	Max      int       `json:"maxVirtualServices"`
	Deployed int       `json:"numDeployedVirtualServices"`
}

// EngineGroups lists the service engine groups assigned to a gateway. It takes the right to view load balancers of
// gateways.
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

// BalancerSettings are how the load balancer of a gateway is set up.
type BalancerSettings struct {
	// Known is set if the settings were read: the zero value shows nothing.
	Known   bool
	Enabled bool
	// Premium is true if the feature set is the larger one, which L4TLS takes.
	Premium bool
	// Transparent is true if virtual services may keep the address of the client (VCD 10.4.1).
	Transparent bool
	// LacksIPv4 and LacksIPv6 are true if the service network is shown to be of the other family only. Without any, VCD
	// takes a default one, of IPv4.
	LacksIPv4, LacksIPv6 bool
}

// Settings reads how the load balancer of a gateway is set up, which is the provider's to change. It takes the right
// "Organization vDC Gateway: View Load Balancer" (VCD 10.2; the feature set is shown since 10.4).
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
