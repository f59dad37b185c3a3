// SPDX-License-Identifier: Apache-2.0

package vsphereconfig

import (
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// environment returns an environment with variables of the form name=value.
func environment(variables ...string) ccmconfig.Environment {
	return ccmconfig.Environment{
		Getenv: func(name string) string {
			for _, v := range variables {
				if value, ok := strings.CutPrefix(v, name+"="); ok {
					return value
				}
			}
			return ""
		},
		Environ: func() []string { return variables },
	}
}

const inINI = `
[Global]
user = "administrator@vsphere.local"
password = "p#;w"
port = "8443"
insecure-flag = "1"
datacenters = "DC0, /folder/DC1"
soap-roundtrip-count = 5
ca-file = /etc/ca.pem
thumbprint = AA:BB
secret-name = "creds"
secret-namespace = "kube-system"
secrets-directory = /secrets
ip-family = "ipv6,ipv4"
api-disable = true
api-binding = ":43001"

[VirtualCenter "10.0.0.1"]

[VirtualCenter "tenant-2"]
server = "vc2.example.com"
user = "u2"
password = "p2"
port = 443
datacenters = DC2
ip-family = ipv4

[Labels]
zone = k8s-zone
region = k8s-region

[Nodes]
internal-network-subnet-cidr = "10.0.0.0/8,fd00::/8"
external-network-subnet-cidr = 192.0.2.0/24
internal-vm-network-name = "Internal K8s"
external-vm-network-name = External
exclude-internal-network-subnet-cidr = "10.9.0.0/16"
exclude-external-network-subnet-cidr = "192.0.2.128/25, 192.0.2.64/26"

[NSXT]
host = nsx
[LoadBalancer]
size = MEDIUM
[LoadBalancerClass "public"]
ip-pool-name = pool
[Route]
router-path = /x
`

const inYAML = `
global:
  user: administrator@vsphere.local
  password: "p#;w"
  port: 8443
  insecureFlag: true
  datacenters: [DC0, /folder/DC1]
  soapRoundtripCount: 5
  caFile: /etc/ca.pem
  thumbprint: AA:BB
  secretName: creds
  secretNamespace: kube-system
  secretsDirectory: /secrets
  ipFamily: [ipv6, ipv4]
  apiDisable: true
  apiBinding: ":43001"
vcenter:
  10.0.0.1: {}
  tenant-2: {server: vc2.example.com, user: u2, password: p2, port: 443, datacenters: [DC2], ipFamily: [ipv4]}
labels: {zone: k8s-zone, region: k8s-region}
nodes:
  internalNetworkSubnetCidr: 10.0.0.0/8,fd00::/8
  externalNetworkSubnetCidr: 192.0.2.0/24
  internalVmNetworkName: Internal K8s
  externalVmNetworkName: External
  excludeInternalNetworkSubnetCidr: 10.9.0.0/16
  excludeExternalNetworkSubnetCidr: 192.0.2.128/25, 192.0.2.64/26
nsxt: {host: nsx}
loadBalancer: {size: MEDIUM}
loadBalancerClass: {public: {ipPoolName: pool}}
route: {routerPath: /x}
`

// TestEveryKeyOfTheVSphereCPI reads the same from both formats.
func TestEveryKeyOfTheVSphereCPI(t *testing.T) {
	g := NewWithT(t)

	ini, iniWarnings, err := Parse([]byte(inINI), environment())
	g.Expect(err).NotTo(HaveOccurred())
	yaml, yamlWarnings, err := Parse([]byte(inYAML), environment())
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(ini).To(Equal(yaml))
	first := ini.VCenters["10.0.0.1"]
	second := ini.VCenters["tenant-2"]
	g.Expect(*first).To(Equal(VCenter{
		Server:          "10.0.0.1",
		User:            "administrator@vsphere.local",
		Password:        "p#;w",
		Port:            8443,
		Insecure:        true,
		Datacenters:     []string{"DC0", "/folder/DC1"},
		RoundTrips:      5,
		CAFile:          "/etc/ca.pem",
		Thumbprint:      "AA:BB",
		SecretName:      "creds",
		SecretNamespace: "kube-system",
		Families:        []string{"ipv6", "ipv4"},
	}))
	g.Expect([]string{second.Server, second.User, string(second.Password)}).To(Equal([]string{"vc2.example.com", "u2", "p2"}))
	g.Expect(second.Port).To(Equal(443))
	g.Expect(second.Insecure).To(BeTrue(), "the global flag overrides a section's")
	g.Expect(second.Datacenters).To(Equal([]string{"DC2"}))
	g.Expect(ini.Nodes.InternalCIDRs).To(Equal([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}))
	g.Expect(ini.Nodes.ExcludeExternal).To(HaveLen(2))
	g.Expect(ini.Nodes.InternalNetwork).To(Equal("Internal K8s"))
	for _, key := range []string{"nsxt", "loadbalancer", "loadbalancerclass", "route", "global.api-disable", "global.api-binding"} {
		g.Expect(iniWarnings).To(ContainElement(HavePrefix(key + " (line ")))
	}
	g.Expect(yamlWarnings).To(ContainElement(HavePrefix("route (line ")))
	g.Expect(iniWarnings).To(ContainElement(ContainSubstring("INI format")))
}

func TestTheEnvironment(t *testing.T) {
	g := NewWithT(t)

	c, _, err := Parse(nil, environment("VSPHERE_VCENTER=vc.example.com", "VSPHERE_USER=u", "VSPHERE_PASSWORD=p=w",
		"VSPHERE_VCENTER_PORT=8443",
		"VSPHERE_INSECURE=1", "VSPHERE_DATACENTER=DC0,DC1", "VSPHERE_ROUNDTRIP_COUNT=2", "VSPHERE_CAFILE=/ca", "VSPHERE_THUMBPRINT=AA",
		"VSPHERE_SECRET_NAME=s", "VSPHERE_SECRET_NAMESPACE=n", "VSPHERE_SECRETS_DIRECTORY=/d", "VSPHERE_LABEL_ZONE=z",
		"VSPHERE_LABEL_REGION=r",
		"VSPHERE_NODES_INTERNAL_NETWORK_SUBNET_CIDR=10.0.0.0/8", "VSPHERE_NODES_EXTERNAL_VM_NETWORK_NAME=net"))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.VCenters).To(HaveLen(1))
	g.Expect(*c.VCenters["vc.example.com"]).To(Equal(VCenter{
		Server:          "vc.example.com",
		User:            "u",
		Password:        "p=w",
		Port:            8443,
		Insecure:        true,
		Datacenters:     []string{"DC0", "DC1"},
		RoundTrips:      2,
		CAFile:          "/ca",
		Thumbprint:      "AA",
		SecretName:      "s",
		SecretNamespace: "n",
		Families:        []string{"ipv4"},
	}))
	g.Expect([]string{c.Labels.Zone, c.Labels.Region, c.Nodes.ExternalNetwork}).To(Equal([]string{"z", "r", "net"}))
	g.Expect(c.Nodes.InternalCIDRs).To(HaveLen(1))
}

func TestSeveralVCentersInTheEnvironment(t *testing.T) {
	g := NewWithT(t)

	c, _, err := Parse(nil, environment("VSPHERE_VCENTER_A=a.example.com", "VCENTER_A_USERNAME=ua", "VCENTER_A_PASSWORD=p=a=",
		"VCENTER_A_INSECURE=true",
		"VCENTER_A_ROUNDTRIP=7", "VCENTER_A_IP_FAMILY=ipv6", "VCENTER_A_PORT=1", "VCENTER_A_DATACENTERS=X,Y", "VCENTER_A_CAFILE=/ca",
		"VCENTER_A_THUMBPRINT=BB",
		"VSPHERE_VCENTER_B=ignored", "VCENTER_B_SERVER=b.example.com", "VCENTER_B_SECRET_NAME=sb", "VCENTER_B_SECRET_NAMESPACE=nb"))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*c.VCenters["A"]).To(Equal(VCenter{
		Server:      "a.example.com",
		User:        "ua",
		Password:    "p=a=",
		Port:        1,
		Insecure:    true,
		Datacenters: []string{"X", "Y"},
		RoundTrips:  7,
		CAFile:      "/ca",
		Thumbprint:  "BB",
		Families:    []string{"ipv6"},
	}), "upstream ignored INSECURE, ROUNDTRIP, IP_FAMILY and values with an equals sign")
	g.Expect(*c.VCenters["B"]).To(Equal(VCenter{
		Server:          "b.example.com",
		Port:            443,
		RoundTrips:      3,
		SecretName:      "sb",
		SecretNamespace: "nb",
		Families:        []string{"ipv4"},
	}), "no family means IPv4")

	_, _, err = Parse(nil, environment("VSPHERE_VCENTER_A=a", "VCENTER_A_PORT=x", "VCENTER_A_IP_FAMILY=ipv5", "VCENTER_A_INSECURE=maybe"))
	g.Expect(strings.Split(err.Error(), "\n")).To(ConsistOf(HavePrefix("VCENTER_A_PORT: is"), HavePrefix("VCENTER_A_IP_FAMILY: element 1 is"),
		HavePrefix("VCENTER_A_INSECURE: is")))
}

func TestVariablesOverrideTheFile(t *testing.T) {
	g := NewWithT(t)
	const file = `
global: {user: file, password: file, port: 1, insecureFlag: true, datacenters: [FILE]}
vcenter:
  A: {server: file.example.com, port: 2, insecureFlag: true, thumbprint: FILE}
  b.example.com: {}
labels: {zone: file, region: file}
nodes: {internalNetworkSubnetCidr: [10.0.0.0/8, 172.16.0.0/12]}
`

	c, _, err := Parse([]byte(file), environment("VSPHERE_USER=variable", "VSPHERE_VCENTER_PORT=3", "VSPHERE_INSECURE=false",
		"VSPHERE_DATACENTER=VARIABLE", "VSPHERE_LABEL_ZONE=variable", "VSPHERE_NODES_INTERNAL_NETWORK_SUBNET_CIDR=192.168.0.0/16",
		"VSPHERE_VCENTER_A=variable.example.com", "VCENTER_A_PORT=4", "VCENTER_A_INSECURE=false"))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*c.VCenters["A"]).To(Equal(VCenter{
		Server:      "variable.example.com",
		User:        "variable",
		Password:    "file",
		Port:        4,
		Datacenters: []string{"VARIABLE"},
		RoundTrips:  3,
		Thumbprint:  "FILE",
		Families:    []string{"ipv4"},
	}))
	g.Expect(*c.VCenters["b.example.com"]).To(And(HaveField("Port", 3), HaveField("Insecure", false)))
	g.Expect([]string{c.Labels.Zone, c.Labels.Region}).To(Equal([]string{"variable", "file"}))
	g.Expect(c.Nodes.InternalCIDRs).To(HaveExactElements(HaveField("String()", "192.168.0.0/16")))

	_, _, err = Parse([]byte(file), environment("VSPHERE_VCENTER_PORT=x"))
	g.Expect(err).To(MatchError(And(ContainSubstring("global.port"), ContainSubstring("variable VSPHERE_VCENTER_PORT"))))
}

func TestInvalidConfigurations(t *testing.T) {
	tests := []struct {
		name, file string
		want       []string // each line of the error
	}{
		{
			name: "an empty file",
			want: []string{"vcenter: is missing: set a vCenter, such as vcenter: {vc.example.com: {}}"},
		},
		{
			name: "misspelt keys, each with its line",
			file: "[VirtualCenter \"vc\"]\nusr = x\n[Lables]\nzone = z\n[labels]\nregon = r\n",
			want: []string{
				"virtualcenter.vc.usr (line 2): is not a key of the configuration: remove it, or correct its spelling",
				"lables (line 3): is not a key of the configuration: remove it, or correct its spelling",
				"labels.regon (line 6): is not a key of the configuration: remove it, or correct its spelling",
			},
		},
		{
			name: "misspelt keys in YAML",
			file: "vcenter: {vc: {}}\nglobal:\n  insecure_flag: true\n  Datacenters: [a]\n",
			want: []string{
				"global.insecure_flag (line 3): is not a key of the configuration: remove it, or correct its spelling",
				"global.Datacenters (line 4): is not a key of the configuration: global.datacenters or vcenter.<name>.datacenters may be intended",
			},
		},
		{
			name: "half of a key pair, an invalid port and host",
			file: "vcenter:\n  a: {server: 'https://a', user: u, port: 70000}\n",
			want: []string{
				`vcenter.a.server (line 2): is "https://a", but must be a host name or address: without scheme, user and path`,
				"vcenter.a.port (line 2): is 70000, but must be from 1 to 65535",
				"vcenter.a.user (line 2): and password must be set together: set both, or use a Secret",
			},
		},
		{
			name: "families and networks",
			file: "vcenter: {a: {ipFamily: [ipv4, ipv4]}}\nnodes: {internalNetworkSubnetCidr: '10.0.0.0/8,x'}",
			want: []string{
				"vcenter.a.ipFamily (line 1): contains a duplicate family: keep one",
				`nodes.internalNetworkSubnetCidr (line 2): element 2 is "x", but must be a CIDR such as 192.168.8.0/24`,
			},
		},
		{name: "a duplicate vCenter", file: "vcenter: {a: {}, b: {server: A}}", want: []string{"vcenter.b (line 1): is the same vCenter as a: remove one"}},
		{
			name: "labels",
			file: "vcenter: {a: {}}\nlabels: {zone: z, region: z, host: kubernetes.io/host, cluster: 'a b'}",
			want: []string{
				"labels.region (line 2): is also the category of zones: use different categories",
				`labels.cluster (line 2): is "a b", which is not a valid label key`,
				`labels.host (line 2): is "kubernetes.io/host", but labels of kubernetes.io are reserved for Kubernetes: use your own domain`,
			},
		},
		{name: "too short an interval", file: "vcenter: {a: {}}\nnodes: {maxAge: 1ms}", want: []string{"nodes.maxAge (line 2): is 1ms, but must be from 1s to 10m0s"}},
		{name: "not INI", file: "[Global\n", want: []string{"the configuration is not INI:", `line 1: is not a header of the form [section] or [section "name"]`}},
		{name: "not YAML", file: "a: [\n", want: []string{"the configuration is not YAML: yaml: line 1: did not find expected node content"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, _, err := Parse([]byte(tt.file), environment())

			g.Expect(err).To(HaveOccurred())
			g.Expect(strings.Split(err.Error(), "\n")).To(ConsistOf(tt.want))
		})
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	g := NewWithT(t)

	c, warnings, err := Parse([]byte("vcenter: {a: {user: u, password: canary}}"), environment())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(ConsistOf(ContainSubstring("visible to all readers")))
	g.Expect(warnings).NotTo(ContainElement(ContainSubstring("canary")))
	g.Expect(c.VCenters["a"].Password.String()).NotTo(ContainSubstring("canary"))
}
