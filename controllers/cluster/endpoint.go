// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// reconcileEndpoint makes sure that the control-plane endpoint is known and prepared.
func reconcileEndpoint(ctx context.Context, s *scope) (phases.Outcome, error) {
	switch s.vcdCluster.Spec.Endpoint.Type {
	case infrav1.EndpointKubeVIP, "":
		return virtualIPs{s}.reconcile(ctx)
	case infrav1.EndpointExternal:
		return s.reconcileExternal(), nil
	case infrav1.EndpointEdgeGateway:
		return (edgeEndpoint{s}).reconcile(ctx)
	}
	return phases.Stop(infrav1.NotSupportedReason, "Endpoints of type %s are not supported: correct spec.endpoint.type",
		s.vcdCluster.Spec.Endpoint.Type), nil
}

// reconcileExternal waits for an endpoint that is provided externally.
func (s *scope) reconcileExternal() phases.Outcome {
	if given := &s.vcdCluster.Spec.ControlPlaneEndpoint; given.Host != "" {
		given.Port = cmp.Or(given.Port, kubevip.DefaultPort)
	}
	if s.vcdCluster.Spec.ControlPlaneEndpoint.IsValid() || s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return phases.Done
	}
	return phases.Wait(0, infrav1.WaitingForEndpointReason,
		"Waiting for spec.controlPlaneEndpoint of the VCDCluster or of the Cluster")
}
