// SPDX-License-Identifier: Apache-2.0

package virtualip

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// TakenByCluster reports another cluster of this management cluster that uses one of the addresses in the same network.
// Of two new clusters, the older one gets the address.
func TakenByCluster(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster, network vcd.Network,
	addresses []netip.Addr,
) (phases.Result, error) {
	list := &infrav1.VCDClusterList{}
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return phases.Done, fmt.Errorf("listing VCDClusters: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == c.UID || !Shares(c, other, network.ID) || !yields(c, other) {
			continue
		}
		taken := checks.VirtualIPs(other)
		if at := slices.IndexFunc(addresses, func(a netip.Addr) bool { return slices.Contains(taken, a) }); at >= 0 {
			return phases.Fail(intervals.Remedy, infrav1.VIPInUseReason, "virtual IP %s is already used by %s in the same network: %s", addresses[at], capicluster.NameFor(c, other), checks.OtherVirtualIP(c)), nil
		}
		if addr, found := announced(other, addresses); found {
			return phases.Fail(intervals.Remedy, infrav1.VIPInUseReason, "virtual IP %s is an address for Services of %s in the same network: %s", addr, capicluster.NameFor(c, other), checks.OtherVirtualIP(c)), nil
		}
	}
	return phases.Done, nil
}

// OfServices reports an address that kube-vip may announce for Services of the cluster itself.
func OfServices(c *infrav1.VCDCluster, addresses []netip.Addr) phases.Result {
	if addr, found := announced(c, addresses); found {
		return phases.Fail(intervals.Remedy, infrav1.VIPInUseReason, "virtual IP %s is in spec.loadBalancer.kubeVIP.addressRanges: correct the ranges, or %s", addr, checks.OtherVirtualIP(c))
	}
	return phases.Done
}

// announced returns the first address that kube-vip may announce for Services of a cluster.
func announced(c *infrav1.VCDCluster, addresses []netip.Addr) (netip.Addr, bool) {
	for _, r := range checks.ServiceRanges(c) {
		if at := slices.IndexFunc(addresses, r.Contains); at >= 0 {
			return addresses[at], true
		}
	}
	return netip.Addr{}, false
}

// yields reports whether c, a new cluster, must leave an address to another cluster.
func yields(c, other *infrav1.VCDCluster) bool {
	if ownership.Established(other) || other.CreationTimestamp.Before(&c.CreationTimestamp) {
		return true
	}
	return other.CreationTimestamp.Equal(&c.CreationTimestamp) && other.UID < c.UID
}

// A hostLister lists the hosts at addresses in a network.
type hostLister interface {
	RecentHostsAt(ctx context.Context, network vcd.Ref, addresses []netip.Addr) ([]vcd.HostAddress, error)
}

// TakenByHost reports a host in VCD that uses one of the addresses in the network. It finds none if the user may not
// see the hosts.
func TakenByHost(ctx context.Context, in hostLister, c *infrav1.VCDCluster, network vcd.Network,
	addresses []netip.Addr,
) (phases.Result, error) {
	hosts, err := in.RecentHostsAt(ctx, network.Ref, addresses)
	if err != nil {
		return problems.OfRead(err, "Reading the used addresses of network "+network.Name)
	}
	return problems.OfFinding(checks.VirtualIPTaken(c, network, addresses, hosts)), nil
}
