// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/balancers"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// recordGateway records the edge gateway of a cluster's network, so that load balancers can be found after the network
// is gone. Former gateways stay recorded.
func recordGateway(r events.EventRecorder, c *infrav1.VCDCluster, gateway vcd.Ref) {
	recorded := &c.Spec.RecordedState
	if gateway.ID == "" || slices.Contains(recorded.EdgeGatewayIDs, gateway.ID) {
		return
	}
	recorded.EdgeGatewayIDs = append(recorded.EdgeGatewayIDs, gateway.ID)
	if len(recorded.EdgeGatewayIDs) > 1 {
		gatewayChanged(r, c, gateway)
	}
}

// recordedGateways returns the current and former edge gateways of a cluster's network, the additional ones of
// spec.loadBalancer, and that of the endpoint, without duplicates.
func recordedGateways(c *infrav1.VCDCluster) []vcd.Ref {
	var found []vcd.Ref
	recorded := &c.Spec.RecordedState
	for _, id := range slices.Concat(recorded.EdgeGatewayIDs, recorded.LoadBalancerGatewayIDs,
		[]string{recorded.EndpointGatewayID}) {
		if ref := (vcd.Ref{ID: id}); id != "" && !slices.Contains(found, ref) {
			found = append(found, ref)
		}
	}
	return found
}

// endpointGateway returns the URN of the gateway of a cluster's endpoint: the recorded one, or else the one in the
// spec. It is empty if the endpoint uses the gateway of the network.
func endpointGateway(ctx context.Context, in *session.Session, c *infrav1.VCDCluster) (string, phases.Result, error) {
	if recorded, _ := edgeendpoint.Of(c); recorded != "" {
		return recorded, phases.Done, nil
	}
	spec := c.Spec.ControlPlaneLoadBalancer.EdgeGateway
	if spec == nil || spec.Name == "" {
		return "", phases.Done, nil
	}
	found, err := in.FindGateway(ctx, spec.Name)
	if err != nil {
		out, err := problems.OfLookup(err, infrav1.EdgeGatewayNotFoundReason,
			"correct spec.controlPlaneLoadBalancer.edgeGateway.name, or grant the user of the identity access to it")
		return "", out.NoAccess(), err
	}
	return found.ID, phases.Done, nil
}

// hasNoBalancers reports whether a cluster cannot have load balancers: none is created before the cluster has an ID and
// has logged in.
func hasNoBalancers(c *infrav1.VCDCluster) bool {
	return c.Spec.InfraID == "" || c.Status.OVDCNetwork == nil &&
		c.Spec.RecordedState.CredentialsAccepted == ""
}

// findGateways logs in and returns the gateways that may have load balancers of the cluster: the current and former
// ones of its network, and the additional ones of spec.loadBalancer. A network that is not found proves nothing: it may
// be deleted or hidden.
func findGateways(ctx context.Context, with *login, c *infrav1.VCDCluster) (balancers.Gateways, phases.Result, error) {
	in, out, err := with.open(ctx)
	if err != nil || out != phases.Done {
		return balancers.Gateways{}, out, err
	}
	network, vdc, out, err := findNetwork(ctx, in, c)
	if err != nil || out != phases.Done {
		return balancers.Gateways{}, out, err
	}
	on := gatewaysWith(c, network)
	on.Session = in
	on.VDC = vdc
	on.Connected = network.EdgeGateway.ID
	return on, phases.Done, nil
}

// gatewaysWith returns the recorded gateways of a cluster and that of its network. The network is zero if it was not
// found.
func gatewaysWith(c *infrav1.VCDCluster, network vcd.Network) balancers.Gateways {
	refs := recordedGateways(c)
	gateway := network.EdgeGateway
	i := slices.IndexFunc(refs, func(g vcd.Ref) bool { return g.ID == gateway.ID })
	found := ownership.Established(c) || c.Status.OVDCNetwork != nil
	switch {
	case i >= 0:
		refs[i] = gateway
	case gateway.ID != "":
		refs = append(refs, gateway)
	case len(c.Spec.RecordedState.EdgeGatewayIDs) == 0 && network.ID == "" && found:
		return lostGateway(c.Spec.OVDCNetwork, refs)
	case len(refs) == 0:
		return balancers.Gateways{} // A network that was never found or is not routed cannot have load balancers.
	}
	return balancers.On(refs)
}

// lostGateway returns the gateways of a cluster whose network no longer shows its edge gateway.
func lostGateway(network string, others []vcd.Ref) balancers.Gateways {
	on := balancers.On(others)
	name := "the edge gateway of network " + network
	if len(others) > 0 {
		name += " and " + on.Name
	}
	on.Name = name
	on.Lost = fmt.Errorf("%w: network %s, which determines the edge gateway, is deleted or not visible",
		loadbalancer.ErrRefused, network)
	return on
}

// findNetwork returns the network of a cluster, and its VDC. Each is zero if it was not found.
func findNetwork(ctx context.Context, in *session.Session, c *infrav1.VCDCluster) (network vcd.Network, vdc vcd.VDC,
	out phases.Result, err error,
) {
	name := placement.NetworkName(c)
	vdc, out, err = session.VDCOf(ctx, in, c)
	if err != nil || out != phases.Done {
		if out.Reason == infrav1.VDCNotFoundReason { // the URN of a VDC that was found earlier is recorded
			out = phases.Done
		}
		return vcd.Network{}, vcd.VDC{}, out, err
	}
	network, err = in.FindNetwork(ctx, vdc, name)
	switch {
	case errors.Is(err, vcd.ErrNotFound), name == "":
		return vcd.Network{}, vdc, phases.Done, nil
	case err != nil:
		out, err := problems.OfRead(err, "Reading network "+name)
		return vcd.Network{}, vdc, out, err
	}
	return network, vdc, phases.Done, nil
}
