// SPDX-License-Identifier: Apache-2.0

package edgeendpoint

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// desiredOf returns the load balancer of a cluster's endpoint.
func desiredOf(r Request, members []netip.Addr) (lb.Desired, error) {
	c := r.Cluster
	spec := infrav1.EdgeGatewayEndpoint{}
	if given := c.Spec.ControlPlaneLoadBalancer.EdgeGateway; given != nil {
		spec = *given
	}
	d := lb.Desired{
		Desired: loadbalancer.Desired{
			Owner:       loadbalancer.EndpointOf(infraID(c)),
			AllFamilies: true,
			Requested:   requested(c, spec),
			Intent:      addresses(placement.EndpointAddresses(c)),
			Published:   addresses([]string{hostOf(c)}),
		},
		OwnMembers:  true,
		Members:     members,
		IPSpace:     spec.IPSpace,
		EngineGroup: spec.ServiceEngineGroup,
	}
	d.Families = familiesOf(d, r.Family)
	if spec.ArmMode == infrav1.ArmModeOneArm {
		arm := spec.OneArm
		within, err := vcdconfig.NewRange(arm.InternalRange.StartIP, arm.InternalRange.EndIP)
		if err != nil {
			return d, fmt.Errorf("spec.controlPlaneLoadBalancer.edgeGateway.oneArm.internalRange: %w", err)
		}
		d.OneArm = &lb.Range{First: within.StartIP, Last: within.EndIP}
	}
	d.Listeners = listeners(c, r.Owner, spec)
	return d, nil
}

// infraID returns the ID that marks the endpoint of a cluster in VCD, even before the ID is stored.
func infraID(c *infrav1.VCDCluster) string { return cmp.Or(c.Spec.InfraID, string(c.UID)) }

func hostOf(c *infrav1.VCDCluster) string { return c.Spec.ControlPlaneEndpoint.Host }

// requested returns the addresses that the endpoint must have: the address of its host, once known, and the secondary
// one.
func requested(c *infrav1.VCDCluster, spec infrav1.EdgeGatewayEndpoint) []netip.Addr {
	return addresses([]string{hostOf(c), spec.SecondaryAddress})
}

// addresses parses addresses. It skips other texts, such as host names.
func addresses(texts []string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// MemberFamily returns the address family of the members, which is that of the endpoint's first address. One pool
// serves all addresses, and its members have one family. The family is empty while no address is known.
func MemberFamily(c *infrav1.VCDCluster) loadbalancer.Family {
	spec := infrav1.EdgeGatewayEndpoint{}
	if given := c.Spec.ControlPlaneLoadBalancer.EdgeGateway; given != nil {
		spec = *given
	}
	known := requested(c, spec)
	if len(known) == 0 {
		known = addresses(placement.EndpointAddresses(c))
	}
	if len(known) == 0 {
		return ""
	}
	return loadbalancer.FamilyOf(known[0])
}

// familiesOf returns the families of the requested addresses. Without them it returns those of the stored addresses, or
// the usual family.
func familiesOf(d lb.Desired, usual loadbalancer.Family) []loadbalancer.Family {
	known := d.Requested
	if len(known) == 0 {
		known = d.Intent
	}
	var out []loadbalancer.Family
	for _, a := range known {
		if f := loadbalancer.FamilyOf(a); !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return []loadbalancer.Family{cmp.Or(usual, loadbalancer.IPv4)}
	}
	return out
}

// listeners returns the listener of the API server and those of the extra ports.
func listeners(c *infrav1.VCDCluster, owner *clusterv1.Cluster, spec infrav1.EdgeGatewayEndpoint) []lb.Listener {
	monitor := lb.MonitorTCP
	if spec.HealthMonitor == infrav1.EndpointMonitorPing {
		monitor = lb.MonitorPing
	}
	target := int32(kubevip.DefaultPort)
	if owner != nil {
		target = cmp.Or(owner.Spec.ClusterNetwork.APIServerPort, target)
	}
	out := []lb.Listener{listener("api", Port(c), target, monitor)}
	for _, p := range spec.ExtraPorts {
		out = append(out, listener("", p.Port, cmp.Or(p.TargetPort, p.Port), monitor))
	}
	return out
}

func listener(name string, port, target int32, monitor lb.Monitor) lb.Listener {
	return lb.Listener{
		Name:        name,
		Protocol:    loadbalancer.TCP,
		Application: lb.L4,
		Port:        int(port),
		NodePort:    int(target),
		Monitor:     monitor,
	}
}

// Port returns the port of the endpoint of a cluster.
func Port(c *infrav1.VCDCluster) int32 {
	return cmp.Or(c.Spec.ControlPlaneEndpoint.Port, kubevip.DefaultPort)
}
