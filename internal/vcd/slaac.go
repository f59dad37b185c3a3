// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/url"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// SLAACMode is the source of the IPv6 addresses of guests on the routed networks of an edge gateway, in VCD's terms.
type SLAACMode string

// Sources of IPv6 addresses.
const (
	SLAACDisabled SLAACMode = "DISABLED"
	// SLAACStateless lets guests form their own addresses.
	SLAACStateless SLAACMode = "SLAAC"
	// SLAACDHCPv6 leases addresses of the DHCP pools of networks.
	SLAACDHCPv6 SLAACMode = "DHCPv6"
)

// SLAACMode reads the mode of the SLAAC profile of an edge gateway, which the portal of VCD shows as DHCPv6.
func (g *Gateways) SLAACMode(ctx context.Context, id string) (SLAACMode, error) {
	var doc struct {
		Enabled bool      `json:"enabled"`
		Mode    SLAACMode `json:"mode"`
	}
	err := g.client.GetJSON(ctx, gatewaysPath+url.PathEscape(id)+"/slaacProfile", "", &doc)
	if err != nil {
		return "", failure.Wrap(err, "reading the SLAAC profile of edge gateway", id)
	}
	if !doc.Enabled {
		return SLAACDisabled, nil
	}
	return doc.Mode, nil
}
