// SPDX-License-Identifier: Apache-2.0

package virtualip

import (
	"net/netip"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Fit reports why addresses cannot be the virtual IPs of a cluster in its network. Each address must fit the network,
// and two addresses must be of different families.
func Fit(c *infrav1.VCDCluster, network vcd.Network, addresses []netip.Addr) phases.Result {
	if len(addresses) == 2 && addresses[0].Is4() == addresses[1].Is4() {
		return phases.Fail(intervals.Remedy, infrav1.VIPFamilyConflictReason, "%s and %s are of the same IP family: set pools of the other family in spec.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs", addresses[0], addresses[1])
	}
	for _, addr := range addresses {
		if found := checks.VirtualIP(c, network, addr); found != nil {
			return problems.OfFinding(found)
		}
	}
	return phases.Done
}
