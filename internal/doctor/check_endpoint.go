// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkEndpoint checks the virtual IPs of the control plane, and the addresses that kube-vip announces for Services.
// The keys of networks are the names in the plan.
func checkEndpoint(ctx context.Context, in *vcd.Session, plan Plan, networks map[string]vcd.Network) findings {
	var f findings
	c := plan.Cluster
	if c == nil || plan.zone != nil && !plan.zone.ControlPlane() {
		return f
	}
	network, ok := networks[c.Spec.OVDCNetwork]
	if !ok {
		return f
	}
	f.found(Problem, checks.ServiceAddresses(c, network))
	for _, addr := range checks.VirtualIPs(c) {
		if found := checks.VirtualIP(c, network, addr); found != nil {
			f.found(Problem, found)
			continue
		}
		at := []netip.Addr{addr}
		hosts, err := in.Networks.HostsAt(ctx, network.Ref, at)
		if err != nil {
			f.unread(err, "reading the objects that use network "+network.Name, "grant the user the right to view networks")
		}
		f.found(Problem, checks.VirtualIPTaken(c, network, at, hosts))
	}
	return f
}
