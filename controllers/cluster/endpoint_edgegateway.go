// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"net/netip"

	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileEdgeGateway ensures that the endpoint exists on an edge gateway, with the control planes as members.
func reconcileEdgeGateway(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	gateway, out, err := endpointGateway(ctx, s.session, c)
	if err != nil || out != phases.Done {
		return out, err
	}
	if gateway == "" {
		network := s.home.network
		if missing := checks.EndpointRouted(network.Name, network.EdgeGateway); missing != nil {
			s.forgetNetwork() // The network may be connected to a gateway later.
			return problems.OfFinding(missing), nil
		}
		gateway = network.EdgeGateway.ID
	}
	now := s.now()
	recorded, _ := edgeendpoint.Of(s.read)
	plan, out, err := s.reconciler.Endpoints.Ensure(ctx, edgeendpoint.Request{
		Client:  s.reconciler.Client,
		Session: s.session,
		Cluster: c,
		Owner:   s.cluster,
		Gateway: gateway,
		Family:  familyOf(s.home.network),
		Wake:    s.wake,
		Now:     now,
	}, recorded == gateway && s.read.Spec.InfraID != "")
	if err != nil {
		return out, err
	}
	if len(plan.Status.Objects) > 0 || len(plan.Steps) > 0 && len(plan.Refusals) == 0 {
		identify(c, s.home)
		recordEndpoint(c, gateway, plan.Intent)
	}
	if out != phases.Done {
		return out, nil
	}
	publishEndpoint(s.reconciler.Recorder, c, plan)
	s.requeueAfter = edgeendpoint.UntilCheck(now, gateway, c.UID)
	return phases.Done, nil
}

// familyOf returns the family of a network's first subnet.
func familyOf(network vcd.Network) loadbalancer.Family {
	if len(network.Subnets) == 0 {
		return loadbalancer.IPv4
	}
	return loadbalancer.FamilyOf(network.Subnets[0].Prefix.Addr())
}

// recordEndpoint records the gateway and the addresses of the endpoint before any object is created. It restores lost
// records.
func recordEndpoint(c *infrav1.VCDCluster, gateway string, addresses []netip.Addr) {
	c.Spec.RecordedState.EndpointGatewayID = gateway
	if len(addresses) == 0 {
		return
	}
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		texts[i] = a.String()
	}
	c.Spec.RecordedState.EndpointAddresses = texts
}

// publishEndpoint sets the address of a complete endpoint as the control-plane endpoint of the cluster.
func publishEndpoint(r events.EventRecorder, c *infrav1.VCDCluster, plan loadbalancer.Plan) {
	if len(plan.Unused) > 0 {
		c.Spec.RecordedState.EndpointAddresses = nil
	}
	spec := &c.Spec.ControlPlaneEndpoint
	if spec.IsValid() || len(plan.Status.Addresses) == 0 {
		return
	}
	*spec = clusterv1.APIEndpoint{
		Host: cmp.Or(spec.Host, plan.Status.Addresses[0].String()),
		Port: edgeendpoint.Port(c),
	}
	endpointSet(r, c)
}
