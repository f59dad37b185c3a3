// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestVCDClusterFeatures(t *testing.T) {
	vips := infrav1.IPPoolReference{Name: "vips", Kind: "InClusterIPPool", APIGroup: "ipam.cluster.x-k8s.io"}
	tests := []rejection[*infrav1.VCDCluster]{
		{
			"all zones",
			func(c *infrav1.VCDCluster) { c.Spec.FailureDomainSelector = &metav1.LabelSelector{} },
			nil,
			"",
		},
		{
			"a selector that can select nothing",
			func(c *infrav1.VCDCluster) {
				c.Spec.FailureDomainSelector = &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}},
				}
			},
			[]string{"spec.failureDomainSelector.matchExpressions[0].operator"},
			"not a valid selector operator",
		},
		{
			"a host beside pools that give it",
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneEndpoint.Host = "192.168.100.200"
				c.Spec.ControlPlaneLoadBalancer.KubeVIP = &infrav1.KubeVIPEndpoint{
					AddressSource: infrav1.VIPSourceIPAM,
					PoolRefs:      []infrav1.IPPoolReference{vips},
				}
			},
			[]string{"spec.controlPlaneEndpoint.host"},
			"remove the host",
		},
		{
			"a cluster that had its host from pools",
			func(c *infrav1.VCDCluster) {
				c.Spec.InfraID = "7d8f5b8e-0000-4000-8000-000000000000"
				c.Spec.ControlPlaneEndpoint.Host = "192.168.100.200"
				c.Spec.ControlPlaneLoadBalancer.KubeVIP = &infrav1.KubeVIPEndpoint{
					AddressSource: infrav1.VIPSourceIPAM,
					PoolRefs:      []infrav1.IPPoolReference{vips},
				}
			},
			nil,
			"",
		},
		{
			"an identity of its own",
			func(c *infrav1.VCDCluster) {
				c.Spec.CloudProvider = infrav1.CloudProviderSpec{
					Mode:        infrav1.CloudProviderManaged,
					IdentityRef: &infrav1.IdentityReference{Name: "ccm"},
				}
			},
			nil,
			"",
		},
		{
			"an identity of its own that is several namespaces'",
			func(c *infrav1.VCDCluster) {
				c.Spec.CloudProvider = infrav1.CloudProviderSpec{
					Mode:        infrav1.CloudProviderManaged,
					IdentityRef: &infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "ccm"},
				}
			},
			[]string{"spec.cloudProvider.identityRef.kind"},
			"VCDIdentity",
		},
		{
			"one of its own beside a cluster's that is several namespaces'",
			func(c *infrav1.VCDCluster) {
				c.Spec.IdentityRef.Kind = infrav1.ClusterIdentity
				c.Spec.CloudProvider = infrav1.CloudProviderSpec{
					Mode:        infrav1.CloudProviderManaged,
					IdentityRef: &infrav1.IdentityReference{Name: "ccm"},
				}
			},
			nil,
			"",
		},
		{
			"an identity of several namespaces without a cloud controller manager of ours",
			func(c *infrav1.VCDCluster) {
				c.Spec.IdentityRef.Kind = infrav1.ClusterIdentity
				c.Spec.CloudProvider.Mode = infrav1.CloudProviderExternal
			},
			nil,
			"",
		},
		{
			"a proxy",
			func(c *infrav1.VCDCluster) {
				c.Spec.Proxy = infrav1.ProxySpec{
					HTTPProxy:  "http://user:p%40ss@proxy:3128/",
					HTTPSProxy: "https://[fd00::1]:3129",
					NoProxy:    []string{"mirror", ".corp.example.com", "10.0.0.0/8", "fd00::/8", "10.1.1.1", "registry:5000"},
				}
			},
			nil,
			"",
		},
		{
			"a proxy without scheme",
			func(c *infrav1.VCDCluster) {
				c.Spec.Proxy = infrav1.ProxySpec{HTTPProxy: "proxy.example.com:3128", HTTPSProxy: "//proxy"}
			},
			[]string{"spec.proxy.httpProxy", "spec.proxy.httpsProxy"},
			"must begin with http:// or https://",
		},
		{
			"a proxy that breaks out of its file",
			func(c *infrav1.VCDCluster) {
				c.Spec.Proxy.HTTPProxy = "http://proxy:3128\"; Evil \""
				c.Spec.Proxy.HTTPSProxy = "http://proxy\n[Service]\nExecStart=/bin/evil"
			},
			[]string{"spec.proxy.httpProxy", "spec.proxy.httpsProxy"},
			"without spaces and quotes",
		},
		{
			"a proxy without a host",
			func(c *infrav1.VCDCluster) { c.Spec.Proxy.HTTPProxy = "http://:3128" },
			[]string{"spec.proxy.httpProxy"},
			"must have a host",
		},
		{
			"a proxy with a path",
			func(c *infrav1.VCDCluster) { c.Spec.Proxy.HTTPSProxy = "http://me:canary@proxy/wpad.dat" },
			[]string{"spec.proxy.httpsProxy"},
			`"http://me:xxxxx@proxy/wpad.dat": must not have a path, query or fragment after host and port`,
		},
		{
			"hosts without a proxy",
			func(c *infrav1.VCDCluster) { c.Spec.Proxy.NoProxy = []string{"mirror"} },
			[]string{"spec.proxy.noProxy"},
			"requires a proxy",
		},
		{
			"what cannot be reached directly",
			func(c *infrav1.VCDCluster) {
				c.Spec.Proxy.HTTPProxy = "http://proxy:3128"
				c.Spec.Proxy.NoProxy = []string{"a,b", "*.example.com", "https://mirror", "10.0.0.0/33", "a b", "fe80::1%{{x}}"}
			},
			[]string{
				"spec.proxy.noProxy[0]", "spec.proxy.noProxy[1]", "spec.proxy.noProxy[2]", "spec.proxy.noProxy[3]",
				"spec.proxy.noProxy[4]", "spec.proxy.noProxy[5]",
			},
			"must be one host",
		},
		{
			"one-arm load balancing",
			func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.ArmMode = infrav1.ArmModeOneArm },
			nil,
			"",
		},
		{
			"one-arm load balancing without an end",
			func(c *infrav1.VCDCluster) {
				c.Spec.LoadBalancer.OneArm = infrav1.OneArmSpec{InternalRange: infrav1.AddressRange{StartIP: "10.0.0.1"}}
			},
			[]string{"spec.loadBalancer.oneArm.internalRange"},
			"not an address range",
		},
		{"external subnet", func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer.VIPSubnet = "10.0.0.0/24" }, nil, ""},
		{
			"external subnet that is an address",
			func(c *infrav1.VCDCluster) {
				c.Spec.LoadBalancer.VIPSubnet = "10.0.0.1"
				c.Spec.LoadBalancer.InternalSubnets = []string{"10.4.0.0"}
			},
			[]string{"spec.loadBalancer.vipSubnet", "spec.loadBalancer.internalSubnets[0]"},
			"CIDR",
		},
		{
			"runtime defined entity",
			func(c *infrav1.VCDCluster) { c.Spec.RDE.Mode = infrav1.RDEProject },
			nil,
			"",
		},
		{
			"a runtime defined entity that exists",
			func(c *infrav1.VCDCluster) {
				c.Spec.RDE = infrav1.RDESpec{
					Mode: infrav1.RDEProject,
					ID:   "urn:vcloud:entity:vmware:capvcdCluster:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e",
				}
			},
			nil,
			"",
		},
		{
			"a runtime defined entity of another kind",
			func(c *infrav1.VCDCluster) {
				c.Spec.RDE = infrav1.RDESpec{Mode: infrav1.RDEProject, ID: "urn:vcloud:entity:x"}
			},
			[]string{"spec.rde.id"},
			"capvcdCluster:<UUID>",
		},
		{
			"a kubeconfig for no entity",
			func(c *infrav1.VCDCluster) { c.Spec.RDE.IncludeKubeconfig = ptr.To(true) },
			[]string{"spec.rde.includeKubeconfig"},
			"mode is Project",
		},
		{
			"deletion of disks of which nothing proves that they are not needed",
			func(c *infrav1.VCDCluster) {
				c.Spec.OrphanedDiskPolicy = infrav1.OrphanedDiskDelete
				c.Spec.VApp.Layout = infrav1.VAppPerMachine
			},
			[]string{"spec.orphanedDiskPolicy"},
			"PerMachine",
		},
		{
			"deletion of disks",
			func(c *infrav1.VCDCluster) { c.Spec.OrphanedDiskPolicy = infrav1.OrphanedDiskDelete },
			nil,
			"",
		},
		{
			"metadata of vApps that VCD would reject",
			func(c *infrav1.VCDCluster) {
				c.Spec.VAppMetadata = []infrav1.MetadataEntry{{Key: "a/b", Value: ptr.To("1")}}
			},
			[]string{"spec.vAppMetadata[0].key"},
			"without / ? # %",
		},
		{
			"metadata of vApps with the mark of CAPVCD",
			func(c *infrav1.VCDCluster) {
				c.Spec.VAppMetadata = []infrav1.MetadataEntry{
					{Key: "team", Value: ptr.To("a")},
					{Key: "CapvcdInfraId", Value: ptr.To("1")},
				}
			},
			[]string{"spec.vAppMetadata[1].key"},
			"reserved",
		},
		{"vApps of machines", func(c *infrav1.VCDCluster) { c.Spec.VApp.Layout = infrav1.VAppPerMachine }, nil, ""},
		{"a whole spec", func(*infrav1.VCDCluster) {}, nil, ""},
		{
			"an external cloud controller manager",
			func(c *infrav1.VCDCluster) { c.Spec.CloudProvider.Mode = infrav1.CloudProviderExternal },
			nil,
			"",
		},
		{
			"an object without defaults",
			func(c *infrav1.VCDCluster) {
				c.Spec.VApp = infrav1.VAppSpec{}
				c.Spec.RDE = infrav1.RDESpec{}
				c.Spec.CloudProvider = infrav1.CloudProviderSpec{}
				c.Spec.OrphanedDiskPolicy = ""
			},
			nil,
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.checkCreate(t, clusterValidator(), cluster()) })
	}
}

func TestVCDClusterCloudProviderValues(t *testing.T) {
	balancer := func(spec infrav1.LoadBalancerSpec) func(*infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) { c.Spec.LoadBalancer = spec }
	}
	edge := func(e infrav1.EdgeGatewayEndpoint) func(*infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) {
			c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{Type: infrav1.EndpointEdgeGateway, EdgeGateway: &e}
		}
	}
	gateway := func(g infrav1.LoadBalancerGateway) func(*infrav1.VCDCluster) {
		return balancer(infrav1.LoadBalancerSpec{EdgeGateways: []infrav1.LoadBalancerGateway{
			{
				Name:        "ok",
				EdgeGateway: "ok",
			},
			g,
		}})
	}
	nodes := func(n infrav1.CloudProviderNodes) func(*infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) { c.Spec.CloudProvider.Nodes = n }
	}
	internal := func(s infrav1.AddressSelection) func(*infrav1.VCDCluster) {
		return nodes(infrav1.CloudProviderNodes{Addresses: infrav1.CloudProviderAddresses{Internal: s}})
	}
	ccm := func(image string) func(*infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) { c.Spec.CloudProvider.Image = image }
	}
	tests := []rejection[*infrav1.VCDCluster]{
		{
			"a class",
			balancer(infrav1.LoadBalancerSpec{Class: &infrav1.LoadBalancerClassSpec{Name: "example.com/vcd"}}),
			nil,
			"",
		},
		{
			"a class that no Service can have",
			balancer(infrav1.LoadBalancerSpec{Class: &infrav1.LoadBalancerClassSpec{Name: "my class"}}),
			[]string{"spec.loadBalancer.class.name"},
			"name part",
		},
		{
			"kube-vip for Services",
			serves(infrav1.KubeVIPServices{Class: "example.com/kube-vip", Interface: "ens192", Image: "registry.example.com/kube-vip:v0.9.1"}),
			nil,
			"",
		},
		{
			"kube-vip for Services of a class that none can have",
			serves(infrav1.KubeVIPServices{Class: "my class"}),
			[]string{"spec.loadBalancer.kubeVIP.class"},
			"name part",
		},
		{
			"an image of a registry with an IPv6 address",
			serves(infrav1.KubeVIPServices{Image: "[fd00::5]:5000/kube-vip/kube-vip:v0.9.1"}),
			nil,
			"",
		},
		{
			"an image with characters that kube-vip's manifest cannot have",
			serves(infrav1.KubeVIPServices{Image: "registry.example.com/{{x}}:v0.9.1"}),
			[]string{"spec.loadBalancer.kubeVIP.image"},
			"must be the reference of an image",
		},
		{
			"an interface with characters that kube-vip's manifest cannot have",
			serves(infrav1.KubeVIPServices{Interface: "eth0@if2"}),
			[]string{"spec.loadBalancer.kubeVIP.interface"},
			"must be the name of a network interface",
		},
		{
			"kube-vip for Services on the loopback interface",
			serves(infrav1.KubeVIPServices{Interface: "lo"}),
			[]string{"spec.loadBalancer.kubeVIP.interface"},
			"loopback",
		},
		{
			"kube-vip for Services without a cloud controller manager of the provider",
			func(c *infrav1.VCDCluster) {
				serves(infrav1.KubeVIPServices{})(c)
				c.Spec.CloudProvider.Mode = infrav1.CloudProviderExternal
			},
			[]string{"spec.loadBalancer.kubeVIP"},
			"cloudProvider.mode Managed",
		},
		{
			"addresses of Services that end before they begin",
			serves(infrav1.KubeVIPServices{}, infrav1.AddressRange{StartIP: "10.0.0.20", EndIP: "10.0.0.10"}),
			[]string{"spec.loadBalancer.kubeVIP.addressRanges[1]"},
			"is before its start",
		},
		{
			"addresses of Services that overlap",
			serves(infrav1.KubeVIPServices{}, infrav1.AddressRange{StartIP: "192.168.100.219", EndIP: "192.168.100.230"}),
			[]string{"spec.loadBalancer.kubeVIP.addressRanges[1]"},
			"overlaps 192.168.100.210 to 192.168.100.219",
		},
		{
			"addresses of Services that are multicast",
			serves(infrav1.KubeVIPServices{}, infrav1.AddressRange{StartIP: "224.0.0.1", EndIP: "224.0.0.2"}),
			[]string{"spec.loadBalancer.kubeVIP.addressRanges[1].startIP", "spec.loadBalancer.kubeVIP.addressRanges[1].endIP"},
			"unicast",
		},
		{
			"addresses of Services with the control plane endpoint",
			func(c *infrav1.VCDCluster) {
				serves(infrav1.KubeVIPServices{})(c)
				c.Spec.ControlPlaneEndpoint.Host = "192.168.100.215"
			},
			[]string{"spec.loadBalancer.kubeVIP.addressRanges[0]"},
			"contains the host of controlPlaneEndpoint",
		},
		{
			"an image of the cloud controller manager with the manager's version",
			ccm("registry.example.com/mirror/ccm"),
			nil,
			"",
		},
		{"one with a tag", ccm("registry.example.com/mirror/ccm:v2.0.0"), nil, ""},
		{"one without a registry", ccm("ccm:v2.0.0"), []string{"spec.cloudProvider.image"}, "begin with a registry"},
		{
			"one that changes",
			ccm("registry.example.com/ccm:latest"),
			[]string{"spec.cloudProvider.image"},
			"the tag latest",
		},
		{
			"an endpoint on a gateway by the URN of a network",
			edge(infrav1.EdgeGatewayEndpoint{Name: "urn:vcloud:network:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"}),
			[]string{"spec.controlPlaneLoadBalancer.edgeGateway.name"},
			"urn:vcloud:gateway:<UUID>",
		},
		{
			"an endpoint on two addresses of a family",
			edge(infrav1.EdgeGatewayEndpoint{SecondaryAddress: "203.0.113.2"}),
			[]string{"spec.controlPlaneLoadBalancer.edgeGateway.secondaryAddress"},
			"the other IP family",
		},
		{
			"an endpoint with an extra port that is its own",
			edge(infrav1.EdgeGatewayEndpoint{ExtraPorts: []infrav1.EndpointPort{{Port: 8132}, {Port: 6443}}}),
			[]string{"spec.controlPlaneLoadBalancer.edgeGateway.extraPorts[1].port"},
			"the port of the endpoint",
		},
		{
			"an endpoint in one-arm mode with IPv6",
			edge(infrav1.EdgeGatewayEndpoint{
				SecondaryAddress: "2001:db8::1",
				ArmMode:          infrav1.ArmModeOneArm,
			}),
			[]string{"spec.controlPlaneLoadBalancer.edgeGateway.armMode"},
			"IPv6 address 2001:db8::1",
		},
		{
			"an endpoint with a second address and no first",
			func(c *infrav1.VCDCluster) {
				edge(infrav1.EdgeGatewayEndpoint{SecondaryAddress: "2001:db8::1"})(c)
				c.Spec.ControlPlaneEndpoint.Host = ""
			},
			[]string{"spec.controlPlaneLoadBalancer.edgeGateway.secondaryAddress"},
			"controlPlaneEndpoint.host",
		},
		{
			"a further gateway by the URN of a network",
			gateway(infrav1.LoadBalancerGateway{
				Name:        "dmz",
				EdgeGateway: "urn:vcloud:network:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e",
			}),
			[]string{"spec.loadBalancer.edgeGateways[1].edgeGateway"},
			"urn:vcloud:gateway:<UUID>",
		},
		{
			"a further gateway with a subnet that is none",
			gateway(infrav1.LoadBalancerGateway{Name: "dmz", EdgeGateway: "dmz", VIPSubnet: "10.0.0.1"}),
			[]string{"spec.loadBalancer.edgeGateways[1].vipSubnet"},
			"CIDR",
		},
		{
			"a further gateway with a range that is none",
			gateway(infrav1.LoadBalancerGateway{
				Name:        "dmz",
				EdgeGateway: "dmz",
				ArmMode:     infrav1.ArmModeOneArm,
				OneArm:      infrav1.OneArmSpec{InternalRange: infrav1.AddressRange{StartIP: "x", EndIP: "y"}},
			}),
			[]string{"spec.loadBalancer.edgeGateways[1].oneArm.internalRange"},
			"not an address range",
		},
		{
			"zones with a policy each, and one for the rest",
			nodes(infrav1.CloudProviderNodes{
				Zones: []infrav1.CloudProviderZone{
					{Name: "a", PlacementPolicy: "rack-a"},
					{Name: "b", PlacementPolicy: "rack-b"},
					{Name: "rest"},
				},
			}),
			nil,
			"",
		},
		{
			"a policy of two zones",
			nodes(infrav1.CloudProviderNodes{
				Zones: []infrav1.CloudProviderZone{
					{Name: "a", PlacementPolicy: "rack-a"},
					{Name: "b", PlacementPolicy: "rack-a"},
				},
			}),
			[]string{"spec.cloudProvider.nodes.zones[1].placementPolicy"},
			"rack-a",
		},
		{"addresses in a network", internal(infrav1.AddressSelection{CIDRs: []string{"fd00::/8"}}), nil, ""},
		{
			"addresses in what is no network",
			internal(infrav1.AddressSelection{CIDRs: []string{"fd00::/8", "10.0.0.0"}}),
			[]string{"spec.cloudProvider.nodes.addresses.internal.cidrs[1]"},
			"CIDR",
		},
		{
			"addresses not in what is no network",
			internal(infrav1.AddressSelection{Exclude: []string{"all"}}),
			[]string{"spec.cloudProvider.nodes.addresses.internal.exclude[0]"},
			"CIDR",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.checkCreate(t, clusterValidator(), cluster()) })
	}
}

func TestVCDClusterValues(t *testing.T) {
	vip := func(address string) func(c *infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) { c.Spec.ControlPlaneEndpoint.Host = address }
	}
	host := func(host string, port int32) func(c *infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) {
			c.Spec.ControlPlaneLoadBalancer.KubeVIP = nil
			c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: host, Port: port}
		}
	}
	image := func(image string) func(c *infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) { c.Spec.ControlPlaneLoadBalancer.KubeVIP.Image = image }
	}
	nic := func(name string) func(c *infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) { c.Spec.ControlPlaneLoadBalancer.KubeVIP.Interface = name }
	}
	vApp := func(name string) func(c *infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) { c.Spec.VApp.Name = name }
	}
	var (
		address      = []string{"spec.controlPlaneEndpoint.host"}
		endpointHost = []string{"spec.controlPlaneEndpoint.host"}
		imageField   = []string{"spec.controlPlaneLoadBalancer.kubeVIP.image"}
		nicField     = []string{"spec.controlPlaneLoadBalancer.kubeVIP.interface"}
		vAppField    = []string{"spec.vApp.name"}
	)
	tests := []rejection[*infrav1.VCDCluster]{
		{"a virtual IP of version 6 is one", vip("2001:db8::10"), nil, ""},
		{"a virtual IP can be behind a name", vip("api.example.com"), nil, ""},
		{"a virtual IP has no prefix length", vip("10.0.0.10/24"), address, "must be an IP address or a DNS name"},
		{"a virtual IP is not unspecified", vip("0.0.0.0"), address, "unicast"},
		{"a virtual IP is not loopback", vip("127.0.0.1"), address, "unicast"},
		{"a virtual IP is not loopback of version 6", vip("::1"), address, "unicast"},
		{"a virtual IP is not multicast", vip("224.0.0.18"), address, "unicast"},
		{"a virtual IP is not link-local", vip("169.254.1.1"), address, "unicast"},
		{"a virtual IP is not the broadcast address", vip("255.255.255.255"), address, "unicast"},
		{"a virtual IP is not mapped", vip("::ffff:10.0.0.10"), address, "plain address"},
		{"a virtual IP has no zone", vip("2001:db8::10%eth0"), address, "plain address"},

		{"an endpoint can be a name", host("api.example.com", 6443), nil, ""},
		{"an endpoint can be an address", host("10.0.0.10", 6443), nil, ""},
		{"an endpoint is not a URL", host("https://api.example.com", 6443), endpointHost, "without scheme and port"},
		{"an endpoint is not loopback", host("127.0.0.1", 6443), endpointHost, "unicast"},
		{"an endpoint has the port that the user wants", host("10.0.0.10", 443), nil, ""},

		{
			"a pool has a group without version",
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneEndpoint.Host = ""
				c.Spec.ControlPlaneLoadBalancer.KubeVIP = &infrav1.KubeVIPEndpoint{
					PoolRefs: []infrav1.IPPoolReference{{
						Name:     "vips",
						Kind:     "InClusterIPPool",
						APIGroup: "ipam.cluster.x-k8s.io/v1alpha2",
					}},
				}
			},
			[]string{"spec.controlPlaneLoadBalancer.kubeVIP.poolRefs[0].apiGroup"},
			"without a version",
		},
		{
			"a virtual IP can come from a pool",
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneEndpoint.Host = ""
				c.Spec.ControlPlaneLoadBalancer.KubeVIP = &infrav1.KubeVIPEndpoint{
					PoolRefs: []infrav1.IPPoolReference{{
						Name:     "vips",
						Kind:     "InClusterIPPool",
						APIGroup: "ipam.cluster.x-k8s.io",
					}},
				}
			},
			nil,
			"",
		},

		{
			"two virtual IPs of one family",
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneLoadBalancer.KubeVIP.SecondaryAddress = "192.168.100.201"
			},
			[]string{"spec.controlPlaneLoadBalancer.kubeVIP.secondaryAddress"},
			"the other IP family",
		},
		{
			"two virtual IPs",
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneLoadBalancer.KubeVIP.SecondaryAddress = "fd00::1"
			},
			nil,
			"",
		},

		{"a VDC can have a name", func(c *infrav1.VCDCluster) { c.Spec.OVDC = "urn of acme" }, nil, ""},
		{
			"a VDC can have a URN",
			func(c *infrav1.VCDCluster) {
				c.Spec.OVDC = "urn:vcloud:vdc:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
			},
			nil,
			"",
		},
		{
			"a VDC is no network",
			func(c *infrav1.VCDCluster) {
				c.Spec.OVDC = "urn:vcloud:network:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
			},
			[]string{"spec.ovdc"},
			"urn:vcloud:vdc:<UUID>",
		},
		{
			"a URN is whole",
			func(c *infrav1.VCDCluster) { c.Spec.OVDCNetwork = "urn:vcloud:network:0dd1f8c2" },
			[]string{"spec.ovdcNetwork"},
			"urn:vcloud:network:<UUID>",
		},

		{"an image has registry and tag", image("registry.example.com:5000/kube-vip/kube-vip:v1.0.0"), nil, ""},
		{"an image has registry and digest", image("ghcr.io/kube-vip/kube-vip@sha256:0123456789abcdef"), nil, ""},
		{"an image is not without registry", image("kube-vip/kube-vip:v1.0.0"), imageField, "begin with a registry"},
		{"an image is not without tag", image("registry.example.com:5000/kube-vip"), imageField, "tag or digest"},
		{"an image is not a URL", image("https://ghcr.io/kube-vip/kube-vip:v1"), imageField, "without scheme"},

		{"an interface has a name", nic("ens192"), nil, ""},
		{"an interface is not the loopback", nic("lo"), nicField, "loopback"},
		{
			"an interface is the loopback with BGP",
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneLoadBalancer.KubeVIP.Interface = "lo"
				c.Spec.ControlPlaneLoadBalancer.KubeVIP.BGP = bgp("192.168.100.1")
			},
			nil,
			"",
		},
		{"an interface has no space", nic("eth 0"), nicField, "such as eth0"},

		{"a vApp can have a name of its own", vApp("Production: acme #1"), nil, ""},
		{"the name of a vApp can be asked for", vApp("Production (acme)"), vAppField, "must not contain any of"},
		{"the name of a vApp is short enough", vApp(strings.Repeat("a", 129)), vAppField, "at most 128"},
		{"the name of a vApp has no space at its end", vApp("a "), vAppField, "space"},
		{
			"the cluster's name is short enough for its vApp",
			func(c *infrav1.VCDCluster) { c.Name = strings.Repeat("a", 129) },
			[]string{"metadata.name"},
			"spec.vApp.name",
		},
		{
			"a long cluster's name is fine where the vApp has another",
			func(c *infrav1.VCDCluster) {
				c.Name = strings.Repeat("a", 129)
				c.Spec.VApp.Name = "a"
			},
			nil,
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.checkCreate(t, clusterValidator(), cluster()) })
	}
}

// bgp has peers with the addresses.
func bgp(addresses ...string) *infrav1.KubeVIPBGP {
	spec := &infrav1.KubeVIPBGP{ASNumber: 65000, RouterInterface: "ens192"}
	for _, address := range addresses {
		spec.Peers = append(spec.Peers, infrav1.KubeVIPPeer{Address: address, ASNumber: 65001})
	}
	return spec
}

func TestVCDClusterKubeVIPValues(t *testing.T) {
	with := func(host string, vip infrav1.KubeVIPEndpoint) func(*infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) {
			c.Spec.ControlPlaneEndpoint.Host = host
			c.Spec.ControlPlaneLoadBalancer.KubeVIP = &vip
		}
	}
	pool := infrav1.IPPoolReference{Name: "vips", Kind: "InClusterIPPool", APIGroup: "ipam.cluster.x-k8s.io"}
	source := bgp("192.168.100.1")
	source.SourceInterface = "a b"
	const (
		at   = "spec.controlPlaneLoadBalancer.kubeVIP."
		ipv4 = "203.0.113.10"
		ipv6 = "2001:db8::10"
	)
	dynamic := infrav1.KubeVIPEndpoint{AddressSource: infrav1.VIPSourceDHCP}
	tests := []rejection[*infrav1.VCDCluster]{
		{"a name of dynamic DNS", with("api.example.com", dynamic), nil, ""},
		{
			"a name that is an address",
			with("10.0.0.10", dynamic),
			[]string{"spec.controlPlaneEndpoint.host"},
			"must be a DNS name",
		},
		{
			"a name in upper case",
			with("API.example.com", infrav1.KubeVIPEndpoint{}),
			[]string{"spec.controlPlaneEndpoint.host"},
			"lower case",
		},
		{
			"several pools",
			with("", infrav1.KubeVIPEndpoint{
				PoolRefs:          []infrav1.IPPoolReference{pool, pool},
				SecondaryPoolRefs: []infrav1.IPPoolReference{pool},
			}),
			nil,
			"",
		},
		{
			"a second pool without a name",
			with("", infrav1.KubeVIPEndpoint{
				PoolRefs:          []infrav1.IPPoolReference{pool},
				SecondaryPoolRefs: []infrav1.IPPoolReference{{APIGroup: "a"}},
			}),
			[]string{at + "secondaryPoolRefs[0].name"},
			"",
		},
		{"BGP", with(ipv4, infrav1.KubeVIPEndpoint{BGP: bgp("192.168.100.1")}), nil, ""},
		{
			"BGP to a name",
			with(ipv4, infrav1.KubeVIPEndpoint{BGP: bgp("router.example.com")}),
			[]string{at + "bgp.peers[0].address"},
			"IPv4 or IPv6 address",
		},
		{
			"BGP without a peer of a family",
			with(ipv4, infrav1.KubeVIPEndpoint{SecondaryAddress: ipv6, BGP: bgp("192.168.100.1")}),
			[]string{at + "bgp.peers"},
			"no peer has the IP family",
		},
		{
			"BGP with a peer of each family",
			with(ipv4, infrav1.KubeVIPEndpoint{SecondaryAddress: ipv6, BGP: bgp("192.168.100.1", "fd00::1")}),
			nil,
			"",
		},
		{
			"BGP from an interface that is none",
			with(ipv4, infrav1.KubeVIPEndpoint{BGP: source}),
			[]string{at + "bgp.sourceInterface"},
			"such as eth0",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.checkCreate(t, clusterValidator(), cluster()) })
	}
}

func TestExternalEndpointWithoutHostWarns(t *testing.T) {
	g := NewWithT(t)
	c := cluster()
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
	c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{Type: infrav1.EndpointExternal}

	warnings, err := clusterValidator().ValidateCreate(request(false), c)

	g.Expect(err).ToNot(HaveOccurred())
	g.Expect(warnings).To(ConsistOf(ContainSubstring("spec.controlPlaneEndpoint")))
}

// serves has kube-vip announce a range, and more, for Services.
func serves(kube infrav1.KubeVIPServices, more ...infrav1.AddressRange) func(*infrav1.VCDCluster) {
	kube.AddressRanges = append([]infrav1.AddressRange{{StartIP: "192.168.100.210", EndIP: "192.168.100.219"}}, more...)
	return func(c *infrav1.VCDCluster) {
		c.Spec.CloudProvider.Mode = infrav1.CloudProviderManaged
		c.Spec.LoadBalancer.KubeVIP = kube.DeepCopy()
	}
}
