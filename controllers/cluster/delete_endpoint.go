// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/balancers"
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
		return balancers.OrLeave(out), nil
	case on.Name == "":
		return phases.Done, nil
	}
	return s.reconciler.endpoints.Of(c.UID).Proceed(ctx, balancers.Request{
		Client:   s.reconciler.Client,
		Recorder: s.reconciler.Recorder,
		Cluster:  c,
		Endpoint: true,
		Wake:     s.reconciler.wakeUps.ForObject(c),
		Now:      s.now,
	}, on), nil
}

// reach logs in and returns the gateways that the endpoint may be on: the recorded one, else the one that the spec
// names, else those that the network is and was on.
func (s edgeEndpoint) reach(ctx context.Context) (balancers.Gateways, phases.Outcome, error) {
	on, out, err := s.scope.findGateways(ctx)
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
		return balancers.Gateways{}, phases.Done, nil // Nothing was created on a gateway that was never found.
	case err != nil || out != phases.Done:
		return balancers.Gateways{}, out, err
	}
	here := balancers.On([]vcd.Ref{{ID: id}})
	here.Session = on.Session
	here.VDC = on.VDC
	here.Connected = on.Connected
	return here, phases.Done, nil
}
