// SPDX-License-Identifier: Apache-2.0

package loadbalancing

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Values that require the feature set PREMIUM of the gateway's load balancer. VMware's guide for providers lists the
// algorithms; its API document lists the persistence types.
var (
	premiumAlgorithms = []string{
		"FASTEST_RESPONSE", "LEAST_LOAD", "FEWEST_SERVERS", "RANDOM", "FEWEST_TASKS", "CORE_AFFINITY",
	}
	premiumPersistence  = []string{"CUSTOM_HTTP_HEADER", "APP_COOKIE", "TLS"}
	premiumApplications = []string{"L4_TLS"}
)

// balancerSetting returns a field of a load balancer's settings. It is empty if the field has its default value.
func balancerSetting(lb *store.LoadBalancer, field string) string {
	return store.Text(lb.Fields, field)
}

// refusePremium refuses a value that requires PREMIUM on a gateway with the feature set STANDARD.
func refusePremium(assume *cloud.Assumptions, g *store.EdgeGateway, feature, value string, premium []string) error {
	if !assume.PremiumFeaturesRefused || balancerSetting(g.LoadBalancer, "supportedFeatureSet") != "STANDARD" ||
		!slices.Contains(premium, value) {
		return nil
	}
	return store.BadRequest("The %s %s requires the feature set PREMIUM, which the load balancer of the edge gateway %q does not have.", feature, value, g.Name)
}

// refuseUnsupportedFamilies refuses virtual IPs of an address family without a service network. If no service network
// is set, the load balancer uses VCD's default IPv4 network.
func refuseUnsupportedFamilies(assume *cloud.Assumptions, body map[string]any, g *store.EdgeGateway) error {
	if !assume.IPv6NeedsServiceNetwork {
		return nil
	}
	v4 := balancerSetting(g.LoadBalancer, "serviceNetworkDefinition")
	v6 := balancerSetting(g.LoadBalancer, "ipv6ServiceNetworkDefinition")
	for _, vip := range gateways.VirtualIPs(body) {
		a, err := netip.ParseAddr(vip)
		if lacks := a.Is4() && v4 == "" && v6 != "" || !a.Is4() && v6 == ""; err == nil && lacks {
			return store.BadRequest("The load balancer of the edge gateway %q has no service network for the virtual IP address %s.", g.Name, vip)
		}
	}
	return nil
}

// refuseVIPChange refuses to change a virtual IP that a virtual service shares with another.
func refuseVIPChange(assume *cloud.Assumptions, body map[string]any, old *store.Object, others []*store.Object) error {
	if old == nil || !assume.SharedVIPStays || slices.Equal(gateways.VirtualIPs(body), gateways.VirtualIPs(old.Body)) {
		return nil
	}
	for _, d := range others {
		for _, vip := range gateways.VirtualIPs(old.Body) {
			if slices.Contains(gateways.VirtualIPs(d.Body), vip) {
				return store.BadRequest("The virtual IP address %s of the virtual service %q cannot be changed, as the virtual service %q shares it.", vip, store.Text(old.Body, "name"), store.Text(d.Body, "name"))
			}
		}
	}
	return nil
}
