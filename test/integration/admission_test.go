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

// TestAdmissionRefusesWhatItCanKnow sends invalid objects to a real API server with the schema, CEL rules and webhooks
// as they are shipped.
func TestAdmissionRefusesWhatItCanKnow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	clusters := []struct {
		name  string
		mod   func(*infrav1.VCDClusterSpec)
		names string
	}{
		{"a site without https", func(c *infrav1.VCDClusterSpec) { c.Site = "http://vcd.example.com" }, "spec.site"},
		{"a site with a path", func(c *infrav1.VCDClusterSpec) { c.Site = "https://vcd.example.com/api" }, "spec.site"},
		{"an id that is free text", func(c *infrav1.VCDClusterSpec) { c.InfraID = "prod" }, "spec.infraID"},
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
			"a pool and another source of addresses",
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
			"a second pool without a first",
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
			"settings of another endpoint",
			func(c *infrav1.VCDClusterSpec) { c.ControlPlaneLoadBalancer.Type = infrav1.EndpointExternal },
			"spec.controlPlaneLoadBalancer",
		},
		{
			"an endpoint of two types",
			func(c *infrav1.VCDClusterSpec) {
				c.ControlPlaneLoadBalancer.EdgeGateway = &infrav1.EdgeGatewayEndpoint{}
			},
			"spec.controlPlaneLoadBalancer.edgeGateway",
		},
		{
			"a range in two-arm mode",
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
			"no mode of the cloud controller manager",
			func(c *infrav1.VCDClusterSpec) { c.CloudProvider = infrav1.CloudProviderSpec{} },
			"spec.cloudProvider",
		},
		{
			"a subnet that is none",
			func(c *infrav1.VCDClusterSpec) { c.LoadBalancer.VIPSubnet = "10.0.0.1" },
			"spec.loadBalancer.vipSubnet",
		},
		{
			"a further gateway that is nowhere",
			func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{{Name: "dmz"}}
			},
			"spec.loadBalancer.edgeGateways[0].edgeGateway",
		},
		{
			"a further gateway in two places",
			func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{{Name: "dmz", EdgeGateway: "dmz", Network: "nodes"}}
			},
			"spec.loadBalancer.edgeGateways[0].edgeGateway",
		},
		{
			"two further gateways of one name",
			func(c *infrav1.VCDClusterSpec) {
				c.LoadBalancer.EdgeGateways = []infrav1.LoadBalancerGateway{
					{Name: "dmz", EdgeGateway: "dmz"},
					{Name: "dmz", Network: "nodes"},
				}
			},
			"spec.loadBalancer.edgeGateways[1]",
		},
		{
			"an algorithm that VCD does not have",
			func(c *infrav1.VCDClusterSpec) { c.LoadBalancer.Algorithm = "BEST" },
			"spec.loadBalancer.algorithm",
		},
		{
			"a NIC that no VM has",
			func(c *infrav1.VCDClusterSpec) {
				c.CloudProvider.Nodes.Addresses.External.NICs = []int32{10}
			},
			"spec.cloudProvider.nodes.addresses.external.nics[0]",
		},
		{
			"a zone that can be no label",
			func(c *infrav1.VCDClusterSpec) {
				c.CloudProvider.Nodes.Zones = []infrav1.CloudProviderZone{{Name: "rack a"}}
			},
			"spec.cloudProvider.nodes.zones[0].name",
		},
		{
			"Nodes of an external cloud controller manager",
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

func TestAdmissionRefusesIdentities(t *testing.T) {
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
			"an organization beside any",
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

// TestAdmissionCannotKnowTheIdentity checks that a condition, not admission, reports an identity for another site,
// because the identity may be created after the cluster.
func TestAdmissionCannotKnowTheIdentity(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.cluster("strayed", func(c *infrav1.VCDCluster) { c.Spec.Site = "https://vcd.example.com" })

	s.g.Eventually(func() (string, error) { return s.state(c, infrav1.IdentityReadyCondition) }, patience, "50ms").
		Should(HavePrefix("False " + infrav1.SiteNotAllowedReason))

	s.g.Expect(s.Requests()).To(BeEmpty())
	s.g.Eventually(func() error {
		s.g.Expect(s.get(c)).To(Succeed())
		c.Spec.Site = s.URL()
		return shared.client.Update(t.Context(), c)
	}, patience).Should(Succeed())
	s.ready(c)
	s.deleteCluster("strayed")
}

func TestAdmissionRefusesMachines(t *testing.T) {
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
			"addresses for a pool",
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
			"a naming template that cannot be read",
			func(m *infrav1.VCDMachineSpec) { m.VMNamingTemplate = "{{ .machine" },
			"spec.vmNamingTemplate",
		},
		{
			"a negative disk",
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

func TestWhatExistsCannotBecomeSomethingElse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.cluster("fixed")
	m := s.machine("fixed", "fixed-0")
	s.ready(m)
	s.g.Eventually(func() (bool, error) {
		return c.Status.Initialization.Provisioned != nil, s.get(c)
	}, patience).Should(BeTrue())

	// A patch, which is not refused if the manager has written to the object in the meantime.
	become := func(obj client.Object, spec string) error {
		return shared.client.Patch(t.Context(), obj,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{`+spec+`}}`)))
	}
	s.g.Expect(become(c,
		`"controlPlaneEndpoint":{"host":"192.168.100.201","port":6443}`)).To(
		MatchError(ContainSubstring("spec.controlPlaneEndpoint")))
	s.g.Expect(become(c, `"infraID":"0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"`)).To(MatchError(ContainSubstring("spec.infraID")))
	s.g.Expect(become(m,
		`"providerID":"vmware-cloud-director://urn:vcloud:vm:00000000-0000-0000-0000-000000000000"`)).To(
		MatchError(ContainSubstring("spec.providerID")))

	s.deleteMachine("fixed-0")
	s.deleteCluster("fixed")
	s.empty()
}
