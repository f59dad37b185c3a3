package cluster

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
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
	ofZones, out, err := networksOfZones(ctx, s)
	if err != nil || out != phases.Done {
		return out, err
	}
	spec := c.Spec.Proxy
	settings := nodeproxy.Settings{
		HTTP: spec.HTTPProxy, HTTPS: spec.HTTPSProxy, Direct: direct(s, ofZones),
		Version: nodeproxy.Version(spec.HTTPProxy, spec.HTTPSProxy, spec.NoProxy),
	}
	return nodeSecret(s, nodeproxy.SecretSuffix, "the proxy settings of nodes").Write(ctx, settings.Files())
}

// networksOfZones returns the subnets of the networks that nodes have in usable zones.
func networksOfZones(ctx context.Context, s *scope) ([]netip.Prefix, phases.Outcome, error) {
	var subnets []netip.Prefix
	for _, zone := range s.failureDomains.usable {
		if zone.Status.OVDC == nil || len(zone.Status.Networks) == 0 {
			continue
		}
		opened, out, err := s.Identities.OpenZone(ctx, s.Sessions, zone.VCDDeploymentZone)
		if err != nil || out != phases.Done {
			return nil, out, err
		}
		vdc := vcd.VDC{Ref: vcd.Ref{ID: zone.Status.OVDC.ID, Name: zone.Status.OVDC.Name}}
		for _, ref := range zone.Status.Networks {
			network, err := opened.FindNetwork(ctx, vdc, ref.ID)
			if err != nil {
				out, err := session.LookupProblem(err, infrav1.NetworkNotFoundReason,
					"connect the network to the VDC, or see VCDDeploymentZone "+zone.Name)
				return nil, out, err
			}
			for _, subnet := range network.Subnets {
				subnets = append(subnets, subnet.Prefix)
			}
		}
	}
	return subnets, phases.Done, nil
}

// direct returns what nodes reach without the proxy.
func direct(s *scope, networks []netip.Prefix) []string {
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
