// SPDX-License-Identifier: Apache-2.0

// Package vsphereconfig is the schema of the cloud controller manager's configuration for vSphere. It contains every
// key of the vSphere CPI, which may be in YAML, in INI or in the environment, and more. The comments of the fields are
// the text of docs/reference/ccm-config-vsphere.md. The tag "ours" marks the keys that the vSphere CPI does not have.
// An alias is the name in INI files.
package vsphereconfig

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// Config is the content of the file.
type Config struct {
	Global   Global              `json:"global,omitzero"`
	VCenters map[string]*VCenter `json:"vcenter,omitzero" alias:"virtualcenter"`
	Labels   Labels              `json:"labels,omitzero"`
	Nodes    Nodes               `json:"nodes,omitzero"`

	NSXT ccmconfig.Ignored `json:"nsxt,omitzero" ignored:"this controller does not create NSX load balancers and routes"`

	LoadBalancer ccmconfig.Ignored `json:"loadBalancer,omitzero" alias:"loadbalancer" ignored:"vSphere has no load balancers: use kube-vip, MetalLB or NSX's own controller"`
	Classes      ccmconfig.Ignored `json:"loadBalancerClass,omitzero" alias:"loadbalancerclass" ignored:"vSphere has no load balancers: use kube-vip, MetalLB or NSX's own controller"`
	Route        ccmconfig.Ignored `json:"route,omitzero" ignored:"vSphere has no routes: use an overlay network of the network plugin"`
}

// Global contains the defaults for all vCenters.
type Global struct {
	// User name, or a certificate in PEM format for a login by token, with its key as password. Prefer a Secret.
	User string `json:"user,omitzero" env:"VSPHERE_USER"`
	// Password of the user. Prefer a Secret.
	Password ccmconfig.Secret `json:"password,omitzero" env:"VSPHERE_PASSWORD"`
	// Name or address of a single vCenter. Configure several vCenters in separate sections.
	Server string `json:"server,omitzero" kind:"host" env:"VSPHERE_VCENTER"`
	// Port of vCenters.
	Port int `json:"port,omitzero" env:"VSPHERE_VCENTER_PORT" fallback:"443"`
	// Trust any certificate, of every vCenter. An attacker on the network can then read the credentials.
	Insecure bool `json:"insecureFlag,omitzero" alias:"insecure-flag" env:"VSPHERE_INSECURE" fallback:"false"`
	// Datacenters with VMs of the cluster, by name or path.
	Datacenters []string `json:"datacenters,omitzero" commas:"true" kind:"list of names" env:"VSPHERE_DATACENTER" fallback:"all"`
	// Number of attempts to send a request if the network fails.
	RoundTrips int `json:"soapRoundtripCount,omitzero" alias:"soap-roundtrip-count" env:"VSPHERE_ROUNDTRIP_COUNT" fallback:"3"`
	// File with trusted certificate authorities in PEM format, instead of those of the system.
	CAFile string `json:"caFile,omitzero" alias:"ca-file" kind:"file" env:"VSPHERE_CAFILE"`
	// SHA-256 or SHA-1 thumbprint of the trusted certificate.
	Thumbprint string `json:"thumbprint,omitzero" env:"VSPHERE_THUMBPRINT"`
	// Secret with credentials: `<host>.username` and `<host>.password` for each vCenter.
	SecretName string `json:"secretName,omitzero" alias:"secret-name" kind:"name" env:"VSPHERE_SECRET_NAME"`
	// Namespace of the Secret.
	SecretNamespace string `json:"secretNamespace,omitzero" alias:"secret-namespace" kind:"name" env:"VSPHERE_SECRET_NAMESPACE" fallback:"that of the controller"`
	// Directory with the files of a mounted Secret.
	SecretsDirectory string `json:"secretsDirectory,omitzero" alias:"secrets-directory" kind:"directory" env:"VSPHERE_SECRETS_DIRECTORY" fallback:"'/etc/cloud/secrets', if it exists"`
	// IP families in the order in which addresses are reported.
	Families []string `json:"ipFamily,omitzero" alias:"ip-family" commas:"true" enum:"ipv4,ipv6" kind:"list of ipv4, ipv6" fallback:"ipv4"`

	APIDisable ccmconfig.Ignored `json:"apiDisable,omitzero" alias:"api-disable" ignored:"this API no longer exists"`
	APIBinding ccmconfig.Ignored `json:"apiBinding,omitzero" alias:"api-binding" ignored:"this API no longer exists"`
}

// A VCenter is one vCenter. Missing values are those of Global.
type VCenter struct {
	// Name or address of the vCenter.
	Server string `json:"server,omitzero" kind:"host" fallback:"the name of the section"`
	// See `global.user`.
	User string `json:"user,omitzero" fallback:"'global.user'"`
	// See `global.password`.
	Password ccmconfig.Secret `json:"password,omitzero" fallback:"'global.password'"`
	// Port of the vCenter.
	Port int `json:"port,omitzero" fallback:"'global.port'"`
	// Trust any certificate.
	Insecure bool `json:"insecureFlag,omitzero" alias:"insecure-flag" fallback:"'global.insecureFlag'"`
	// Datacenters with VMs of the cluster, by name or path.
	Datacenters []string `json:"datacenters,omitzero" commas:"true" kind:"list of names" fallback:"'global.datacenters'"`
	// Number of attempts to send a request if the network fails.
	RoundTrips int `json:"soapRoundtripCount,omitzero" alias:"soap-roundtrip-count" fallback:"'global.soapRoundtripCount'"`
	// File with trusted certificate authorities.
	CAFile string `json:"caFile,omitzero" alias:"ca-file" kind:"file" fallback:"'global.caFile'"`
	// SHA-256 or SHA-1 thumbprint of the trusted certificate.
	Thumbprint string `json:"thumbprint,omitzero" fallback:"'global.thumbprint'"`
	// Secret with the credentials for this vCenter.
	SecretName string `json:"secretName,omitzero" alias:"secret-name" kind:"name" fallback:"'global.secretName'"`
	// Namespace of the Secret.
	SecretNamespace string `json:"secretNamespace,omitzero" alias:"secret-namespace" kind:"name" fallback:"'global.secretNamespace'"`
	// IP families of the addresses of its VMs.
	Families []string `json:"ipFamily,omitzero" alias:"ip-family" commas:"true" enum:"ipv4,ipv6" kind:"list of ipv4, ipv6" fallback:"'global.ipFamily'"`
}

// Labels configures the data that is reported about the place of a VM.
type Labels struct {
	// Category of tags whose names are zones. The closest tag takes precedence, in this order: the VM, its host,
	// cluster, resource pools, folders, datacenter.
	Zone string `json:"zone,omitzero" env:"VSPHERE_LABEL_ZONE" kind:"name" fallback:"no zones"`
	// Category of tags whose names are regions.
	Region string `json:"region,omitzero" env:"VSPHERE_LABEL_REGION" kind:"name" fallback:"no regions"`
	// Category of tags on VMs whose names replace the instance type.
	InstanceType string `json:"instanceType,omitzero" alias:"instance-type" kind:"name" ours:"true" fallback:"'vsphere-vm.cpu-N.mem-Ngb.os-X'"`
	// Key of a label with the name of the ESXi host, as it was when the Node was initialized.
	Host string `json:"host,omitzero" kind:"key of a label" ours:"true" fallback:"no such label"`
	// Key of a label with the name of the cluster of hosts, as it was when the Node was initialized.
	Cluster string `json:"cluster,omitzero" kind:"key of a label" ours:"true" fallback:"no such label"`
}

// Nodes configures the addresses of Nodes.
type Nodes struct {
	// Networks of the InternalIP; the first one with an address is used.
	InternalCIDRs []netip.Prefix `json:"internalNetworkSubnetCidr,omitzero" alias:"internal-network-subnet-cidr" commas:"true" env:"VSPHERE_NODES_INTERNAL_NETWORK_SUBNET_CIDR"`
	// Networks of the ExternalIP; the first one with an address is used.
	ExternalCIDRs []netip.Prefix `json:"externalNetworkSubnetCidr,omitzero" alias:"external-network-subnet-cidr" commas:"true" env:"VSPHERE_NODES_EXTERNAL_NETWORK_SUBNET_CIDR"`
	// Name of the network of the InternalIP, if no CIDR matches.
	InternalNetwork string `json:"internalVmNetworkName,omitzero" alias:"internal-vm-network-name" kind:"name" env:"VSPHERE_NODES_INTERNAL_VM_NETWORK_NAME"`
	// Name of the network of the ExternalIP, if no CIDR matches.
	ExternalNetwork string `json:"externalVmNetworkName,omitzero" alias:"external-vm-network-name" kind:"name" env:"VSPHERE_NODES_EXTERNAL_VM_NETWORK_NAME"`
	// Networks that are excluded from the InternalIP.
	ExcludeInternal []netip.Prefix `json:"excludeInternalNetworkSubnetCidr,omitzero" alias:"exclude-internal-network-subnet-cidr" commas:"true"`
	// Networks that are excluded from the ExternalIP.
	ExcludeExternal []netip.Prefix `json:"excludeExternalNetworkSubnetCidr,omitzero" alias:"exclude-external-network-subnet-cidr" commas:"true"`
	// Maximum age of the cached list of VMs. A refresh is one request to each vCenter.
	MaxAge metav1.Duration `json:"maxAge,omitzero" alias:"max-age" ours:"true" default:"30s"`
}
