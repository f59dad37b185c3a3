// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/balancers"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// recordGateway records the edge gateway of the cluster's network: its load balancers must be found, too, when the
// network is gone. Former ones stay recorded.
func (s *scope) recordGateway(gateway vcd.Ref) {
	c := s.vcdCluster
	known := knownGateways(c)
	if gateway.ID != "" && notes.AddURN(c, infrav1.EdgeGatewaysAnnotation, gateway.ID) && len(known) > 0 {
		gatewayChanged(s.reconciler.Recorder, c, gateway)
	}
}

// knownGateways are the URNs of the edge gateways that the network of a cluster was on.
func knownGateways(c *infrav1.VCDCluster) []string {
	return notes.URNs(c.Annotations[infrav1.EdgeGatewaysAnnotation])
}

// recordedGateways are these, the further ones of spec.loadBalancer, and that of the endpoint, each once.
func recordedGateways(c *infrav1.VCDCluster) []vcd.Ref {
	var found []vcd.Ref
	for _, id := range slices.Concat(knownGateways(c),
		notes.URNs(c.Annotations[infrav1.LoadBalancerGatewaysAnnotation]),
		notes.URNs(c.Annotations[infrav1.EndpointGatewayAnnotation])) {
		if ref := (vcd.Ref{ID: id}); !slices.Contains(found, ref) {
			found = append(found, ref)
		}
	}
	return found
}

// findGateways logs in and returns the gateways that load balancers of the cluster may be on: those that its network is
// and was on, and the further ones of spec.loadBalancer. A network that is not found proves nothing: it is gone, or is
// not shown.
func (s *scope) findGateways(ctx context.Context) (balancers.Gateways, phases.Outcome, error) {
	if out, err := s.open(ctx); err != nil || out != phases.Done {
		return balancers.Gateways{}, out, err
	}
	network, vdc, out, err := s.findNetwork(ctx)
	if err != nil || out != phases.Done {
		return balancers.Gateways{}, out, err
	}
	on := gatewaysWith(s.vcdCluster, network)
	on.Session = s.session
	on.VDC = vdc
	on.Connected = network.EdgeGateway.ID
	return on, phases.Done, nil
}

// gatewaysWith returns the recorded gateways of a cluster and that of its network, which is zero if it was not found.
func gatewaysWith(c *infrav1.VCDCluster, network vcd.Network) balancers.Gateways {
	refs := recordedGateways(c)
	gateway := network.EdgeGateway
	i := slices.IndexFunc(refs, func(g vcd.Ref) bool { return g.ID == gateway.ID })
	switch {
	case i >= 0:
		refs[i] = gateway
	case gateway.ID != "":
		refs = append(refs, gateway)
	case len(knownGateways(c)) == 0 && network.ID == "" && (established(c) || c.Status.OVDCNetwork != nil):
		return lostGateway(c.Spec.OVDCNetwork, refs)
	case len(refs) == 0:
		return balancers.Gateways{} // A network that is not routed, or was never found, has nothing on it.
	}
	return balancers.On(refs)
}

// lostGateway returns the gateways of a cluster whose network does not show its edge gateway any more.
func lostGateway(network string, others []vcd.Ref) balancers.Gateways {
	on := balancers.On(others)
	name := "the edge gateway of network " + network
	if len(others) > 0 {
		name += " and " + on.Name
	}
	on.Name = name
	on.Lost = fmt.Errorf("%w: network %s, which says which edge gateway that is, is deleted or is not shown",
		lb.ErrRefused, network)
	return on
}

// findNetwork returns the cluster's network, a zero one if it is not found, and the VDC of the cluster, if that was
// ever found.
func (s *scope) findNetwork(ctx context.Context) (network vcd.Network, vdc vcd.VDC, out phases.Outcome, err error) {
	name := placement.NetworkName(s.vcdCluster)
	vdc, out, err = session.VDCOf(ctx, s.session, s.vcdCluster)
	if err != nil || out != phases.Done {
		if out.Reason == infrav1.VDCNotFoundReason { // of one that was found before, the URN is recorded
			out = phases.Done
		}
		return vcd.Network{}, vcd.VDC{}, out, err
	}
	network, err = s.session.FindNetwork(ctx, vdc, name)
	switch {
	case errors.Is(err, vcd.ErrNotFound), name == "":
		return vcd.Network{}, vdc, phases.Done, nil
	case err != nil:
		out, err := session.Unread(err, "Reading network "+name)
		return vcd.Network{}, vdc, out, err
	}
	return network, vdc, phases.Done, nil
}
