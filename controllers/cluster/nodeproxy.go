// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// hasNodeProxy reports whether nodes of the cluster take their proxy settings from a Secret, or did so earlier.
func hasNodeProxy(s *scope) bool {
	c := s.vcdCluster
	return c.Spec.Proxy.HTTPProxy != "" || c.Spec.Proxy.HTTPSProxy != "" ||
		c.Spec.RecordedState.NodeProxy != nil
}

// reconcileNodeProxy writes the Secret with the proxy settings of nodes before any machine is created. It needs the
// network and the endpoint to determine the destinations that nodes reach without the proxy.
func reconcileNodeProxy(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	usable := s.failureDomains.usable
	c.Spec.RecordedState.NodeProxy = ptr.To(true)
	networks, out, err := networksOfZones(ctx, s.login, usable)
	if err != nil || out != phases.Done {
		return out, err
	}
	secret := s.nodeSecret(nodeproxy.SecretSuffix, "the proxy settings of nodes")
	lost, err := networksOfLostZones(ctx, s.reconciler.Client, c, usable, secret)
	if err != nil {
		return phases.Done, err
	}
	networks = append(networks, lost...)
	for _, subnet := range s.home.network.Subnets {
		networks = append(networks, subnet.Prefix)
	}
	spec := c.Spec.Proxy
	proxy, out, err := proxyURLs(ctx, s.reconciler.Secrets, c)
	if err != nil || out != phases.Done {
		return out, err
	}
	settings := nodeproxy.Settings{
		HTTP:    proxy.http,
		HTTPS:   proxy.https,
		Direct:  direct(c, s.cluster, networks),
		Version: nodeproxy.Version(spec.HTTPProxy, spec.HTTPSProxy, spec.NoProxy),
	}
	return secret.Write(ctx, settings.Files())
}

// A proxy holds the URLs of a cluster's proxies, including their credentials.
type proxy struct{ http, https string }

// proxyURLs returns the proxies of a cluster, with the credentials from the Secret if there is one.
func proxyURLs(ctx context.Context, live client.Reader, c *infrav1.VCDCluster) (proxy, phases.Result, error) {
	spec := c.Spec.Proxy
	if spec.CredentialsSecretRef.Name == "" || spec.HTTPProxy == "" && spec.HTTPSProxy == "" {
		return proxy{http: spec.HTTPProxy, https: spec.HTTPSProxy}, phases.Done, nil
	}
	key := client.ObjectKey{Namespace: c.Namespace, Name: spec.CredentialsSecretRef.Name}
	secret := &corev1.Secret{}
	if err := live.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return proxy{}, phases.Done, fmt.Errorf("getting Secret %s: %w", key, err)
	}
	username := strings.TrimSpace(string(secret.Data[infrav1.SecretUsername])) // Editors add white space.
	password := strings.TrimSpace(string(secret.Data[infrav1.SecretPassword]))
	if username == "" || password == "" {
		return proxy{}, phases.Fail(intervals.Remedy, infrav1.ProxyCredentialsMissingReason, "Secret %s has no keys username and password: create it, or correct spec.proxy.credentialsSecretRef", key.Name), nil
	}
	httpProxy, err1 := nodeproxy.WithCredentials(spec.HTTPProxy, username, password)
	httpsProxy, err2 := nodeproxy.WithCredentials(spec.HTTPSProxy, username, password)
	return proxy{http: httpProxy, https: httpsProxy}, phases.Done, errors.Join(err1, err2)
}

// networksOfZones returns the subnets of the networks that nodes in usable zones are attached to.
func networksOfZones(ctx context.Context, with *login, usable []placement.Zone) ([]netip.Prefix, phases.Result, error) {
	var subnets []netip.Prefix
	for _, zone := range usable {
		if zone.Status.OVDC == nil || len(zone.Status.Networks) == 0 {
			continue
		}
		opened, out, err := with.openZone(ctx, zone.VCDDeploymentZone)
		if err != nil || out != phases.Done {
			return nil, out, err
		}
		vdc := vcd.VDC{Ref: vcd.Ref{ID: zone.Status.OVDC.ID, Name: zone.Status.OVDC.Name}}
		for _, ref := range zone.Status.Networks {
			network, err := opened.FindNetwork(ctx, vdc, ref.ID)
			if err != nil {
				out, err := problems.OfLookup(err, infrav1.NetworkNotFoundReason,
					"connect the network to the VDC, or check VCDDeploymentZone "+zone.Name)
				return nil, out.NoAccess(), err
			}
			for _, subnet := range network.Subnets {
				subnets = append(subnets, subnet.Prefix)
			}
		}
	}
	return subnets, phases.Done, nil
}

// networksOfLostZones returns the networks in the Secret if there are machines in zones that cannot be used now. Which
// of the networks belong to these zones is unknown, and their nodes still run.
func networksOfLostZones(ctx context.Context, reader client.Reader, c *infrav1.VCDCluster, usable []placement.Zone,
	secret nodesecret.Secret,
) ([]netip.Prefix, error) {
	machines := &infrav1.VCDMachineList{}
	if err := reader.List(ctx, machines, client.InNamespace(c.Namespace), index.OfCluster(secret.Cluster),
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	isLost := func(m infrav1.VCDMachine) bool {
		name := m.Spec.RecordedState.DeploymentZone
		return name != "" && !slices.ContainsFunc(usable, func(z placement.Zone) bool { return z.Name == name })
	}
	if !slices.ContainsFunc(machines.Items, isLost) {
		return nil, nil
	}
	data, err := secret.Read(ctx)
	return nodeproxy.NetworksOf(data, c.Spec.Proxy.NoProxy), err
}

// direct returns the destinations that nodes in the networks reach without the proxy.
func direct(c *infrav1.VCDCluster, cluster *clusterv1.Cluster, networks []netip.Prefix) []string {
	site := c.Spec.Site
	if c.Spec.Proxy.Site == infrav1.SiteByProxy {
		site = ""
	}
	network := cluster.Spec.ClusterNetwork
	return nodeproxy.Cluster{
		Services:      network.Services.CIDRBlocks,
		Pods:          network.Pods.CIDRBlocks,
		ServiceDomain: network.ServiceDomain,
		Endpoint:      cmp.Or(c.Spec.ControlPlaneEndpoint.Host, cluster.Spec.ControlPlaneEndpoint.Host),
		Site:          site,
		Networks:      networks,
		More:          slices.Concat(c.Status.VirtualIPs, c.Spec.Proxy.NoProxy),
	}.Direct()
}
