// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/balancers"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// deleteBalancers removes the objects that the cloud controller manager of the cluster created on edge gateways. The
// cloud controller manager stopped with the last machine, or a little later if it ran elsewhere. The gateways are
// therefore checked again after something was removed.
func deleteBalancers(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	purge := s.reconciler.purges.Of(c.UID)
	request := balancers.Request{
		Client:   s.reconciler.Client,
		Recorder: s.reconciler.Recorder,
		Cluster:  c,
		Wake:     s.wake,
		Now:      s.now,
	}
	switch {
	case hasNoBalancers(c):
		return phases.Done, nil
	case c.Annotations[infrav1.KeepLoadBalancersAnnotation] == "true":
		return leaveBalancers(ctx, s.login, purge, request)
	}
	on, out, err := findGateways(ctx, s.login, c)
	switch {
	case err != nil:
		return out, err
	case out != phases.Done:
		return balancers.OrLeave(out), nil
	case on.Name == "":
		return phases.Done, nil
	}
	return purge.Proceed(ctx, request, on), nil
}

// leaveBalancers ends the removal of load balancers because a user decided so. An event lists the remaining objects, as
// far as VCD shows them now. The deletion does not wait for VCD.
func leaveBalancers(ctx context.Context, with *login, purge *balancers.Purge, request balancers.Request) (
	phases.Result, error,
) {
	if purge.IsOver() {
		return phases.Done, nil
	}
	on, out, err := findGateways(ctx, with, request.Cluster)
	unasked := "on " + balancers.On(recordedGateways(request.Cluster)).Name + ", which cannot be queried: "
	switch {
	case ctx.Err() != nil:
		return out, err
	case err != nil:
		purge.Leave(request, unasked+err.Error())
		return phases.Done, nil //nolint:nilerr // the event contains the error, and the deletion must not wait for VCD
	case out != phases.Done:
		purge.Leave(request, unasked+out.Message)
		return phases.Done, nil
	case on.Name == "":
		return phases.Done, nil
	}
	return purge.LeaveListed(ctx, request, on), nil
}
