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
		{"a site without https", func(c *infrav1.VCDClusterSpec) { c.Site = "http://vcd.example.com" }, "spec.site"},
		{"a site with a path", func(c *infrav1.VCDClusterSpec) { c.Site = "https://vcd.example.com/api" }, "spec.site"},
		{"an infrastructure ID that is not a UUID", func(c *infrav1.VCDClusterSpec) { c.InfraID = "prod" }, "spec.infraID"},
		{"no organization", func(c *infrav1.VCDClusterSpec) { c.Org = "" }, "spec.org"},
		{
			"an invalid virtual IP",
			func(c *infrav1.VCDClusterSpec) { c.ControlPlaneEndpoint.Host = "192.168.100.0/24" },
			"spec.controlPlaneEndpoint",
		},
		{
			"a loopback virtual IP",
			func(c *infrav1.VCDClusterSpec) { c.ControlPlaneEndpoint.Host = "127.0.0.1" },
			"spec.controlPlaneEndpoint",
		},
		{
			"a pool beside another address source",
			func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.KubeVIP.PoolRefs = []infrav1.IPPoolReference{{
					APIGroup: "ipam.cluster.x-k8s.io",
					Kind:     "InClusterIPPool",
					Name:     "vips",
				}}
			},
			"spec.controlPlaneLoadBalancer.kubeVIP.poolRefs",
		},
		{
			"a secondary pool without a primary pool",
			func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.KubeVIP.SecondaryPoolRefs = []infrav1.IPPoolReference{{
					APIGroup: "ipam.cluster.x-k8s.io",
					Kind:     "InClusterIPPool",
					Name:     "vips",
				}}
			},
			"spec.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs",
		},
		{
			"BGP beside dynamic DNS",
			func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.KubeVIP = &infrav1.KubeVIPEndpoint{
					AddressSource: infrav1.VIPSourceDHCP,
					BGP: &infrav1.KubeVIPBGP{
						ASNumber:        65001,
						RouterInterface: "ens192",
						Peers:           []infrav1.KubeVIPPeer{{Address: "192.168.100.1", ASNumber: 65000}},
					},
				}
			},
			"spec.controlPlaneLoadBalancer.kubeVIP.bgp",
		},
		{
			"BGP without peers",
			func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.KubeVIP.BGP = &infrav1.KubeVIPBGP{ASNumber: 65001, RouterInterface: "ens192"}
			},
			"spec.controlPlaneLoadBalancer.kubeVIP.bgp.peers",
		},
		{
			"settings of another endpoint type",
			func(c *infrav1.VCDClusterSpec) { c.ControlPlaneLoadBalancer.Type = infrav1.EndpointExternal },
			"spec.controlPlaneLoadBalancer",
		},
		{
			"settings of two endpoint types",
			func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.EdgeGateway = &infrav1.EdgeGatewayEndpoint{}
			},
			"spec.controlPlaneLoadBalancer.edgeGateway",
		},
		{
			"an internal range in two-arm mode",
			func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.OneArm.InternalRange = infrav1.AddressRange{StartIP: "10.0.0.1", EndIP: "10.0.0.9"}
			},
			"spec.loadBalancer.oneArm",
		},
		{
			"a managed cloud controller manager without an identity",
			func(c *infrav1.VCDClusterSpec) { c.CloudProvider.IdentityRef = nil },
			"spec.cloudProvider.identityRef",
		},
		{
			"no cloud provider mode",
			func(c *infrav1.VCDClusterSpec) { c.CloudProvider = infrav1.CloudProviderSpec{} },
			"spec.cloudProvider",
		},
		{
			"an invalid subnet",
			func(c *infrav1.VCDClusterSpec) { c.LoadBalancer.VIPSubnet = "10.0.0.1" },
			"spec.loadBalancer.vipSubnet",
		},
		{
			"a further gateway without an edge gateway or network",
			func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{{Name: "dmz"}}
			},
			"spec.loadBalancer.edgeGateways[0].edgeGateway",
		},
		{
			"a further gateway with both an edge gateway and a network",
			func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{{Name: "dmz", EdgeGateway: "dmz", Network: "nodes"}}
			},
			"spec.loadBalancer.edgeGateways[0].edgeGateway",
		},
		{
			"two further gateways with the same name",
			func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{
					{Name: "dmz", EdgeGateway: "dmz"},
					{Name: "dmz", Network: "nodes"},
				}
			},
			"spec.loadBalancer.edgeGateways[1]",
		},
		{
			"an unknown algorithm",
			func(c *infrav1.VCDClusterSpec) { c.LoadBalancer.Algorithm = "BEST" },
			"spec.loadBalancer.algorithm",
		},
		{
			"a NIC index that is out of range",
			func(c *infrav1.VCDClusterSpec) {
				c.CloudProvider.Nodes.Addresses.External.NICs = []int32{10}
			},
			"spec.cloudProvider.nodes.addresses.external.nics[0]",
		},
		{
			"a zone name that is not a valid label value",
			func(c *infrav1.VCDClusterSpec) {
				c.CloudProvider.Nodes.Zones = []infrav1.CloudProviderZone{{Name: "rack a"}}
			},
			"spec.cloudProvider.nodes.zones[0].name",
		},
		{
			"node settings with an external cloud controller manager",
			func(c *infrav1.VCDClusterSpec) {
				c.CloudProvider = infrav1.CloudProviderSpec{
					Mode:  infrav1.CloudProviderExternal,
					Nodes: infrav1.CloudProviderNodes{Region: "north"},
				}
			},
			"spec.cloudProvider.nodes",
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
		{"no site", func(i *infrav1.VCDClusterIdentitySpec) { i.Site = "" }, "spec.site"},
		{
			"a site with a path",
			func(i *infrav1.VCDClusterIdentitySpec) { i.Site = "https://vcd.example.com/api" },
			"spec.site",
		},
		{"no organizations", func(i *infrav1.VCDClusterIdentitySpec) { i.Orgs = nil }, "spec.orgs"},
		{
			"an organization twice",
			func(i *infrav1.VCDClusterIdentitySpec) { i.Orgs = []string{"acme", "acme"} },
			"spec.orgs[1]",
		},
		{
			"an organization beside the wildcard",
			func(i *infrav1.VCDClusterIdentitySpec) { i.Orgs = []string{"acme", "*"} },
			"spec.orgs[1]",
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
		{"no template", func(m *infrav1.VCDMachineSpec) { m.Template = "" }, "spec.template"},
		{
			"a second NIC without a network",
			func(m *infrav1.VCDMachineSpec) { m.Networks = []infrav1.NetworkSpec{{}, {}} },
			"spec.networks",
		},
		{
			"static addresses with the source StaticPool",
			func(m *infrav1.VCDMachineSpec) {
				m.Networks = []infrav1.NetworkSpec{{
					AddressSource: infrav1.AddressStaticPool,
					Addresses:     []string{"192.168.100.5/24"},
				}}
			},
			"spec.networks",
		},
		{
			"an invalid name server",
			func(m *infrav1.VCDMachineSpec) { m.Networks = []infrav1.NetworkSpec{{Nameservers: []string{"dns"}}} },
			"nameservers",
		},
		{
			"a naming template that does not parse",
			func(m *infrav1.VCDMachineSpec) { m.VMNamingTemplate = "{{ .machine" },
			"spec.vmNamingTemplate",
		},
		{
			"a negative disk size",
			func(m *infrav1.VCDMachineSpec) { q := resource.MustParse("-1Gi"); m.DiskSize = &q },
			"spec.diskSize",
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
