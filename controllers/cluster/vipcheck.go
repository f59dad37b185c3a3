// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/virtualip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// check reports why hosts cannot be the endpoint.
func (v virtualIPs) check(ctx context.Context, hosts []string) (phases.Outcome, error) {
	addresses := virtualip.Addresses(hosts)
	if len(addresses) == 0 {
		resolved, out, err := v.resolve(ctx, hosts[0])
		if err != nil || out != phases.Done {
			return out, err
		}
		addresses = resolved
	}
	if out := v.fitAll(addresses); out != phases.Done {
		return out, nil
	}
	if established(v.scope.vcdCluster) {
		return phases.Done, nil // Its own nodes may have the addresses.
	}
	if out, err := v.otherCluster(ctx, addresses); err != nil || out != phases.Done {
		return out, err
	}
	return v.otherHost(ctx, addresses)
}

// fitAll reports why addresses cannot be the virtual IPs: each must fit the network, and two be of both families.
func (v virtualIPs) fitAll(addresses []netip.Addr) phases.Outcome {
	if len(addresses) == 2 && addresses[0].Is4() == addresses[1].Is4() {
		return phases.Fail(session.RemedyPoll, infrav1.VIPFamilyReason, "%s and %s are of one family: name pools of "+
			"the other family in spec.endpoint.kubeVIP.secondaryPoolRefs", addresses[0], addresses[1])
	}
	for _, addr := range addresses {
		if out := v.fits(addr); out != phases.Done {
			v.scope.session.ForgetNetwork(v.scope.vdc, v.scope.network.Ref) // The address may be taken out of its pool.
			v.scope.reconciler.homes.Drop(v.scope.vcdCluster.UID)
			return out
		}
	}
	return phases.Done
}

// lookupTimeout is how long an answer of DNS is waited for.
const lookupTimeout = 3 * time.Second

// resolve returns the IPv4 addresses of the name of an endpoint, none for a cluster that was complete once: what does
// not resolve then is seen by Cluster API. kube-vip 0.9 does not start while a name does not resolve, and Cluster
// API reaches the cluster by the name, too.
func (v virtualIPs) resolve(ctx context.Context, name string) ([]netip.Addr, phases.Outcome, error) {
	if established(v.scope.vcdCluster) {
		return nil, phases.Done, nil
	}
	lookup := v.scope.reconciler.Lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := lookup(ctx, "ip4", name)
	var failed *net.DNSError
	switch {
	case err == nil && len(found) > 0:
		for i := range found {
			found[i] = found[i].Unmap()
		}
		return found, phases.Done, nil
	case err == nil, errors.As(err, &failed) && failed.IsNotFound:
		return nil, phases.Fail(session.RemedyPoll, infrav1.NameUnresolvedReason, "DNS has no IPv4 address for %s: "+
			"create the record with the address that the control plane gets; kube-vip and Cluster API need it from "+
			"the start", name), nil
	}
	return nil, phases.Fail(session.RemedyPoll, infrav1.NameUnresolvedReason, "The manager cannot resolve %s: %v: "+
		"check its DNS servers", name, lookupProblem(err)), nil
}

// lookupProblem returns what is wrong with DNS, without the address of the server, which may change each time.
func lookupProblem(err error) string {
	var failed *net.DNSError
	switch {
	case errors.As(err, &failed) && failed.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	case errors.As(err, &failed):
		return failed.Err
	}
	return err.Error()
}

// remedy returns how to get another virtual IP.
func (v virtualIPs) remedy() string {
	switch kube := v.kube(); {
	case v.scope.vcdCluster.Spec.ControlPlaneEndpoint.Host != "":
		return "choose another in spec.controlPlaneEndpoint"
	case len(kube.PoolRefs) > 0:
		return "take it out of the pools of spec.endpoint.kubeVIP and delete the IPAddressClaims of the VCDCluster"
	case kube.DNSName != "":
		return "correct the record of " + kube.DNSName
	}
	return "choose another in spec.endpoint.kubeVIP.addresses"
}

// fits reports why addr cannot be a virtual IP in the network: it must be in no pool, and be in the network, unless it
// is announced to routers.
func (v virtualIPs) fits(addr netip.Addr) phases.Outcome {
	network := v.scope.network
	remedy := v.remedy()
	for _, subnet := range network.Subnets {
		if !subnet.Prefix.Contains(addr) {
			continue
		}
		if addr == subnet.Gateway || addr == subnet.Prefix.Masked().Addr() {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInvalidReason,
				"%s is the address of the gateway or of the network %s itself: %s", addr, network.Name, remedy)
		}
		if r, in := rangeOf(addr, subnet.StaticPool); in {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInStaticPoolReason,
				"%s is in the static pool %s-%s of network %s, from which VCD gives addresses to VMs: %s, or take it "+
					"out of the static pool", addr, r.From, r.To, network.Name, remedy)
		}
		if r, in := rangeOf(addr, subnet.DHCPPool); in && v.kube().DNSName == "" {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInDHCPRangeReason,
				"%s is in the DHCP range %s-%s of network %s, from which addresses are leased: %s, or take it out of "+
					"the DHCP range", addr, r.From, r.To, network.Name, remedy)
		}
		return phases.Done
	}
	if v.kube().BGP != nil {
		return phases.Done
	}
	return phases.Fail(session.RemedyPoll, infrav1.VIPOutsideNetworkReason, "%s is in no subnet of network %s: %s",
		addr, network.Name, remedy)
}

func rangeOf(addr netip.Addr, ranges []vcd.AddressRange) (vcd.AddressRange, bool) {
	for _, r := range ranges {
		if r.Contains(addr) {
			return r, true
		}
	}
	return vcd.AddressRange{}, false
}

// otherCluster reports another cluster of this management cluster that has one of the addresses in the same network. Of
// two that are new, the older one gets it.
func (v virtualIPs) otherCluster(ctx context.Context, addresses []netip.Addr) (phases.Outcome, error) {
	list := &infrav1.VCDClusterList{}
	if err := v.scope.reconciler.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return phases.Done, fmt.Errorf("listing VCDClusters: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == v.scope.vcdCluster.UID || !virtualip.Shares(v.scope.vcdCluster, other, v.scope.network.ID) || !v.gives(other) {
			continue
		}
		taken := virtualip.Of(other)
		if at := slices.IndexFunc(addresses, func(a netip.Addr) bool { return slices.Contains(taken, a) }); at >= 0 {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInUseReason, "%s is the virtual IP of %s in the same "+
				"network: %s", addresses[at], session.NameFor(v.scope.vcdCluster, other), v.remedy()), nil
		}
	}
	return phases.Done, nil
}

// gives reports whether this cluster, which is new, leaves an address to another.
func (v virtualIPs) gives(other *infrav1.VCDCluster) bool {
	own := v.scope.vcdCluster
	if established(other) || other.CreationTimestamp.Before(&own.CreationTimestamp) {
		return true
	}
	return other.CreationTimestamp.Equal(&own.CreationTimestamp) && other.UID < own.UID
}

// otherHost reports something in VCD that has one of the addresses in the network. Who may not see what is there goes
// without.
func (v virtualIPs) otherHost(ctx context.Context, addresses []netip.Addr) (phases.Outcome, error) {
	hosts, err := v.scope.session.RecentHostsOn(ctx, v.scope.network.Ref)
	if err != nil {
		return phases.Done, err
	}
	for _, host := range hosts {
		if slices.Contains(addresses, host.Address) {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInUseReason, "%s is the address of %s in network %s: %s",
				host.Address, host.Host, v.scope.network.Name, v.remedy()), nil
		}
	}
	return phases.Done, nil
}

// A seat is where control planes are, or may be.
type seat struct {
	who      string
	networks []vcd.Ref // of the NICs, by what is known of them
}

// together reports control planes in networks between which ARP moves no address. With BGP they may be in any.
func (v virtualIPs) together(ctx context.Context) (phases.Outcome, error) {
	if v.kube().BGP != nil {
		return phases.Done, nil
	}
	seats, err := v.zoneSeats(ctx)
	if err != nil {
		return phases.Done, err
	}
	machines, err := v.machineSeats(ctx)
	if err != nil {
		return phases.Done, err
	}
	home := v.scope.network.Ref
	for _, s := range append(seats, machines...) {
		if home == (vcd.Ref{}) {
			home = s.networks[0]
		}
		if !slices.ContainsFunc(s.networks, func(n vcd.Ref) bool { return sameNetwork(n, home) }) {
			return phases.Fail(session.RemedyPoll, infrav1.ControlPlanesApartReason,
				"%s is in network %s, not in %s, and ARP moves a virtual IP within one network only: set "+
					"spec.endpoint.kubeVIP.bgp, use an endpoint of type EdgeGateway or External, or "+
					"put all control planes into one network", s.who, nameOf(s.networks[0]), nameOf(home)), nil
		}
	}
	return phases.Done, nil
}

// zoneSeats returns the zones that control planes of the cluster may be in and that have networks of their own.
func (v virtualIPs) zoneSeats(ctx context.Context) ([]seat, error) {
	if v.scope.vcdCluster.Spec.FailureDomainSelector == nil {
		return nil, nil
	}
	list := &infrav1.VCDDeploymentZoneList{}
	if err := v.scope.reconciler.Client.List(ctx, list, client.InNamespace(v.scope.vcdCluster.Namespace)); err != nil {
		return nil, fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	zones, err := placement.Select(v.scope.vcdCluster, list.Items)
	if err != nil {
		return nil, nil //nolint:nilerr // zones are selected elsewhere, which reports it
	}
	var seats []seat
	for _, z := range zones {
		s := seat{who: "VCDDeploymentZone " + z.Name}
		for i, name := range z.Spec.PlacementConstraint.Networks {
			network := vcd.Ref{Name: name}
			if i < len(z.Status.Networks) {
				network = vcd.Ref{ID: z.Status.Networks[i].ID, Name: z.Status.Networks[i].Name}
			}
			s.networks = append(s.networks, network)
		}
		if ptr.Deref(z.Spec.ControlPlane, true) && len(s.networks) > 0 {
			seats = append(seats, s)
		}
	}
	return seats, nil
}

// machineSeats returns the control planes of the cluster that have networks of their own.
func (v virtualIPs) machineSeats(ctx context.Context) ([]seat, error) {
	machines := &infrav1.VCDMachineList{}
	if err := v.scope.reconciler.Client.List(ctx, machines, client.InNamespace(v.scope.vcdCluster.Namespace),
		session.OfCluster(v.scope.cluster.Name), client.HasLabels{clusterv1.MachineControlPlaneLabel},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	var seats []seat
	for i := range machines.Items {
		m := &machines.Items[i]
		s := seat{who: "Control plane " + m.Name}
		for _, nic := range m.Spec.Networks {
			s.networks = append(s.networks, vcd.Ref{Name: nic.Name})
		}
		if len(s.networks) > 0 && !slices.Contains(s.networks, vcd.Ref{}) {
			seats = append(seats, s)
		}
	}
	return seats, nil
}

// sameNetwork reports whether two networks are one, by their URNs if both are known. A name may be a URN.
func sameNetwork(a, b vcd.Ref) bool {
	if a.ID != "" && b.ID != "" {
		return a.ID == b.ID
	}
	return a.Name == b.Name || a.ID != "" && a.ID == b.Name || b.ID != "" && b.ID == a.Name
}

func nameOf(network vcd.Ref) string {
	if network.Name != "" {
		return network.Name
	}
	return network.ID
}
