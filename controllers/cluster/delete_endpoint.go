// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteEndpoint removes the endpoint from its edge gateway, when no machine is left that could need it.
func deleteEndpoint(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	switch id, _ := edgeendpoint.Of(c); {
	case id == "" && nothingBalanced(c):
		return phases.Done, nil
	case c.Annotations[infrav1.KeepLoadBalancersAnnotation] == "true":
		return phases.Done, nil // The event of the other load balancers lists it, too.
	case !s.reconciler.Endpoints.Idle(c.UID):
		return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason,
			"Waiting for what is being created for the endpoint"), nil
	}
	on, out, err := (edgeEndpoint{s}).reach(ctx)
	switch {
	case err != nil:
		return out, err
	case out != phases.Done:
		return orLeave(out), nil
	case on.name == "":
		return phases.Done, nil
	}
	return (edgeEndpoint{s}).purge().proceed(ctx, s, on), nil
}

// reach logs in and returns the gateways that the endpoint may be on: the recorded one, else the one that the spec
// names, else those that the network is and was on.
func (s edgeEndpoint) reach(ctx context.Context) (gateways, phases.Outcome, error) {
	on, out, err := balancers(s).reach(ctx)
	if err != nil || out != phases.Done {
		return on, out, err
	}
	c := s.scope.vcdCluster
	recorded, _ := edgeendpoint.Of(c)
	if spec := c.Spec.Endpoint.EdgeGateway; recorded == "" && (spec == nil || spec.Gateway == "") {
		return on, phases.Done, nil
	}
	id, out, err := s.gateway(ctx)
	switch {
	case out.Problem && !established(c):
		return gateways{}, phases.Done, nil // Nothing was created on a gateway that was never found.
	case err != nil || out != phases.Done:
		return gateways{}, out, err
	}
	here := gatewaysOf([]vcd.Ref{{ID: id}})
	here.vdc = on.vdc
	here.connected = on.connected
	return here, phases.Done, nil
}

// purge returns the removal of the endpoint.
func (s edgeEndpoint) purge() *purge {
	p := s.scope.reconciler.endpoints.Of(s.scope.vcdCluster.UID)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun {
		p.begun = true
		p.endpoint = true
		p.missing = map[string]time.Time{}
	}
	return p
}
