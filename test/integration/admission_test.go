// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// TestAdmissionRejectsInvalidClusters sends invalid VCDClusters to a real API server with the shipped schema, CEL rules
// and webhooks.
func TestAdmissionRejectsInvalidClusters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	clusters := []struct {
		name  string
		mod   func(*infrav1.VCDClusterSpec)
		names string
	}{
		{name: "a site without https", mod: func(c *infrav1.VCDClusterSpec) { c.Site = "http://vcd.example.com" }, names: "spec.site"},
		{name: "a site with a path", mod: func(c *infrav1.VCDClusterSpec) { c.Site = "https://vcd.example.com/api" }, names: "spec.site"},
		{name: "an infrastructure ID that is not a UUID", mod: func(c *infrav1.VCDClusterSpec) { c.InfraID = "prod" }, names: "spec.infraID"},
		{name: "no organization", mod: func(c *infrav1.VCDClusterSpec) { c.Org = "" }, names: "spec.org"},
		{
			name:  "an invalid virtual IP",
			mod:   func(c *infrav1.VCDClusterSpec) { c.ControlPlaneEndpoint.Host = "192.168.100.0/24" },
			names: "spec.controlPlaneEndpoint",
		},
		{
			name:  "a loopback virtual IP",
			mod:   func(c *infrav1.VCDClusterSpec) { c.ControlPlaneEndpoint.Host = "127.0.0.1" },
			names: "spec.controlPlaneEndpoint",
		},
		{
			name: "a pool beside another address source",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.KubeVIP.PoolRefs = []infrav1.IPPoolReference{{
					APIGroup: "ipam.cluster.x-k8s.io",
					Kind:     "InClusterIPPool",
					Name:     "vips",
				}}
			},
			names: "spec.controlPlaneLoadBalancer.kubeVIP.poolRefs",
		},
		{
			name: "a secondary pool without a primary pool",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.KubeVIP.SecondaryPoolRefs = []infrav1.IPPoolReference{{
					APIGroup: "ipam.cluster.x-k8s.io",
					Kind:     "InClusterIPPool",
					Name:     "vips",
				}}
			},
			names: "spec.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs",
		},
		{
			name: "BGP beside dynamic DNS",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.KubeVIP = &infrav1.KubeVIPEndpoint{
					AddressSource: infrav1.VIPSourceDHCP,
					BGP: &infrav1.KubeVIPBGP{
						ASNumber:        65001,
						RouterInterface: "ens192",
						Peers:           []infrav1.KubeVIPPeer{{Address: "192.168.100.1", ASNumber: 65000}},
					},
				}
			},
			names: "spec.controlPlaneLoadBalancer.kubeVIP.bgp",
		},
		{
			name: "BGP without peers",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.KubeVIP.BGP = &infrav1.KubeVIPBGP{ASNumber: 65001, RouterInterface: "ens192"}
			},
			names: "spec.controlPlaneLoadBalancer.kubeVIP.bgp.peers",
		},
		{
			name:  "settings of another endpoint type",
			mod:   func(c *infrav1.VCDClusterSpec) { c.ControlPlaneLoadBalancer.Type = infrav1.EndpointExternal },
			names: "spec.controlPlaneLoadBalancer",
		},
		{
			name: "settings of two endpoint types",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.EdgeGateway = &infrav1.EdgeGatewayEndpoint{}
			},
			names: "spec.controlPlaneLoadBalancer.edgeGateway",
		},
		{
			name: "an internal range in two-arm mode",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.OneArm.InternalRange = infrav1.AddressRange{StartIP: "10.0.0.1", EndIP: "10.0.0.9"}
			},
			names: "spec.loadBalancer.oneArm",
		},
		{
			name:  "a managed cloud controller manager without an identity",
			mod:   func(c *infrav1.VCDClusterSpec) { c.CloudProvider.IdentityRef = nil },
			names: "spec.cloudProvider.identityRef",
		},
		{
			name:  "no cloud provider mode",
			mod:   func(c *infrav1.VCDClusterSpec) { c.CloudProvider = infrav1.CloudProviderSpec{} },
			names: "spec.cloudProvider",
		},
		{
			name:  "an invalid subnet",
			mod:   func(c *infrav1.VCDClusterSpec) { c.LoadBalancer.VIPSubnet = "10.0.0.1" },
			names: "spec.loadBalancer.vipSubnet",
		},
		{
			name: "a further gateway without an edge gateway or network",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{{Name: "dmz"}}
			},
			names: "spec.loadBalancer.edgeGateways[0].edgeGateway",
		},
		{
			name: "a further gateway with both an edge gateway and a network",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{{Name: "dmz", EdgeGateway: "dmz", Network: "nodes"}}
			},
			names: "spec.loadBalancer.edgeGateways[0].edgeGateway",
		},
		{
			name: "two further gateways with the same name",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{
					{Name: "dmz", EdgeGateway: "dmz"},
					{Name: "dmz", Network: "nodes"},
				}
			},
			names: "spec.loadBalancer.edgeGateways[1]",
		},
		{
			name:  "an unknown algorithm",
			mod:   func(c *infrav1.VCDClusterSpec) { c.LoadBalancer.Algorithm = "BEST" },
			names: "spec.loadBalancer.algorithm",
		},
		{
			name: "a NIC index that is out of range",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.CloudProvider.Nodes.Addresses.External.NICs = []int32{10}
			},
			names: "spec.cloudProvider.nodes.addresses.external.nics[0]",
		},
		{
			name: "a zone name that is not a valid label value",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.CloudProvider.Nodes.Zones = []infrav1.CloudProviderZone{{Name: "rack a"}}
			},
			names: "spec.cloudProvider.nodes.zones[0].name",
		},
		{
			name: "node settings with an external cloud controller manager",
			mod: func(c *infrav1.VCDClusterSpec) {
				c.CloudProvider = infrav1.CloudProviderSpec{
					Mode:  infrav1.CloudProviderExternal,
					Nodes: infrav1.CloudProviderNodes{Region: "north"},
				}
			},
			names: "spec.cloudProvider.nodes",
		},
	}
	for _, tt := range clusters {
		t.Run(tt.name, func(t *testing.T) {
			c := &infrav1.VCDCluster{
				ObjectMeta: s.meta("refused"),
				Spec: infrav1.VCDClusterSpec{
					Site:                 s.URL(),
					Org:                  "acme",
					OVDC:                 "acme-vdc",
					OVDCNetwork:          "nodes",
					IdentityRef:          infrav1.IdentityReference{Name: "vcd"},
					ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: vip},
					ControlPlaneLoadBalancer: infrav1.ControlPlaneLoadBalancerSpec{
						Type:    infrav1.EndpointKubeVIP,
						KubeVIP: &infrav1.KubeVIPEndpoint{},
					},
					CloudProvider: infrav1.CloudProviderSpec{
						Mode:        infrav1.CloudProviderManaged,
						IdentityRef: &infrav1.IdentityReference{Name: "ccm"},
					},
				},
			}
			tt.mod(&c.Spec)

			err := shared.client.Create(t.Context(), c)

			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.names)))
		})
	}
}

func TestAdmissionRejectsInvalidIdentities(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	identities := []struct {
		name  string
		mod   func(*infrav1.VCDClusterIdentitySpec)
		names string
	}{
		{name: "no site", mod: func(i *infrav1.VCDClusterIdentitySpec) { i.Site = "" }, names: "spec.site"},
		{
			name:  "a site with a path",
			mod:   func(i *infrav1.VCDClusterIdentitySpec) { i.Site = "https://vcd.example.com/api" },
			names: "spec.site",
		},
		{name: "no organizations", mod: func(i *infrav1.VCDClusterIdentitySpec) { i.Orgs = nil }, names: "spec.orgs"},
		{
			name:  "an organization twice",
			mod:   func(i *infrav1.VCDClusterIdentitySpec) { i.Orgs = []string{"acme", "acme"} },
			names: "spec.orgs[1]",
		},
		{
			name:  "an organization beside the wildcard",
			mod:   func(i *infrav1.VCDClusterIdentitySpec) { i.Orgs = []string{"acme", "*"} },
			names: "spec.orgs[1]",
		},
	}
	for _, tt := range identities {
		t.Run(tt.name, func(t *testing.T) {
			i := &infrav1.VCDClusterIdentity{Spec: infrav1.VCDClusterIdentitySpec{
				VCDIdentitySpec: infrav1.VCDIdentitySpec{
					Site:      s.URL(),
					SecretRef: infrav1.LocalSecretReference{Name: "vcd"},
				},
				Orgs: []string{"acme"},
			}}
			i.Name = "refused"
			tt.mod(&i.Spec)

			err := shared.client.Create(t.Context(), i)

			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.names)))
		})
	}
}

// TestAdmissionDoesNotReadTheIdentity checks that admission accepts an identity for another site, which a condition
// reports. The identity may be created after the cluster.
func TestAdmissionDoesNotReadTheIdentity(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.cluster("strayed", func(c *infrav1.VCDCluster) { c.Spec.Site = "https://vcd.example.com" })

	s.g.Eventually(func() (string, error) { return s.state(c, infrav1.IdentityReadyCondition) }, timeout, "50ms").
		Should(HavePrefix("False " + infrav1.SiteNotAllowedReason))

	s.g.Expect(s.Requests()).To(BeEmpty())
	s.g.Eventually(func() error {
		s.g.Expect(s.get(c)).To(Succeed())
		c.Spec.Site = s.URL()
		return shared.client.Update(t.Context(), c)
	}, timeout).Should(Succeed())
	s.ready(c)
	s.deleteCluster("strayed")
}

func TestAdmissionRejectsInvalidMachines(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	machines := []struct {
		name  string
		mod   func(*infrav1.VCDMachineSpec)
		names string
	}{
		{name: "no template", mod: func(m *infrav1.VCDMachineSpec) { m.Template = "" }, names: "spec.template"},
		{
			name:  "a second NIC without a network",
			mod:   func(m *infrav1.VCDMachineSpec) { m.Networks = []infrav1.NetworkSpec{{}, {}} },
			names: "spec.networks",
		},
		{
			name: "static addresses with the source StaticPool",
			mod: func(m *infrav1.VCDMachineSpec) {
				m.Networks = []infrav1.NetworkSpec{{
					AddressSource: infrav1.AddressStaticPool,
					Addresses:     []string{"192.168.100.5/24"},
				}}
			},
			names: "spec.networks",
		},
		{
			name:  "an invalid name server",
			mod:   func(m *infrav1.VCDMachineSpec) { m.Networks = []infrav1.NetworkSpec{{Nameservers: []string{"dns"}}} },
			names: "nameservers",
		},
		{
			name:  "a naming template that does not parse",
			mod:   func(m *infrav1.VCDMachineSpec) { m.VMNamingTemplate = "{{ .machine" },
			names: "spec.vmNamingTemplate",
		},
		{
			name:  "a negative disk size",
			mod:   func(m *infrav1.VCDMachineSpec) { q := resource.MustParse("-1Gi"); m.DiskSize = &q },
			names: "spec.diskSize",
		},
	}
	for _, tt := range machines {
		t.Run(tt.name, func(t *testing.T) {
			m := &infrav1.VCDMachine{
				ObjectMeta: s.meta("refused"),
				Spec:       infrav1.VCDMachineSpec{Catalog: "kubernetes", Template: "any"},
			}
			tt.mod(&m.Spec)

			err := shared.client.Create(t.Context(), m)

			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.names)))
		})
	}
}

func TestImmutableFieldsCannotChange(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.cluster("fixed")
	m := s.machine("fixed", "fixed-0")
	s.ready(m)
	s.g.Eventually(func() (bool, error) {
		return c.Status.Initialization.Provisioned != nil, s.get(c)
	}, timeout).Should(BeTrue())

	// A merge patch, so that concurrent writes of the manager cause no conflict.
	patchSpec := func(obj client.Object, spec string) error {
		return shared.client.Patch(t.Context(), obj,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{`+spec+`}}`)))
	}
	s.g.Expect(patchSpec(c,
		`"controlPlaneEndpoint":{"host":"192.168.100.201","port":6443}`)).To(
		MatchError(ContainSubstring("spec.controlPlaneEndpoint")))
	s.g.Expect(patchSpec(c, `"infraID":"0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"`)).To(MatchError(ContainSubstring("spec.infraID")))
	s.g.Expect(patchSpec(m,
		`"providerID":"vmware-cloud-director://urn:vcloud:vm:00000000-0000-0000-0000-000000000000"`)).To(
		MatchError(ContainSubstring("spec.providerID")))

	s.deleteMachine("fixed-0")
	s.deleteCluster("fixed")
	s.empty()
}
