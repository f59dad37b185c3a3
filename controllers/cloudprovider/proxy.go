// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// usesProxy reports whether the cloud controller manager of a cluster reaches VCD through a proxy.
func usesProxy(c *infrav1.VCDCluster) bool {
	return c.Spec.Proxy.Site == infrav1.SiteByProxy && c.Spec.Proxy.HTTPSProxy != ""
}

// findNodeProxy reads the URL of the proxy, and the networks of the nodes, from the proxy settings of the nodes.
// Networks of an earlier proxy suffice, because a working proxy is more important than complete exceptions.
func (s *scope) findNodeProxy(ctx context.Context) (phases.Result, error) {
	if !usesProxy(s.vcdCluster) {
		return phases.Done, nil
	}
	data, err := nodesecret.Secret{
		Secrets: s.reconciler.Secrets,
		Owner:   s.vcdCluster,
		Cluster: s.cluster.Name,
		Suffix:  nodeproxy.SecretSuffix,
	}.Read(ctx)
	if err != nil {
		return phases.Done, err
	}
	spec := s.vcdCluster.Spec.Proxy
	s.httpsProxy = spec.HTTPSProxy
	if spec.CredentialsSecretRef.Name != "" {
		_, s.httpsProxy = nodeproxy.URLsOf(data)
	}
	if data == nil || s.httpsProxy == "" {
		return phases.Wait(addon.ApplyPoll, infrav1.WaitingForEarlierPhaseReason,
			"Waiting for "+infrav1.NodeProxyReadyCondition), nil
	}
	s.nodeNetworks = nodeproxy.NetworksOf(data, spec.NoProxy)
	return phases.Done, nil
}

// proxy returns the Secret with the variables of the cluster's proxy, if VCD is reached through it. The API server and
// the nodes are reached directly.
func (s *scope) proxy() ([]unstructured.Unstructured, error) {
	if !usesProxy(s.vcdCluster) {
		return nil, nil
	}
	spec := s.vcdCluster.Spec.Proxy
	network := s.cluster.Spec.ClusterNetwork
	secret, err := addons.Proxy(s.httpsProxy, nodeproxy.Cluster{
		Services:      network.Services.CIDRBlocks,
		Pods:          network.Pods.CIDRBlocks,
		ServiceDomain: network.ServiceDomain,
		Endpoint:      s.endpoint().Host,
		Networks:      s.nodeNetworks,
		More: slices.Concat(
			[]string{s.vcdCluster.Spec.ControlPlaneEndpoint.Host},
			s.vcdCluster.Status.VirtualIPs,
			spec.NoProxy,
		),
	}.Direct())
	return []unstructured.Unstructured{secret}, err
}
