// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/balancers"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteEndpoint removes the endpoint from its edge gateway after all machines are gone.
func deleteEndpoint(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	switch id, _ := edgeendpoint.Of(c); {
	case id == "" && hasNoBalancers(c):
		return phases.Done, nil
	case c.Annotations[infrav1.KeepLoadBalancersAnnotation] == "true":
		return phases.Done, nil // The event about the other load balancers lists it, too.
	case !s.reconciler.Endpoints.Idle(c.UID):
		return phases.Wait(intervals.Task, infrav1.TaskRunningReason,
			"Waiting for the creation of endpoint objects to finish"), nil
	}
	on, out, err := findEndpointGateways(ctx, s.login, c)
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
		Wake:     s.wake,
		Now:      s.now,
	}, on), nil
}

// findEndpointGateways logs in and returns the gateways that may have the endpoint: the recorded one, or else the one
// in the spec, or else the current and former gateways of the network.
func findEndpointGateways(ctx context.Context, with *login, c *infrav1.VCDCluster) (balancers.Gateways, phases.Result, error) {
	on, out, err := findGateways(ctx, with, c)
	if err != nil || out != phases.Done {
		return on, out, err
	}
	id, out, err := endpointGateway(ctx, on.Session, c)
	switch {
	case out.IsProblem() && !ownership.Established(c):
		return balancers.Gateways{}, phases.Done, nil // Nothing was created on a gateway that was never found.
	case err != nil || out != phases.Done:
		return balancers.Gateways{}, out, err
	case id == "":
		return on, phases.Done, nil
	}
	here := balancers.On([]vcd.Ref{{ID: id}})
	here.Session = on.Session
	here.VDC = on.VDC
	here.Connected = on.Connected
	return here, phases.Done, nil
}
