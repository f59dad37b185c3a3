package cluster

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// hasNodeProxy reports whether nodes of c take their proxy settings from a Secret, or did.
func hasNodeProxy(c *infrav1.VCDCluster) bool {
	return c.Spec.Proxy.HTTPProxy != "" || c.Spec.Proxy.HTTPSProxy != "" ||
		c.Annotations[infrav1.NodeProxyAnnotation] != ""
}

// reconcileNodeProxy writes the Secret with the proxy settings of nodes before any machine is created. What nodes reach
// without the proxy needs network and endpoint.
func reconcileNodeProxy(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	notes.Set(c, infrav1.NodeProxyAnnotation, "true")
	spec := c.Spec.Proxy
	settings := nodeproxy.Settings{
		HTTP: spec.HTTPProxy, HTTPS: spec.HTTPSProxy, Direct: direct(s),
		Version: nodeproxy.Version(spec.HTTPProxy, spec.HTTPSProxy, spec.NoProxy),
	}
	return nodeSecret(s, nodeproxy.SecretSuffix, "the proxy settings of nodes").Write(ctx, settings.Files())
}

// direct returns what nodes reach without the proxy.
func direct(s *scope) []string {
	var networks []netip.Prefix
	for _, subnet := range s.network.Subnets {
		networks = append(networks, subnet.Prefix)
	}
	network := s.cluster.Spec.ClusterNetwork
	return nodeproxy.Cluster{
		Services: network.Services.CIDRBlocks, Pods: network.Pods.CIDRBlocks, ServiceDomain: network.ServiceDomain,
		Endpoint: cmp.Or(s.vcdCluster.Spec.ControlPlaneEndpoint.Host, s.cluster.Spec.ControlPlaneEndpoint.Host),
		Site:     s.vcdCluster.Spec.Site, Networks: networks,
		More: slices.Concat(s.vcdCluster.Status.VirtualIPs, s.vcdCluster.Spec.Proxy.NoProxy),
	}.Direct()
}
