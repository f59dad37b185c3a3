package controllers

import (
	"context"
	"errors"
	"slices"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const gatewayRemedy = "correct spec.loadBalancer.gateways of the VCDCluster, or give its user access"

// findGateways finds the further edge gateways that the VCDCluster names. They are written down before the cloud controller manager is told of
// them: what it makes there is to be found when the cluster is deleted, whatever they are named by then.
func (s *cloudProviderScope) findGateways(ctx context.Context) (outcome, error) {
	c := s.vcdCluster
	if len(c.Spec.LoadBalancer.Gateways) == 0 {
		return done, nil
	}
	opened, out, err := s.Identities.open(ctx, s.Sessions, c)
	if err != nil || out != done {
		return out, err
	}
	s.gateways = map[string]string{}
	noted := urns(c.Annotations[infrav1.LoadBalancerGatewaysAnnotation])
	known := len(noted)
	for _, g := range c.Spec.LoadBalancer.Gateways {
		id, out, err := s.findGateway(ctx, opened, g)
		if err != nil || out != done {
			return out, err
		}
		s.gateways[g.Name] = id
		if !slices.Contains(noted, id) {
			noted = append(noted, id)
		}
	}
	if len(noted) == known {
		return done, nil
	}
	annotate(c, infrav1.LoadBalancerGatewaysAnnotation, strings.Join(noted, ","))
	s.patcher, err = store(ctx, s.Client, c, s.patcher)
	return done, err
}

// findGateway returns the URN of an edge gateway, or says why it has none.
func (s *cloudProviderScope) findGateway(ctx context.Context, opened *session, g infrav1.LoadBalancerGateway) (string, outcome, error) {
	if g.Network == "" {
		found, err := opened.FindGateway(ctx, g.EdgeGateway)
		out, err := gatewayProblem(err)
		return found.ID, out, err
	}
	vdc := vcd.VDC{Ref: vcd.Ref{ID: s.vcdCluster.Status.OVDC.ID, Name: s.vcdCluster.Status.OVDC.Name}}
	network, err := opened.FindNetwork(ctx, vdc, g.Network)
	if err == nil && network.EdgeGateway.ID == "" {
		return "", fail(remedyPoll, infrav1.LoadBalancerInvalidReason,
			"Network %s has no edge gateway: name a routed one in spec.loadBalancer.gateways of the VCDCluster, or an edge gateway", network.Name), nil
	}
	out, err := gatewayProblem(err)
	return network.EdgeGateway.ID, out, err
}

func gatewayProblem(err error) (outcome, error) {
	switch {
	case err == nil:
		return done, nil
	case errors.Is(err, vcd.ErrUnavailable), errors.Is(err, vcd.ErrThrottled), errors.Is(err, vcd.ErrBusy):
		return askProblem(err)
	}
	return lookupProblem(err, infrav1.LoadBalancerInvalidReason, gatewayRemedy)
}
