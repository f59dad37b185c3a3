// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// deleteBalancers removes what the cloud controller manager of the cluster created on edge gateways. It stopped with
// the last machine, or a little later if it did not run on one, so the gateways are checked once more after something
// was removed. The removal runs beside reconciles, which report its progress. It ends when nothing is left, or when a
// person leaves the rest by annotation; never because it takes long.
func deleteBalancers(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	switch {
	case nothingBalanced(c):
		return phases.Done, nil
	case c.Annotations[infrav1.KeepLoadBalancersAnnotation] == "true":
		return balancers{s}.leave(ctx)
	}
	on, out, err := balancers{s}.reach(ctx)
	switch {
	case err != nil:
		return out, err
	case out != phases.Done:
		return orLeave(out), nil
	case on.name == "":
		return phases.Done, nil
	}
	return balancers{s}.purge().proceed(ctx, s, on), nil
}

// balancers are the load balancers of the cluster.
type balancers struct{ scope *scope }

// nothingBalanced reports whether a cluster can have no load balancers: none is created without an id, or without ever
// having logged in.
func nothingBalanced(c *infrav1.VCDCluster) bool {
	return c.Spec.InfraID == "" || c.Status.OVDCNetwork == nil &&
		c.Annotations[infrav1.CredentialsAcceptedAnnotation] == ""
}

// reach logs in and returns the gateways that load balancers of the cluster may be on.
func (s balancers) reach(ctx context.Context) (gateways, phases.Outcome, error) {
	if out, err := s.scope.open(ctx); err != nil || out != phases.Done {
		return gateways{}, out, err
	}
	return s.gateways(ctx)
}

// orLeave adds to a problem how a person ends the waiting.
func orLeave(out phases.Outcome) phases.Outcome {
	if out.Problem {
		out.Message += fmt.Sprintf(". Load balancers of the cluster may be left: to leave them in VCD, annotate the "+
			"VCDCluster with %s=true", infrav1.KeepLoadBalancersAnnotation)
	}
	return out
}

// purge returns the removal of the cluster's load balancers, which continues that of a former manager.
func (s balancers) purge() *purge {
	p := s.scope.reconciler.purges.Of(s.scope.vcdCluster.UID)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun {
		p.begun = true
		p.removal = notedRemoval(s.scope.vcdCluster, s.scope.now())
		p.missing = map[string]time.Time{}
	}
	return p
}

// leave ends the removal of load balancers, as a person wishes. An event lists what is left, as far as VCD
// shows it now; the deletion does not wait for that.
func (s balancers) leave(ctx context.Context) (phases.Outcome, error) {
	p := s.purge()
	if p.isOver() {
		return phases.Done, nil
	}
	on, out, err := s.reach(ctx)
	unasked := "on " + gatewaysOf(recordedGateways(s.scope.vcdCluster)).name + ", which cannot be asked: "
	switch {
	case ctx.Err() != nil:
		return out, err
	case err != nil:
		p.leave(s.scope, unasked+err.Error())
		return phases.Done, nil //nolint:nilerr // the event has it; a person wants no wait for VCD
	case out != phases.Done:
		p.leave(s.scope, unasked+out.Message)
		return phases.Done, nil
	case on.name == "":
		return phases.Done, nil
	}
	return p.list(ctx, s.scope, on), nil
}
