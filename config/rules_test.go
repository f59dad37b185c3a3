// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	. "github.com/onsi/gomega"
)

const (
	clusterYAML = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDCluster, metadata: {name: c1, namespace: default}, spec: {
site: "https://vcd.example.com", org: acme, ovdc: acme-vdc, ovdcNetwork: nodes, identityRef: {name: acme},
controlPlaneEndpoint: {host: 192.168.100.200}, cloudProvider: {mode: None}}}`
	clusterTemplateYAML = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDClusterTemplate, metadata: {name: c1, namespace: default},
spec: {template: {spec: {site: "https://vcd.example.com", org: acme, identityRef: {name: acme}, cloudProvider: {mode: None}}}}}`
	machineYAML = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDMachine, metadata: {name: m1, namespace: default},
spec: {catalog: kubernetes, template: ubuntu}}`
	machineTemplateYAML = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDMachineTemplate, metadata: {name: m1, namespace: default},
spec: {template: {spec: {catalog: kubernetes, template: ubuntu}}}}`
	identityYAML = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDIdentity, metadata: {name: i1, namespace: default},
spec: {site: "https://vcd.example.com", secretRef: {name: acme}}}`
	clusterIdentityYAML = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDClusterIdentity, metadata: {name: i1},
spec: {site: "https://vcd.example.com", orgs: [acme], secretRef: {name: acme}}}`
	remediationYAML         = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDRemediation, metadata: {name: m1, namespace: default}}`
	remediationTemplateYAML = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDRemediationTemplate, metadata: {name: r1, namespace: default},
	spec: {template: {spec: {strategy: {retryLimit: 1}}}}}`
	failureDomainYAML = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDFailureDomain, metadata: {name: d1, namespace: default},
spec: {region: r1, zone: z1, ovdc: acme-vdc}}`
	deploymentZoneYAML = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta4, kind: VCDDeploymentZone, metadata: {name: z1, namespace: default},
spec: {failureDomain: d1, site: "https://vcd.example.com", org: acme, identityRef: {name: acme}}}`

	// identified is a cluster that was provisioned before. It has no status, because a move or a restore drops it.
	identified = `{spec: {infraID: 0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e}}`
	providerID = `{spec: {providerID: "vmware-cloud-director://urn:vcloud:vm:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"}}`
)

// creation is a change to a new object, and the fields whose rules it violates.
type creation struct {
	name, change string
	fields       []string
}

func checkCreations(t *testing.T, kind, base string, tests []creation) {
	t.Helper()
	c := loadCRDs(t)[kind]
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			errs := c.admit(t, parse(t, base, tt.change), nil)

			g.Expect(fieldsOf(errs)).To(Equal(tt.fields), "%v", errs)
		})
	}
}

func TestCreateVCDCluster(t *testing.T) {
	site := []string{"spec.site"}
	endpoint := []string{"spec.controlPlaneEndpoint.host"}
	checkCreations(t, "VCDCluster", clusterYAML, []creation{
		{"only the required fields", `{}`, nil},
		{"metadata of vApps", `{spec: {vAppMetadata: [{key: a, value: b}], vApp: {layout: PerCluster}}}`, nil},
		{
			"no metadata of vApps of machines",
			`{spec: {vAppMetadata: [{key: a, value: b}], vApp: {layout: PerMachine}}}`,
			[]string{"spec.vAppMetadata"},
		},
		{"a site with a port", `{spec: {site: "https://vcd.example.com:8443"}}`, nil},
		{"a site behind the proxy", `{spec: {proxy: {httpsProxy: "http://p:3128", site: Proxy}}}`, nil},
		{"a site behind an HTTP proxy", `{spec: {proxy: {httpProxy: "http://p:3128", site: Proxy}}}`, []string{"spec.proxy.httpsProxy"}},
		{"another spelling of the site", `{spec: {proxy: {httpsProxy: "http://p:3128", site: Tunnel}}}`, []string{"spec.proxy.site"}},
		{"an IP address as site", `{spec: {site: "https://[2001:db8::1]"}}`, nil},
		{"null for an optional field is the same as no field", `{spec: {controlPlaneLoadBalancer: {kubeVIP: {image: }}}}`, nil},
		{"no http", `{spec: {site: "http://vcd.example.com"}}`, site},
		{"a site needs a scheme", `{spec: {site: "vcd.example.com"}}`, site},
		{"no trailing slash in the site", `{spec: {site: "https://vcd.example.com/"}}`, site},
		{"no path in the site", `{spec: {site: "https://vcd.example.com/api"}}`, site},
		{"no query in the site", `{spec: {site: "https://vcd.example.com?a=b"}}`, site},
		{"no credentials in the site", `{spec: {site: "https://user:secret@vcd.example.com"}}`, site},

		{"a VDC is required", `{spec: {ovdc: }}`, []string{"spec.ovdc"}},
		{"a network is required", `{spec: {ovdcNetwork: }}`, []string{"spec.ovdcNetwork"}},
		{"neither is required with zones", `{spec: {ovdc: , ovdcNetwork: , failureDomainSelector: {}}}`, nil},

		{"a virtual IP is required", `{spec: {controlPlaneEndpoint: }}`, endpoint},
		{"kube-vip settings do not replace a virtual IP", `{spec: {controlPlaneEndpoint: , controlPlaneLoadBalancer: {kubeVIP: {interface: eth0}}}}`, endpoint},
		{"a port alone is not an endpoint", `{spec: {controlPlaneEndpoint: {host: , port: 443}}}`, endpoint},
		{"a port for the virtual IP", `{spec: {controlPlaneEndpoint: {port: 443}}}`, nil},
		{
			"a pool requires its address source",
			`{spec: {controlPlaneLoadBalancer: {kubeVIP: {poolRefs: [{name: vips, kind: InClusterIPPool, apiGroup: ipam.cluster.x-k8s.io}]}}}}`,
			[]string{"spec.controlPlaneLoadBalancer.kubeVIP.poolRefs"},
		},
		{
			"the address source requires pools",
			`{spec: {controlPlaneLoadBalancer: {kubeVIP: {addressSource: IPAM}}}}`,
			[]string{"spec.controlPlaneLoadBalancer.kubeVIP.poolRefs"},
		},
		{
			"no second address with pools",
			`{spec: {controlPlaneEndpoint: , controlPlaneLoadBalancer: {kubeVIP: {addressSource: IPAM, secondaryAddress: "fd00::1", poolRefs: [{name: vips, kind: InClusterIPPool, apiGroup: ipam.cluster.x-k8s.io}]}}}}`,
			[]string{"spec.controlPlaneLoadBalancer.kubeVIP.secondaryAddress"},
		},
		{"an invalid second address", `{spec: {controlPlaneLoadBalancer: {kubeVIP: {secondaryAddress: "fd00::1/64"}}}}`, []string{"spec.controlPlaneLoadBalancer.kubeVIP.secondaryAddress"}},
		{"a pool only", `{spec: {controlPlaneEndpoint: , controlPlaneLoadBalancer: {kubeVIP: {addressSource: IPAM, poolRefs: [{name: vips, kind: InClusterIPPool, apiGroup: ipam.cluster.x-k8s.io}]}}}}`, nil},
		{"no member of another type", `{spec: {controlPlaneLoadBalancer: {edgeGateway: {}}}}`, []string{"spec.controlPlaneLoadBalancer.edgeGateway"}},
		{"no kube-vip without its type", `{spec: {controlPlaneLoadBalancer: {type: External, kubeVIP: {}}}}`, []string{"spec.controlPlaneLoadBalancer.kubeVIP"}},
		{"an external endpoint can be set later", `{spec: {controlPlaneEndpoint: , controlPlaneLoadBalancer: {type: External}}}`, nil},
		{"an unknown type", `{spec: {controlPlaneLoadBalancer: {type: Magic}}}`, []string{"spec.controlPlaneLoadBalancer.type"}},

		{
			"a separate identity only for the bundled cloud provider",
			`{spec: {cloudProvider: {mode: External, identityRef: {name: ccm}}}}`,
			[]string{"spec.cloudProvider.identityRef"},
		},
		{
			"an ID generated by an older CAPVCD",
			`{spec: {infraID: "urn:vcloud:entity:vmware:capvcdCluster:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"}}`,
			nil,
		},
		{"an ID generated by CAPVCD", `{spec: {infraID: "NO_RDE_0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"}}`, nil},
		{"an ID generated by this provider", `{spec: {infraID: 0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e}}`, nil},
		{"no free text as an ID", `{spec: {infraID: prod}}`, []string{"spec.infraID", "spec.infraID"}},
		{
			"no text that only contains a UUID",
			`{spec: {infraID: "a-0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"}}`,
			[]string{"spec.infraID"},
		},
		{
			"no entity of another type",
			`{spec: {infraID: "urn:vcloud:entity:cse:nativeCluster:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"}}`,
			[]string{"spec.infraID"},
		},
		{
			"no ID that contains the end of a marker",
			`{spec: {infraID: "0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e]\n"}}`,
			[]string{"spec.infraID"},
		},
		{
			"load balancers require the bundled cloud provider",
			`{spec: {cloudProvider: {mode: External}, loadBalancer: {vipSubnet: 10.0.0.0/24}}}`,
			[]string{"spec.loadBalancer"},
		},
		{
			"load balancers of the bundled cloud provider",
			`{spec: {cloudProvider: {mode: Managed, identityRef: {name: ccm}}, loadBalancer: {vipSubnet: 10.0.0.0/24}}}`,
			nil,
		},
		{
			"the bundled cloud provider requires an identity",
			`{spec: {cloudProvider: {mode: Managed}}}`,
			[]string{"spec.cloudProvider.identityRef"},
		},
		{"the mode of the cloud provider has no default", `{spec: {cloudProvider: {mode: }}}`, []string{"spec.cloudProvider.mode"}},
		{
			"an image requires the bundled cloud provider",
			`{spec: {cloudProvider: {mode: None, image: "registry.example.com/cloud-controller"}}}`,
			[]string{"spec.cloudProvider.image"},
		},
		{
			"its own image",
			`{spec: {cloudProvider: {mode: Managed, identityRef: {name: ccm}, image: "registry.example.com/cloud-controller"}}}`,
			nil,
		},
		{
			"zones of Nodes are not set again if zones are selected",
			`{spec: {failureDomainSelector: {}, cloudProvider: {mode: Managed, identityRef: {name: ccm}, nodes: {zones: [{name: a}]}}}}`,
			[]string{"spec.cloudProvider.nodes"},
		},
		{
			"nor is their region",
			`{spec: {failureDomainSelector: {}, cloudProvider: {mode: Managed, identityRef: {name: ccm}, nodes: {region: north}}}}`,
			[]string{"spec.cloudProvider.nodes"},
		},
		{
			"addresses of Nodes can always be selected",
			`{spec: {failureDomainSelector: {}, cloudProvider: {mode: Managed, identityRef: {name: ccm}, nodes: {addresses: {families: [IPv4]}}}}}`,
			nil,
		},
		{
			"a range has two ends",
			`{spec: {cloudProvider: {mode: Managed, identityRef: {name: ccm}}, loadBalancer: {armMode: OneArm, oneArm: {internalRange: {startIP: 10.0.0.1}}}}}`,
			[]string{"spec.loadBalancer.oneArm.internalRange.endIP"},
		},
		{
			"a range is for one-arm mode",
			`{spec: {cloudProvider: {mode: Managed, identityRef: {name: ccm}}, loadBalancer: {oneArm: {internalRange: {startIP: 10.0.0.1, endIP: 10.0.0.9}}}}}`,
			[]string{"spec.loadBalancer.oneArm"},
		},
		{"an algorithm in VCD's spelling", `{spec: {cloudProvider: {mode: Managed, identityRef: {name: ccm}}, loadBalancer: {algorithm: ROUND_ROBIN}}}`, []string{"spec.loadBalancer.algorithm"}},
		{"an algorithm", `{spec: {cloudProvider: {mode: Managed, identityRef: {name: ccm}}, loadBalancer: {algorithm: RoundRobin}}}`, nil},
		{"an unknown kind of identity", `{spec: {identityRef: {kind: Secret}}}`, []string{"spec.identityRef.kind"}},
	})
}

func TestCreateVCDClusterTemplate(t *testing.T) {
	checkCreations(t, "VCDClusterTemplate", clusterTemplateYAML, []creation{
		{"variables of a ClusterClass may fill in VDC, network and virtual IP", `{}`, nil},
		{"no cluster ID", `{spec: {template: {spec: {infraID: 0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e}}}}`, []string{"spec.template.spec.infraID"}},
		{
			"no endpoint",
			`{spec: {template: {spec: {controlPlaneEndpoint: {host: 10.0.0.1}}}}}`,
			[]string{"spec.template.spec.controlPlaneEndpoint.host"},
		},
		{"a port", `{spec: {template: {spec: {controlPlaneEndpoint: {port: 443}}}}}`, nil},
		{
			"no virtual IP",
			`{spec: {template: {spec: {controlPlaneLoadBalancer: {kubeVIP: {secondaryAddress: "fd00::1"}}}}}}`,
			[]string{"spec.template.spec.controlPlaneLoadBalancer.kubeVIP.secondaryAddress"},
		},
		{
			"a pool of virtual IPs",
			`{spec: {template: {spec: {controlPlaneLoadBalancer: {kubeVIP: {addressSource: IPAM, poolRefs: [{name: vips, kind: InClusterIPPool, apiGroup: ipam.cluster.x-k8s.io}]}}}}}}`,
			nil,
		},
		{
			"no address on the edge gateway",
			`{spec: {template: {spec: {controlPlaneLoadBalancer: {type: EdgeGateway, edgeGateway: {secondaryAddress: "fd00::1"}}}}}}`,
			[]string{"spec.template.spec.controlPlaneLoadBalancer.edgeGateway.secondaryAddress"},
		},
		{
			"no vApp",
			`{spec: {template: {spec: {vApp: {name: a}}}}}`,
			[]string{"spec.template.spec.vApp.name"},
		},
		{
			"no entity",
			`{spec: {template: {spec: {rde: {id: "urn:vcloud:entity:vmware:capvcdCluster:a"}}}}}`,
			[]string{"spec.template.spec.rde.id"},
		},
		{
			"load balancers require the bundled cloud provider",
			`{spec: {template: {spec: {cloudProvider: {mode: None}, loadBalancer: {mode: Disabled}}}}}`,
			[]string{"spec.template.spec.loadBalancer"},
		},
		{
			"the rules of a VCDCluster that need one field only",
			`{spec: {template: {spec: {site: "http://vcd.example.com"}}}}`,
			[]string{"spec.template.spec.site"},
		},
	})
}

func TestCreateVCDMachine(t *testing.T) {
	checkCreations(t, "VCDMachine", machineYAML, []creation{
		{"only the required fields", `{}`, nil},
		{"a template is required", `{spec: {template: }}`, []string{"spec.template"}},
		{"another provider's ID", `{spec: {providerID: "vsphere://a"}}`, []string{"spec.providerID"}},
		{"the first NIC needs no name", `{spec: {networks: [{}, {name: a}]}}`, nil},
		{"all NICs may have a name", `{spec: {networks: [{name: a}, {name: a}]}}`, nil},
		{"the second NIC needs a name", `{spec: {networks: [{}, {}]}}`, []string{"spec.networks"}},
		{"even after one with a name", `{spec: {networks: [{name: a}, {}]}}`, []string{"spec.networks"}},
		{"an empty list of NICs", `{spec: {networks: []}}`, []string{"spec.networks"}},
		{
			"addresses require manual configuration",
			`{spec: {networks: [{addresses: [10.0.0.5/24]}]}}`,
			[]string{"spec.networks[0].addresses"},
		},
		{
			"manual configuration requires addresses",
			`{spec: {networks: [{addressSource: Manual}]}}`,
			[]string{"spec.networks[0].addresses"},
		},
		{"manual", `{spec: {networks: [{addressSource: Manual, addresses: [10.0.0.5/24]}]}}`, nil},
		{
			"pools require their address source",
			`{spec: {networks: [{poolRefs: [{name: a, kind: InClusterIPPool, apiGroup: ipam.cluster.x-k8s.io}]}]}}`,
			[]string{"spec.networks[0].poolRefs"},
		},
		{
			"the address source requires pools",
			`{spec: {networks: [{addressSource: IPAM}]}}`,
			[]string{"spec.networks[0].poolRefs"},
		},
		{"an address without prefix", `{spec: {networks: [{addressSource: Manual, addresses: [10.0.0.5]}]}}`, []string{"spec.networks[0].addresses[0]"}},
		{"an unknown power-off mode", `{spec: {powerOffMode: soft}}`, []string{"spec.powerOffMode"}},
		{"host names of DHCP", `{spec: {networks: [{addressSource: DHCP, dhcpOverrides: {useHostname: false, hostname: node.example.com}}]}}`, nil},
		{
			"no host name that is not sent",
			`{spec: {networks: [{addressSource: DHCP, dhcpOverrides: {sendHostname: false, hostname: node}}]}}`,
			[]string{"spec.networks[0].dhcpOverrides.hostname"},
		},
		{
			"an invalid host name",
			`{spec: {networks: [{addressSource: DHCP, dhcpOverrides: {hostname: Node_1}}]}}`,
			[]string{"spec.networks[0].dhcpOverrides.hostname"},
		},
		{"an invalid name server", `{spec: {networks: [{nameservers: [dns]}]}}`, []string{"spec.networks[0].nameservers[0]"}},
		{"a route to an IP address", `{spec: {networks: [{routes: [{to: 10.0.0.1, via: 10.0.0.254}]}]}}`, []string{"spec.networks[0].routes[0].to"}},
		{"an empty string is not a policy", `{spec: {sizingPolicy: ""}}`, []string{"spec.sizingPolicy"}},
		{"disks have names", `{spec: {additionalDisks: [{size: 10Gi}]}}`, []string{"spec.additionalDisks[0].name"}},
		{"disks with IOPS", `{spec: {diskIOPS: 500, additionalDisks: [{name: a, size: 10Gi, iops: 1000}]}}`, nil},
		{"VMs on one host", `{spec: {affinity: {group: cache}}}`, nil},
		{"on one host or on different ones", `{spec: {affinity: {group: cache}, antiAffinity: Required}}`, []string{"spec.affinity"}},
		{"a group without a name", `{spec: {affinity: {policy: Required}}}`, []string{"spec.affinity.group"}},
		{"a disk without IOPS", `{spec: {additionalDisks: [{name: a, size: 10Gi, iops: 0}]}}`, []string{"spec.additionalDisks[0].iops"}},
		{"records that a move includes", `{spec: ` + recorded + `}`, nil},
		{"an invalid time", `{spec: {recordedState: {missingSince: soon}}}`, []string{"spec.recordedState.missingSince"}},
		{"an empty record", `{spec: {recordedState: {}}}`, []string{"spec.recordedState"}},
		{"a name with a space", `{spec: {recordedState: {vmName: "a b"}}}`, []string{"spec.recordedState.vmName"}},
		{"a VDC that is not a URN", `{spec: {recordedState: {ovdcID: acme-vdc}}}`, []string{"spec.recordedState.ovdcID"}},
		{"a VM in one", `{spec: {recordedState: {vm: {ovdcID: acme-vdc}}}}`, []string{"spec.recordedState.vm.ovdcID"}},
		{
			"a VM that ran, without a VM",
			`{spec: {recordedState: {poweredOnAt: "2026-08-01T12:00:00Z"}}}`,
			[]string{"spec.recordedState.poweredOnAt"},
		},
		{"a template or a selector", `{spec: {template: }}`, []string{"spec.template"}},
		{"not both", `{spec: {templateSelector: {namePattern: "a-{kubernetesVersion}"}}}`, []string{"spec.template"}},
		{"a selector by name", `{spec: {template: , templateSelector: {namePattern: "a-v{kubernetesVersion}-?*"}}}`, nil},
		{
			"a selector by metadata",
			`{spec: {template: , templateSelector: {matchMetadata: [{key: image role, value: "a: b"}], kubernetesVersionKey: kubernetes}}}`,
			nil,
		},
		{"an empty selector", `{spec: {template: , templateSelector: {}}}`, []string{"spec.templateSelector", "spec.templateSelector"}},
		{"a selector of any version", `{spec: {template: , templateSelector: {namePattern: "a-*"}}}`, []string{"spec.templateSelector"}},
		{
			"a name pattern that a query does not support",
			`{spec: {template: , templateSelector: {namePattern: "a;b-{kubernetesVersion}"}}}`,
			[]string{"spec.templateSelector.namePattern"},
		},
		{
			"a key that a query does not support",
			`{spec: {template: , templateSelector: {kubernetesVersionKey: "a:b"}}}`,
			[]string{"spec.templateSelector.kubernetesVersionKey"},
		},
		{
			"a value with a wildcard",
			`{spec: {template: , templateSelector: {matchMetadata: [{key: a, value: "*"}], kubernetesVersionKey: a}}}`,
			[]string{"spec.templateSelector.matchMetadata[0].value"},
		},
		{"extra configuration", `{spec: {extraConfig: [{key: pciPassthru.use64bitMMIO, value: "TRUE"}]}}`, nil},
		{
			"no extra configuration of the guest",
			`{spec: {extraConfig: [{key: GuestInfo.userdata, value: a}, {key: disk.EnableUUID, value: "0"}]}}`,
			[]string{"spec.extraConfig[0].key", "spec.extraConfig[1].key"},
		},
		{"no key with a space", `{spec: {extraConfig: [{key: "a b", value: a}]}}`, []string{"spec.extraConfig[0].key"}},
		{"no value with a line break", `{spec: {extraConfig: [{key: a, value: "a\nb"}]}}`, []string{"spec.extraConfig[0].value"}},
		{"metadata has values, which may be empty", `{spec: {vmMetadata: [{key: a}, {key: b, value: ""}]}}`, []string{"spec.vmMetadata[0].value"}},
	})
}

func TestCreateVCDMachineTemplate(t *testing.T) {
	checkCreations(t, "VCDMachineTemplate", machineTemplateYAML, []creation{
		{"only the required fields", `{}`, nil},
		{"no VM ID", `{spec: {template: ` + providerID + `}}`, []string{"spec.template.spec.providerID"}},
		{
			"no records of a VM",
			`{spec: {template: {spec: {recordedState: {missingSince: "2026-08-01T12:00:00Z"}}}}}`,
			[]string{"spec.template.spec.recordedState"},
		},
		{
			"no manual addresses",
			`{spec: {template: {spec: {networks: [{addressSource: Manual, addresses: [10.0.0.5/24]}]}}}}`,
			[]string{"spec.template.spec.networks"},
		},
	})
}

func TestCreateIdentitiesAndZones(t *testing.T) {
	checkCreations(t, "VCDIdentity", identityYAML, []creation{
		{"only the required fields", `{}`, nil},
		{"a Secret is required", `{spec: {secretRef: }}`, []string{"spec.secretRef"}},
		{"a site is required", `{spec: {site: }}`, []string{"spec.site"}},
		{"a site in the form of a cluster's", `{spec: {site: "https://vcd.example.com/"}}`, []string{"spec.site"}},
		{"no http", `{spec: {site: "http://vcd.example.com"}}`, []string{"spec.site"}},
		{"an ignored bundle", `{spec: {tls: {caBundle: x, insecureSkipVerify: true}}}`, []string{"spec.tls"}},
		{"allowed extra configuration", `{spec: {allowedExtraConfig: ["pciPassthru*", svga.present]}}`, nil},
		{"no regular expressions", `{spec: {allowedExtraConfig: ["pci[0-9]"]}}`, []string{"spec.allowedExtraConfig[0]"}},
		{"a used bundle", `{spec: {tls: {caBundle: x, insecureSkipVerify: false}}}`, nil},
	})
	checkCreations(t, "VCDClusterIdentity", clusterIdentityYAML, []creation{
		{"only the required fields", `{}`, nil},
		{"any organization", `{spec: {orgs: ["*"]}}`, nil},
		{"a site is required", `{spec: {site: }}`, []string{"spec.site"}},
		{"organizations are required", `{spec: {orgs: }}`, []string{"spec.orgs"}},
		{"at least one", `{spec: {orgs: []}}`, []string{"spec.orgs"}},
		{"each with a name", `{spec: {orgs: [""]}}`, []string{"spec.orgs[0]"}},
	})
	checkCreations(t, "VCDFailureDomain", failureDomainYAML, []creation{{"only the required fields", `{}`, nil}})
	checkCreations(t, "VCDDeploymentZone", deploymentZoneYAML, []creation{
		{"only the required fields", `{}`, nil},
		{"a site in the form of a cluster's", `{spec: {site: "https://vcd.example.com/"}}`, []string{"spec.site"}},
	})
}

func TestCreateRemediations(t *testing.T) {
	checkCreations(t, "VCDRemediation", remediationYAML, []creation{
		{"only the required fields", `{}`, nil},
		{"a spec without a strategy", `{spec: {}}`, []string{"spec.strategy"}},
		{"another strategy", `{spec: {strategy: {type: Reset, retryLimit: 3, timeoutSeconds: 600}}}`, nil},
		{"an unknown type", `{spec: {strategy: {type: Reinstall}}}`, []string{"spec.strategy.type"}},
		{"at least one reset", `{spec: {strategy: {retryLimit: 0}}}`, []string{"spec.strategy.retryLimit"}},
		{"at most ten resets", `{spec: {strategy: {retryLimit: 11}}}`, []string{"spec.strategy.retryLimit"}},
		{"a time to boot", `{spec: {strategy: {timeoutSeconds: 5}}}`, []string{"spec.strategy.timeoutSeconds"}},
	})
	checkCreations(t, "VCDRemediationTemplate", remediationTemplateYAML, []creation{
		{"only the required fields", `{}`, nil},
		{"a template is required", `{spec: {template: }}`, []string{"spec.template"}},
	})
}

// recorded is the spec of a machine that has run, with its recorded state.
const recorded = `{providerID: "vmware-cloud-director://urn:vcloud:vm:` + uuid1 + `", recordedState: {instanceID: uid, vmName: a,
deploymentZone: z, ovdcID: "urn:vcloud:vdc:` + uuid1 + `", vAppNumber: 2, template: {id: "urn:vcloud:vapptemplate:` + uuid1 + `", name: a}, creationRequestedAt: "2026-08-01T12:00:00Z",
poweredOnAt: "2026-08-01T12:00:00Z", missingSince: "2026-08-01T12:00:00Z", deleteRequestedAt: "2026-08-01T12:00:00Z",
vmGoneAt: "2026-08-01T12:00:00Z", bootstrapDataRemoved: {guest: Running}, poweredOnAgain: {count: 1, lastAt: "2026-08-01T12:00:00Z"},
restart: {requestedAt: "2026-08-01T12:00:00Z", failedAt: "2026-08-01T12:00:00Z"},
vm: {cpus: 2, nics: [{macAddress: "00:50:56:00:00:01"}]}, vmMetadata: [{key: a, access: ReadWrite}]}}`

func TestMachineRecordsAreProtected(t *testing.T) {
	const at = "spec.recordedState"
	c := loadCRDs(t)["VCDMachine"]
	for _, tt := range []struct {
		name, change string
		fields       []string
	}{
		{"another instance ID", `{instanceID: other}`, []string{at + ".instanceID"}},
		{"no instance ID", `{instanceID: }`, []string{at + ".instanceID"}},
		{"another VM name", `{vmName: other}`, []string{at + ".vmName"}},
		{"no VM name", `{vmName: }`, []string{at + ".vmName"}},
		{"another zone", `{deploymentZone: other}`, []string{at + ".deploymentZone"}},
		{"no zone", `{deploymentZone: }`, []string{at + ".deploymentZone"}},
		{"another VDC", `{ovdcID: "urn:vcloud:vdc:` + uuid2 + `"}`, []string{at + ".ovdcID"}},
		{"no VDC", `{ovdcID: }`, []string{at + ".ovdcID"}},
		{"another time of the first run", `{poweredOnAt: "2026-08-01T13:00:00Z"}`, []string{at + ".poweredOnAt"}},
		{"no time of the first run", `{poweredOnAt: }`, []string{at + ".poweredOnAt"}},
		{"another time of the deletion", `{deleteRequestedAt: "2026-08-01T13:00:00Z"}`, []string{at + ".deleteRequestedAt"}},
		{"no time of the deletion", `{deleteRequestedAt: }`, []string{at + ".deleteRequestedAt"}},
		{"no proof that the VM was deleted", `{vmGoneAt: }`, []string{at + ".vmGoneAt"}},
		{"no request for its creation", `{creationRequestedAt: }`, []string{at + ".creationRequestedAt"}},
		{"a later request for its creation", `{creationRequestedAt: "2026-08-01T13:00:00Z"}`, nil},
		{"another template", `{template: {id: "urn:vcloud:vapptemplate:` + uuid2 + `", name: a}}`, []string{at + ".template"}},
		{"no template", `{template: }`, []string{at + ".template"}},
		{"another vApp", `{vAppNumber: 3}`, []string{at + ".vAppNumber"}},
		{"the first vApp", `{vAppNumber: }`, []string{at + ".vAppNumber"}},
		{"a VM that reappears", `{missingSince: }`, nil},
		{"a VM to accept as is", `{vm: }`, nil},
		{"metadata to write again", `{vmMetadata: }`, nil},
		{"forgotten attempts", `{poweredOnAgain: }`, nil},
		{"an update to retry", `{restart: }`, nil},
		{"bootstrap data to search again", `{bootstrapDataRemoved: }`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			errs := c.admit(t, parse(t, machineYAML, `{spec: `+recorded+`}`, `{spec: {recordedState: `+tt.change+`}}`),
				parse(t, machineYAML, `{spec: `+recorded+`}`))

			g.Expect(fieldsOf(errs)).To(Equal(tt.fields), "%v", errs)
		})
	}
}

func TestMachineRecordsCannotBeRemovedAllAtOnce(t *testing.T) {
	g := NewWithT(t)
	c := loadCRDs(t)["VCDMachine"]

	errs := c.admit(t, parse(t, machineYAML, `{spec: `+recorded+`}`, `{spec: {recordedState: }}`),
		parse(t, machineYAML, `{spec: `+recorded+`}`))

	g.Expect(fieldsOf(errs)).To(ContainElement("spec.recordedState"))
	g.Expect(c.admit(t, parse(t, machineYAML), parse(t, machineYAML, `{spec: {recordedState: {missingSince: "2026-08-01T12:00:00Z"}}}`))).
		To(BeEmpty(), "the only record")
}

func TestUpdate(t *testing.T) {
	const (
		endpointSet = `{spec: {controlPlaneEndpoint: {host: 192.168.100.200, port: 6443}}}`
	)
	type update struct {
		name, kind, base, before, change string
		fields                           []string
	}
	tests := []update{
		{
			"an incorrect VDC can be corrected",
			"VCDCluster",
			clusterYAML,
			`{}`,
			`{spec: {ovdc: other, ovdcNetwork: other}}`,
			nil,
		},
		{
			"an incorrect virtual IP can be corrected",
			"VCDCluster",
			clusterYAML,
			`{}`,
			`{spec: {controlPlaneEndpoint: {host: 192.168.100.201}}}`,
			nil,
		},
		{
			"the controller can write its fields",
			"VCDCluster",
			clusterYAML,
			`{}`,
			`{spec: {infraID: 0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e, controlPlaneEndpoint: {host: 192.168.100.200, port: 6443}}}`,
			nil,
		},
		{
			"an endpoint can still be found",
			"VCDCluster",
			clusterYAML,
			identified,
			`{spec: {controlPlaneEndpoint: {host: 192.168.100.200, port: 6443}}}`,
			nil,
		},
		{
			"the virtual IP cannot change",
			"VCDCluster",
			clusterYAML,
			identified,
			`{spec: {controlPlaneEndpoint: {host: 192.168.100.201}}}`,
			[]string{"spec.controlPlaneEndpoint"},
		},
		{
			"the port cannot change",
			"VCDCluster",
			clusterYAML,
			`{spec: {infraID: 0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e, controlPlaneEndpoint: {port: 6443}}}`,
			`{spec: {controlPlaneEndpoint: {port: 443}}}`,
			[]string{"spec.controlPlaneEndpoint"},
		},
		{
			"a pool cannot be added",
			"VCDCluster",
			clusterYAML,
			identified,
			`{spec: {controlPlaneLoadBalancer: {kubeVIP: {addressSource: IPAM, poolRefs: [{name: vips, kind: InClusterIPPool, apiGroup: ipam.cluster.x-k8s.io}]}}}}`,
			[]string{"spec.controlPlaneLoadBalancer.kubeVIP", "spec.controlPlaneLoadBalancer.kubeVIP"},
		},
		{
			"the image of kube-vip can change",
			"VCDCluster",
			clusterYAML,
			identified,
			`{spec: {controlPlaneLoadBalancer: {kubeVIP: {image: "ghcr.io/kube-vip/kube-vip:v9", interface: eth1}}}}`,
			nil,
		},
		{
			"the peers of kube-vip can change",
			"VCDCluster",
			clusterYAML,
			identified,
			`{spec: {controlPlaneLoadBalancer: {kubeVIP: {bgp: {asNumber: 1, routerInterface: eth0, peers: [{address: 10.0.0.1, asNumber: 2}]}}}}}`,
			nil,
		},
		{
			"kube-vip cannot become a DaemonSet",
			"VCDCluster",
			clusterYAML,
			identified,
			`{spec: {controlPlaneLoadBalancer: {kubeVIP: {mode: DaemonSet}}}}`,
			[]string{"spec.controlPlaneLoadBalancer.kubeVIP"},
		},
		{
			"kube-vip can be set to a static pod",
			"VCDCluster",
			clusterYAML,
			identified,
			`{spec: {controlPlaneLoadBalancer: {kubeVIP: {mode: StaticPod}}}}`,
			nil,
		},
		{"nothing changes", "VCDCluster", clusterYAML, endpointSet, `{metadata: {labels: {a: b}}}`, nil},

		{
			"an incorrect template can be corrected",
			"VCDMachine",
			machineYAML,
			`{}`,
			`{spec: {template: other, catalog: other}}`,
			nil,
		},
		{"the controller can write the VM ID", "VCDMachine", machineYAML, `{}`, providerID, nil},

		{
			"dry runs of the topology controller reach the webhook",
			"VCDMachineTemplate",
			machineTemplateYAML,
			`{}`,
			`{spec: {template: {spec: {template: other}}}}`,
			nil,
		},
		{
			"dry runs of clusters, too",
			"VCDClusterTemplate",
			clusterTemplateYAML,
			`{}`,
			`{spec: {template: {spec: {site: "https://other.example.com", org: other}}}}`,
			nil,
		},
	}
	crds := loadCRDs(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			errs := crds[tt.kind].admit(t, parse(t, tt.base, tt.before, tt.change), parse(t, tt.base, tt.before))

			g.Expect(fieldsOf(errs)).To(Equal(tt.fields), "%v", errs)
		})
	}
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	crds := loadCRDs(t)
	cluster := parse(t, clusterYAML)
	machine := parse(t, machineYAML, `{spec: {networks: [{}]}}`)

	g.Expect(crds["VCDCluster"].admit(t, cluster, nil)).To(BeEmpty())
	g.Expect(crds["VCDMachine"].admit(t, machine, nil)).To(BeEmpty())

	g.Expect(cluster["spec"]).To(Equal(parse(t, clusterYAML, `{spec: {identityRef: {kind: VCDIdentity}, controlPlaneLoadBalancer: {type: KubeVIP},
vApp: {layout: PerFailureDomain}, orphanedDiskPolicy: Retain, rde: {mode: "None"}}}`)["spec"]),
		"a minimal stored VCDCluster")
	g.Expect(machine["spec"]).To(Equal(parse(t, machineYAML, `{spec: {networks: [{addressSource: StaticPool, adapter: VMXNET3}],
powerOffPolicy: Report, powerOffMode: TrySoft, shutdownTimeoutSeconds: 60, antiAffinity: None}}`)["spec"]),
		"a minimal stored VCDMachine")
}
