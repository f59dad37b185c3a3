// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
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
	secret := nodeSecret(s, nodeproxy.SecretSuffix, "the proxy settings of nodes")
	kept, err := networksOfLostZones(ctx, s, secret)
	if err != nil {
		return phases.Done, err
	}
	ofZones = append(ofZones, kept...)
	spec := c.Spec.Proxy
	settings := nodeproxy.Settings{
		HTTP:    spec.HTTPProxy,
		HTTPS:   spec.HTTPSProxy,
		Direct:  direct(s, ofZones),
		Version: nodeproxy.Version(spec.HTTPProxy, spec.HTTPSProxy, spec.NoProxy),
	}
	return secret.Write(ctx, settings.Files())
}

// networksOfZones returns the subnets of the networks that nodes have in usable zones.
func networksOfZones(ctx context.Context, s *scope) ([]netip.Prefix, phases.Outcome, error) {
	var subnets []netip.Prefix
	for _, zone := range s.failureDomains.usable {
		if zone.Status.OVDC == nil || len(zone.Status.Networks) == 0 {
			continue
		}
		opened, out, err := s.reconciler.Identities.OpenZone(ctx, s.reconciler.Sessions, zone.VCDDeploymentZone)
		if err != nil || out != phases.Done {
			return nil, out, err
		}
		vdc := vcd.VDC{Ref: vcd.Ref{ID: zone.Status.OVDC.ID, Name: zone.Status.OVDC.Name}}
		for _, ref := range zone.Status.Networks {
			network, err := opened.FindNetwork(ctx, vdc, ref.ID)
			if err != nil {
				out, err := hidden(session.LookupProblem(err, infrav1.NetworkNotFoundReason,
					"connect the network to the VDC, or see VCDDeploymentZone "+zone.Name))
				return nil, out, err
			}
			for _, subnet := range network.Subnets {
				subnets = append(subnets, subnet.Prefix)
			}
		}
	}
	return subnets, phases.Done, nil
}

// networksOfLostZones returns the networks that the Secret has, if there are machines in zones that cannot be used now:
// which are those of such a zone is not known, and its nodes run on.
func networksOfLostZones(ctx context.Context, s *scope, secret nodesecret.Secret) ([]netip.Prefix, error) {
	machines := &infrav1.VCDMachineList{}
	if err := s.reconciler.Client.List(ctx, machines, client.InNamespace(s.vcdCluster.Namespace),
		session.OfCluster(s.cluster.Name), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	isLost := func(m infrav1.VCDMachine) bool {
		name := m.Annotations[infrav1.DeploymentZoneAnnotation]
		return name != "" && !slices.ContainsFunc(s.failureDomains.usable, func(z placement.Zone) bool {
			return z.Name == name
		})
	}
	if !slices.ContainsFunc(machines.Items, isLost) {
		return nil, nil
	}
	data, err := secret.Read(ctx)
	return nodeproxy.NetworksOf(data, s.vcdCluster.Spec.Proxy.NoProxy), err
}

// direct returns what nodes reach without the proxy.
func direct(s *scope, networks []netip.Prefix) []string {
	for _, subnet := range s.network.Subnets {
		networks = append(networks, subnet.Prefix)
	}
	site := s.vcdCluster.Spec.Site
	if s.vcdCluster.Spec.Proxy.Site == infrav1.SiteByProxy {
		site = ""
	}
	network := s.cluster.Spec.ClusterNetwork
	return nodeproxy.Cluster{
		Services:      network.Services.CIDRBlocks,
		Pods:          network.Pods.CIDRBlocks,
		ServiceDomain: network.ServiceDomain,
		Endpoint:      cmp.Or(s.vcdCluster.Spec.ControlPlaneEndpoint.Host, s.cluster.Spec.ControlPlaneEndpoint.Host),
		Site:          site,
		Networks:      networks,
		More:          slices.Concat(s.vcdCluster.Status.VirtualIPs, s.vcdCluster.Spec.Proxy.NoProxy),
	}.Direct()
}
