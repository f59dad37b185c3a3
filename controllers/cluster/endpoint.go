// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// reconcileEndpoint ensures that the control-plane endpoint is known and prepared.
func reconcileEndpoint(ctx context.Context, s *scope) (phases.Result, error) {
	switch s.vcdCluster.Spec.ControlPlaneLoadBalancer.Type {
	case infrav1.EndpointKubeVIP, "":
		return reconcileKubeVIP(ctx, s)
	case infrav1.EndpointExternal:
		return awaitExternal(s.vcdCluster, s.cluster), nil
	case infrav1.EndpointEdgeGateway:
		return reconcileEdgeGateway(ctx, s)
	}
	return phases.Stop(infrav1.NotSupportedReason, "Endpoints of type %s are not supported: correct spec.controlPlaneLoadBalancer.type",
		s.vcdCluster.Spec.ControlPlaneLoadBalancer.Type), nil
}

// awaitExternal waits for an endpoint that is provided externally.
func awaitExternal(c *infrav1.VCDCluster, cluster *clusterv1.Cluster) phases.Result {
	if given := &c.Spec.ControlPlaneEndpoint; given.Host != "" {
		given.Port = cmp.Or(given.Port, kubevip.DefaultPort)
	}
	if c.Spec.ControlPlaneEndpoint.IsValid() || cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return phases.Done
	}
	return phases.Wait(0, infrav1.WaitingForEndpointReason,
		"Waiting for spec.controlPlaneEndpoint of the VCDCluster or of the Cluster")
}
