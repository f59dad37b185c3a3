// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpicloudstack "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/cloudstackconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// cloudStackProvider returns Apache CloudStack's entry in the registry.
func cloudStackProvider() provider {
	return provider{name: cpicloudstack.ProviderName, load: loadCloudStack}
}

func loadCloudStack(from source) (*configuration, error) {
	c, ca, warnings, err := cloudstackconfig.Parse(from.file, from.env)
	if err != nil {
		return nil, err
	}
	b := c.LoadBalancer
	return &configuration{
		manifest: addons.CloudStackManifestName,
		warnings: warnings,
		about:    []any{"site", c.Global.APIURL, "project", c.Global.ProjectID, "cluster", c.Global.ClusterID},
		settings: cpi.Settings{
			MaxAge:    c.Global.MaxAge.Duration,
			Class:     b.Class,
			ClassOnly: b.ClassOnly,
			Drift:     b.DriftInterval.Duration,
		},
		open: func(h host) (*backend, error) { return openCloudStack(c, ca, cloudStackKeys(from, c), h) },
	}, nil
}

// cloudStackKeys returns a function that rereads the API keys from the configuration file, because they may change. It
// returns nil if the configuration is not in a file. The rest of the configuration is read only at the start.
func cloudStackKeys(from source, c cloudstackconfig.Config) func() (api, secret string) {
	if from.path == "" {
		return nil
	}
	keys := func(c cloudstackconfig.Config) cpicloudstack.Keys {
		return cpicloudstack.Keys{API: c.Global.APIKey, Secret: string(c.Global.SecretKey)}
	}
	return cpicloudstack.NewKeyFile(cpicloudstack.KeyFileOptions{
		Path:  from.path,
		First: keys(c),
		Parse: func(file []byte) (cpicloudstack.Keys, error) {
			now, _, _, err := cloudstackconfig.Parse(file, from.env)
			return keys(now), err
		},
	}).Current
}

func openCloudStack(
	c cloudstackconfig.Config, ca string, keys func() (api, secret string), h host,
) (*backend, error) {
	metrics, err := cloudstack.NewMetrics(legacyregistry.Registerer())
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	client := cloudstack.New(cloudstack.Options{
		URL:       c.Global.APIURL,
		Key:       c.Global.APIKey,
		Secret:    string(c.Global.SecretKey),
		Keys:      keys,
		Project:   c.Global.ProjectID,
		CA:        ca,
		Insecure:  c.Global.SSLNoVerify,
		UserAgent: "cluster-api-provider-vcd-cpi/" + version.String(),
		Timeout:   c.Global.RequestTimeout.Duration,
		Patience:  c.Global.JobTimeout.Duration,
		Metrics:   metrics,
	})
	machines := cpicloudstack.NewMachines(cpicloudstack.MachineOptions{
		Client:      client,
		Zone:        c.Global.Zone,
		Region:      c.Global.Region,
		ProviderIDs: func() []string { return providerIDs(h.nodes) },
	})
	out := &backend{Backend: cpi.Backend{
		Name:      cpicloudstack.ProviderName,
		Machines:  machines,
		Canonical: cpicloudstack.Canonical,
		Explain:   cpicloudstack.Explain(c.Global.APIURL),
		Close:     client.Close,
	}}
	if c.LoadBalancer.Disabled() {
		return out, nil
	}
	if c.Global.ClusterID == "" {
		if c.Global.ClusterID, err = clusterUID(h.client); err != nil {
			return nil, err
		}
	}
	b := c.LoadBalancer
	out.Services = cpicloudstack.Dialect{Algorithm: b.Algorithm}.Defaults(c.Global.ClusterID, b.Networks,
		b.IncludeControlPlane)
	out.Balancer = cpicloudstack.NewBalancer(cpicloudstack.BalancerOptions{
		Client:   client,
		Machines: machines,
		Cluster:  c.Global.ClusterID,
		Network:  b.Network,
		Networks: b.Networks,
		Services: func() []loadbalancer.Owner { return owners(h.services, out.Services) },
		Workers:  func() []service.Member { return workers(h.nodes, b.IncludeControlPlane) },
	})
	return out, nil
}

// owners returns the owners of the load balancers of all Services.
func owners(lister corelisters.ServiceLister, defaults service.Defaults) []loadbalancer.Owner {
	all, err := lister.List(labels.Everything())
	if err != nil {
		return nil // cannot happen: the lister reads a cache
	}
	var out []loadbalancer.Owner
	for _, s := range all {
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer || servicehelpers.HasLBFinalizer(s) {
			out = append(out, defaults.OwnerOf(s))
		}
	}
	return out
}

// clusterUID returns the ID of a cluster whose configuration has none: the UID of the namespace kube-system.
func clusterUID(client kubernetes.Interface) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading namespace %s, whose UID is the id of the cluster (set cluster-id otherwise): %w",
			metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// providerIDs returns the provider IDs of all Nodes.
func providerIDs(lister corelisters.NodeLister) []string {
	all, err := lister.List(labels.Everything())
	if err != nil {
		return nil // cannot happen: the lister reads a cache
	}
	var out []string
	for _, node := range all {
		if node.Spec.ProviderID != "" {
			out = append(out, node.Spec.ProviderID)
		}
	}
	return out
}

// workers returns the Nodes that load balancers may use as members. Control plane Nodes are included only if
// controlPlanes is set.
func workers(lister corelisters.NodeLister, controlPlanes bool) []service.Member {
	all, err := lister.List(labels.Everything())
	if err != nil {
		return nil // cannot happen: the lister reads a cache
	}
	var out []service.Member
	nodes := service.Workers(all)
	if controlPlanes {
		nodes = service.Eligible(all, true)
	}
	for _, node := range nodes {
		out = append(out, service.Member{
			Node:       node.Name,
			ProviderID: node.Spec.ProviderID,
			Addresses:  service.InternalIPs(node),
		})
	}
	return out
}
