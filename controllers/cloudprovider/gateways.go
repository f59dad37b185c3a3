// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"slices"

	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const gatewayRemedy = "correct spec.loadBalancer.edgeGateways of the VCDCluster, or grant its user access"

// findGateways finds the additional edge gateways in the spec. It records them before they are added to the
// configuration of the cloud controller manager, so that its objects can be found when the cluster is deleted, even if
// the gateways have been renamed by then.
func (s *scope) findGateways(ctx context.Context) (phases.Result, error) {
	c := s.vcdCluster
	if len(c.Spec.LoadBalancer.EdgeGateways) == 0 {
		return phases.Done, nil
	}
	opened, out, err := s.reconciler.Identities.Open(ctx, s.reconciler.Sessions, c)
	if err != nil || out != phases.Done {
		return out, err
	}
	s.gateways = map[string]string{}
	noted := slices.Clone(c.Spec.RecordedState.LoadBalancerGatewayIDs)
	known := len(noted)
	for _, g := range c.Spec.LoadBalancer.EdgeGateways {
		id, out, err := s.findGateway(ctx, opened, g)
		if err != nil || out != phases.Done {
			return out, err
		}
		s.gateways[g.Name] = id
		if !slices.Contains(noted, id) {
			noted = append(noted, id)
		}
	}
	if len(noted) == known {
		return phases.Done, nil
	}
	c.Spec.RecordedState.LoadBalancerGatewayIDs = noted
	return phases.Done, s.patcher.Save(ctx)
}

// allowBalancers records that the cloud controller manager may create load balancers, before it is installed. From then
// on, the deletion of the cluster waits for their removal, even if the spec changes.
func (s *scope) allowBalancers(ctx context.Context) (phases.Result, error) {
	c := s.vcdCluster
	if !checks.CreatesBalancers(c) ||
		c.Spec.RecordedState.LoadBalancersAllowed != nil {
		return phases.Done, nil
	}
	c.Spec.RecordedState.LoadBalancersAllowed = ptr.To(true)
	return phases.Done, s.patcher.Save(ctx)
}

// findGateway returns the URN of an edge gateway, or the problem that prevents its use.
func (s *scope) findGateway(ctx context.Context, opened *session.Session, g infrav1.LoadBalancerGateway) (string, phases.Result, error) {
	if g.Network == "" {
		found, err := opened.FindGateway(ctx, g.EdgeGateway)
		out, err := lookupProblem(err, infrav1.LoadBalancerInvalidReason, gatewayRemedy)
		return found.ID, out, err
	}
	vdc := vcd.VDC{Ref: vcd.Ref{ID: s.vcdCluster.Status.OVDC.ID, Name: s.vcdCluster.Status.OVDC.Name}}
	network, err := opened.FindNetwork(ctx, vdc, g.Network)
	if err == nil && network.EdgeGateway.ID == "" {
		return "", phases.Fail(intervals.Remedy, infrav1.LoadBalancerInvalidReason,
			"Network %s has no edge gateway: name a routed network or an edge gateway in spec.loadBalancer.edgeGateways of the VCDCluster", network.Name), nil
	}
	out, err := lookupProblem(err, infrav1.LoadBalancerInvalidReason, gatewayRemedy)
	return network.EdgeGateway.ID, out, err
}

// lookupProblem returns why an object that the spec names was not found.
func lookupProblem(err error, reason, remedy string) (phases.Result, error) {
	switch {
	case err == nil:
		return phases.Done, nil
	case errors.Is(err, vcd.ErrUnavailable), errors.Is(err, vcd.ErrThrottled), errors.Is(err, vcd.ErrBusy):
		return problems.OfRequest(err)
	}
	return problems.OfLookup(err, reason, remedy)
}
