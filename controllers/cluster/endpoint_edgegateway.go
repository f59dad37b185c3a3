// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// An edgeEndpoint is the endpoint on an edge gateway.
type edgeEndpoint struct{ scope *scope }

// reconcile makes sure that the endpoint stands, with the control planes as members.
func (s edgeEndpoint) reconcile(ctx context.Context) (phases.Outcome, error) {
	c := s.scope.vcdCluster
	gateway, out, err := s.gateway(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	recorded, _ := edgeendpoint.Of(s.scope.read)
	plan, out, err := s.scope.reconciler.Endpoints.Ensure(ctx, edgeendpoint.Request{
		Client:  s.scope.reconciler.Client,
		Session: s.scope.session,
		Cluster: c,
		Owner:   s.scope.cluster,
		Gateway: gateway,
		Family:  familyOf(s.scope.network),
		Wake:    s.scope.reconciler.wakeUps.ForObject(c),
		Now:     s.scope.now(),
	}, recorded == gateway && s.scope.read.Spec.InfraID != "")
	if err != nil {
		return out, err
	}
	if len(plan.Status.Objects) > 0 || len(plan.Steps) > 0 && len(plan.Refusals) == 0 {
		s.record(gateway, plan)
	}
	if out != phases.Done {
		return out, nil
	}
	s.publish(plan)
	s.scope.requeueAfter = edgeendpoint.UntilCheck(s.scope.now(), gateway, c.UID)
	return phases.Done, nil
}

// record stores, before anything is created, the id that its objects carry, the gateway that they are on, and
// the addresses that they take. What was lost is stored again.
func (s edgeEndpoint) record(gateway string, plan lb.Plan) {
	c := s.scope.vcdCluster
	s.scope.identify()
	notes.Set(c, infrav1.EndpointGatewayAnnotation, gateway)
	if len(plan.Intent) > 0 {
		texts := make([]string, len(plan.Intent))
		for i, a := range plan.Intent {
			texts[i] = a.String()
		}
		notes.Set(c, infrav1.EndpointAddressesAnnotation, strings.Join(texts, ","))
	}
}

// publish makes the address of a complete endpoint that of the cluster.
func (s edgeEndpoint) publish(plan lb.Plan) {
	c := s.scope.vcdCluster
	if len(plan.Unused) > 0 {
		delete(c.Annotations, infrav1.EndpointAddressesAnnotation)
	}
	spec := &c.Spec.ControlPlaneEndpoint
	if spec.IsValid() || len(plan.Status.Addresses) == 0 {
		return
	}
	*spec = clusterv1.APIEndpoint{
		Host: cmp.Or(spec.Host, plan.Status.Addresses[0].String()),
		Port: edgeendpoint.Port(c),
	}
	endpointKnown(s.scope.reconciler.Recorder, c)
}

// gateway returns the URN of the endpoint's gateway: the recorded one, else the one that the spec names, else
// that of the network.
func (s edgeEndpoint) gateway(ctx context.Context) (string, phases.Outcome, error) {
	c := s.scope.vcdCluster
	if recorded, _ := edgeendpoint.Of(c); recorded != "" {
		return recorded, phases.Done, nil
	}
	if spec := c.Spec.Endpoint.EdgeGateway; spec != nil && spec.Gateway != "" {
		found, err := s.scope.session.FindGateway(ctx, spec.Gateway)
		if err != nil {
			out, err := hidden(session.LookupProblem(err, infrav1.GatewayNotFoundReason,
				"correct spec.endpoint.edgeGateway.gateway, or give the user of the identity access to it"))
			return "", out, err
		}
		return found.ID, phases.Done, nil
	}
	if s.scope.network.EdgeGateway.ID == "" {
		s.scope.session.ForgetNetwork(s.scope.vdc, s.scope.network.Ref) // It may be connected to one.
		s.scope.reconciler.homes.Drop(c.UID)
		return "", phases.Fail(session.RemedyPoll, infrav1.GatewayNotFoundReason, "Network %s is not connected to an "+
			"edge gateway: connect it, or name the gateway in spec.endpoint.edgeGateway.gateway", s.scope.network.Name), nil
	}
	return s.scope.network.EdgeGateway.ID, phases.Done, nil
}

// familyOf returns the family of a network's first subnet.
func familyOf(network vcd.Network) lb.Family {
	if len(network.Subnets) == 0 {
		return lb.IPv4
	}
	return lb.FamilyOf(network.Subnets[0].Prefix.Addr())
}
