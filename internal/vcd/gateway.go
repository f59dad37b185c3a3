// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const (
	gatewaysPage = "/cloudapi/1.0.0/edgeGateways"
	gatewaysPath = gatewaysPage + "/"
)

// A Realization is the progress of NSX in realizing an object.
type Realization string

// States of objects in NSX.
const (
	Pending           Realization = "PENDING"
	Configuring       Realization = "CONFIGURING"
	Realized          Realization = "REALIZED"
	RealizationFailed Realization = "REALIZATION_FAILED"
)

// A Gateway is an edge gateway with its uplinks.
type Gateway struct {
	Ref

	Status Realization
	Org    Ref
	Owner  Ref // the VDC or VDC group that it serves
	// UsesIPSpaces is true if its addresses come from IP Spaces. Otherwise they come from its uplinks.
	UsesIPSpaces bool
	Uplinks      []Uplink
}

// GroupOwner returns the URN of the owner of the gateway's firewall groups, such as IP sets: the VDC group that the
// gateway serves, otherwise the gateway.
func (g Gateway) GroupOwner() string {
	if isVDCGroup(g.Owner.ID) {
		return g.Owner.ID
	}
	return g.ID
}

// Ranges returns the external addresses of the gateway, without those of IP Spaces.
func (g Gateway) Ranges() []AddressRange {
	var ranges []AddressRange
	for _, uplink := range g.Uplinks {
		for _, subnet := range uplink.Subnets {
			if subnet.Enabled && !uplink.UsesIPSpaces {
				ranges = append(ranges, subnet.Ranges...)
			}
		}
	}
	return ranges
}

func isVDCGroup(urn string) bool { return strings.HasPrefix(urn, "urn:vcloud:vdcGroup:") }

// An Uplink connects an edge gateway to an external network.
type Uplink struct {
	Network      Ref
	UsesIPSpaces bool
	Subnets      []UplinkSubnet
}

// An UplinkSubnet is a subnet of an external network with the addresses of a gateway in it.
type UplinkSubnet struct {
	Prefix  netip.Prefix
	Gateway netip.Addr
	Primary netip.Addr // primary address of the gateway; zero if it is in another subnet
	Enabled bool
	Ranges  []AddressRange
}

// A UsedAddress is an external address that is in use on a gateway.
type UsedAddress struct {
	Address  netip.Addr
	Category string // PRIMARY_IP, DNAT, SNAT, Load_Balancer …
}

type wireGateway struct {
	wireObject

	OrgRef       *wire.Ref `json:"orgRef"`
	OwnerRef     *wire.Ref `json:"ownerRef"`
	OrgVdc       *wire.Ref `json:"orgVdc"`
	UsingIPSpace bool      `json:"usingIpSpace"`
	Uplinks      []struct {
		ID           string `json:"uplinkId"`
		Name         string `json:"uplinkName"`
		UsingIPSpace bool   `json:"usingIpSpace"`
		Subnets      *struct {
			Values []wireUplinkSubnet `json:"values"`
		} `json:"subnets"`
	} `json:"edgeGatewayUplinks"`
}

type wireUplinkSubnet struct {
	Gateway      string `json:"gateway"`
	PrefixLength int    `json:"prefixLength"`
	Enabled      *bool  `json:"enabled"`
	PrimaryIP    string `json:"primaryIp"`
	IPRanges     *struct {
		Values []struct {
			Start string `json:"startAddress"`
			End   string `json:"endAddress"`
		} `json:"values"`
	} `json:"ipRanges"`
}

// onGateway returns the list of a kind of objects on an edge gateway.
func onGateway(gateway, path, what, sort string) api.Listing {
	return api.Listing{
		Path: gatewaysPath + url.PathEscape(gateway) + path,
		What: what,
		Of:   " of edge gateway " + gateway,
		Sort: sort,
	}
}

// Gateways is the client for edge gateways.
type Gateways struct {
	client  *api.Client
	lookups *cache.Cache
}

// Gateway reads an edge gateway by its URN. It requires the right "Organization vDC Gateway: View". The use of IP
// Spaces is visible since VCD 10.4.1.
func (g *Gateways) Gateway(ctx context.Context, id string) (Gateway, error) {
	return api.Read(ctx, g.client, "edge gateway", id, gatewaysPath+url.PathEscape(id), (*wireGateway).gateway)
}

// FindGateway finds an edge gateway by name or URN among those that are visible to the user.
func (g *Gateways) FindGateway(ctx context.Context, nameOrURN string) (Ref, error) {
	return cache.Lookup(ctx, g.lookups, cache.Key("gateway", nameOrURN), func(ctx context.Context) (Ref, error) {
		in := "organization " + g.client.Org
		if err := fiql.CheckName("edge gateway", nameOrURN, in); err != nil {
			return Ref{}, err
		}
		by := fiql.Is("name", nameOrURN)
		if urn.Is(nameOrURN) {
			by = fiql.Is("id", nameOrURN)
		}
		var page struct {
			Values []wireGateway `json:"values"`
		}
		if err := g.client.GetJSON(ctx, gatewaysPage,
			api.Params("page", "1", "pageSize", "32", "filter", fiql.JSON(by)), &page); err != nil {
			return Ref{}, fmt.Errorf("looking up edge gateway %s: %w", nameOrURN, err)
		}
		var hits []Ref
		for _, doc := range page.Values {
			hits = append(hits, Ref{ID: doc.ID, Name: doc.Name})
		}
		return only("edge gateway", nameOrURN, in, hits)
	})
}

// Visible lists the edge gateways that are visible to the user, sorted by name.
func (g *Gateways) Visible(ctx context.Context) ([]Gateway, error) {
	return api.ListAs(ctx, g.client, api.Listing{Path: gatewaysPage, What: "edge gateways", Sort: "name"},
		(*wireGateway).gateway)
}

func (w *wireGateway) gateway() Gateway {
	g := Gateway{
		Ref:          refOf(&w.Ref),
		Status:       w.Status,
		Org:          refOf(w.OrgRef),
		Owner:        refOf(w.OwnerRef),
		UsesIPSpaces: w.UsingIPSpace,
	}
	if g.Owner.ID == "" {
		g.Owner = refOf(w.OrgVdc)
	}
	for _, u := range w.Uplinks {
		uplink := Uplink{Network: Ref{ID: u.ID, Name: u.Name}, UsesIPSpaces: u.UsingIPSpace}
		if u.Subnets != nil {
			for _, v := range u.Subnets.Values {
				if subnet, ok := v.subnet(); ok {
					uplink.Subnets = append(uplink.Subnets, subnet)
				}
			}
		}
		g.UsesIPSpaces = g.UsesIPSpaces || u.UsingIPSpace
		g.Uplinks = append(g.Uplinks, uplink)
	}
	return g
}

func (w *wireUplinkSubnet) subnet() (UplinkSubnet, bool) {
	gateway, err := netip.ParseAddr(w.Gateway)
	if err != nil {
		return UplinkSubnet{}, false
	}
	prefix, err := gateway.Prefix(w.PrefixLength)
	if err != nil {
		return UplinkSubnet{}, false
	}
	subnet := UplinkSubnet{
		Prefix:  prefix,
		Gateway: gateway,
		Enabled: w.Enabled == nil || *w.Enabled,
		Primary: wire.Address(w.PrimaryIP),
	}
	if w.IPRanges != nil {
		for _, r := range w.IPRanges.Values {
			subnet.Ranges = appendRange(subnet.Ranges, r.Start, r.End)
		}
	}
	return subnet, true
}

type wireUsed struct {
	Address  string `json:"ipAddress"`
	Category string `json:"category"`
}

// Key is empty, because several uses of an address result in equal items.
func (wireUsed) Key() string { return "" }

// UsedAddresses lists the external addresses that are in use on a gateway, with one item for each use. It requires the
// right to view gateways. VCD does not document an order of the items.
func (g *Gateways) UsedAddresses(ctx context.Context, gateway string) ([]UsedAddress, error) {
	lines, err := api.ListUnordered[wireUsed](ctx, g.client, onGateway(gateway, "/usedIpAddresses", "used addresses", ""))
	var used []UsedAddress
	for _, line := range lines {
		if addr := wire.Address(line.Address); addr.IsValid() {
			used = append(used, UsedAddress{Address: addr, Category: line.Category})
		}
	}
	return used, err
}
