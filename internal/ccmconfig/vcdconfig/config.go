// SPDX-License-Identifier: Apache-2.0

// Package vcdconfig is the schema of the cloud controller manager's configuration for VMware Cloud Director. It
// contains every key of VMware's CPI 1.6.1, and more. The manager writes this configuration for the cloud controller
// manager. The comments of the fields are the text of docs/reference/ccm-config.md. The tag "legacy" marks the keys of
// CPI 1.6.1, which also supports all aliases and ignored keys.
package vcdconfig

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// Values of LoadBalancer.TLSPorts and Nodes.DefaultZone that preserve the behavior of CPI.
const (
	TLSPortsAnnotated = "Annotated"
	DefaultZoneNone   = "None"
)

// Config is the content of the file.
type Config struct {
	VCD VCD `json:"vcd"`
	// ID of the cluster, which marks its objects. If it is the URN of a runtime defined entity, the controller keeps
	// that entity up to date. Required with load balancers.
	ClusterID string `json:"clusterid,omitzero" env:"CLUSTER_ID" fallback:"variable 'CLUSTER_ID'" legacy:"true"`
	// vApp of the nodes. See `nodes.vApps`.
	VAppName     string       `json:"vAppName,omitzero" kind:"name" legacy:"true"`
	LoadBalancer LoadBalancer `json:"loadbalancer"`
	Nodes        Nodes        `json:"nodes,omitzero"`
	RDE          RDE          `json:"rde,omitzero"`
}

// VCD configures the cluster and the access to VMware Cloud Director.
type VCD struct {
	// Address of VMware Cloud Director, `https://host[:port]`. Required.
	Host string `json:"host" kind:"URL" legacy:"true" required:"set an address such as https://vcd.example.com"`
	// Organization of the cluster. Required.
	Org string `json:"org" kind:"name" legacy:"true" required:"set the organization of the cluster"`
	// Organization VDC of the cluster. Required unless `vcd.vdcs` or `nodes.zones` are set.
	VDC string `json:"vdc" kind:"name or URN" legacy:"true"`
	// Additional VDCs with machines of the cluster.
	VDCs []string `json:"vdcs,omitzero" kind:"list of names or URNs"`
	// Organization of the user, if it differs from `vcd.org`. A user name of the form `org/user` has the same effect.
	UserOrg string `json:"userOrg,omitzero" alias:"userorg" kind:"name" fallback:"'vcd.org'"`
	// User name. Prefer the Secret, which takes precedence.
	User string `json:"user,omitzero" legacy:"true"`
	// Password. Prefer the Secret, which takes precedence.
	Secret ccmconfig.Secret `json:"secret,omitzero" legacy:"true"`
	// API token. Prefer the Secret, which takes precedence.
	RefreshToken ccmconfig.Secret  `json:"refreshtoken,omitzero" legacy:"true"`
	ZoneEnabled  ccmconfig.Ignored `json:"isZoneEnabledCluster,omitzero" ignored:"zones are set in 'nodes.zones'"`
	// Trusted certificate authorities, instead of those of the system.
	CABundle string `json:"caBundle,omitzero" kind:"PEM"`
	// File with trusted certificate authorities.
	CABundleFile string `json:"caBundleFile,omitzero" kind:"file"`
	// Trust any certificate. An attacker on the network can then read the credentials.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitzero" fallback:"false"`
	// Secret in the controller's namespace with key `refreshToken`: the rotating token of a service account. Only the
	// controller may use this Secret.
	ServiceAccountSecret string `json:"serviceAccountSecret,omitzero" kind:"name"`
	// Maximum rate of requests, per second.
	RequestsPerSecond float64 `json:"requestsPerSecond,omitzero" fallback:"20"`
	// Maximum burst of requests.
	Burst int `json:"burst,omitzero" fallback:"40"`
	// Maximum number of concurrent requests.
	InFlight int `json:"inFlight,omitzero" fallback:"8"`
	// Timeout of a request, including its response.
	RequestTimeout metav1.Duration `json:"requestTimeout,omitzero" fallback:"1m"`
}

// LoadBalancer configures Services of type LoadBalancer.
type LoadBalancer struct {
	// Create load balancers for Services. If false, the controller manages only Nodes and does not require NSX.
	// Services with load balancers keep them and cannot be deleted until it is true again.
	Enabled  *bool             `json:"enabled,omitzero" fallback:"true"`
	SharedIP ccmconfig.Ignored `json:"enableVirtualServiceSharedIP,omitzero" ignored:"sharing depends only on VCD"`
	Ports    Ports             `json:"ports,omitzero"`
	// Alias in VCD's certificate library of the default certificate for TLS ports.
	CertAlias string `json:"certAlias,omitzero" fallback:"'<clusterid>-cert'" legacy:"true"`
	// Ports with TLS termination. `AppProtocol` selects the ports in annotation `vcloud-avi-ssl-ports` and those with
	// appProtocol `https`; `Annotated` selects only the former, as CPI does. TLS to other ports passes through.
	TLSPorts string `json:"tlsPorts,omitzero" enum:"AppProtocol,Annotated" fallback:"AppProtocol"`
	// Service engine group of virtual services; the first with free capacity if empty.
	EngineGroup string `json:"engineGroup,omitzero" kind:"name"`
	// Load balancing algorithm of pools: ROUND_ROBIN, LEAST_CONNECTIONS, LEAST_LOAD, FASTEST_RESPONSE, FEWEST_SERVERS,
	// FEWEST_TASKS, RANDOM, CONSISTENT_HASH or CORE_AFFINITY.
	Algorithm string `json:"algorithm,omitzero" fallback:"ROUND_ROBIN"`
	// Create firewall rules for `spec.loadBalancerSourceRanges` of a Service. If false, such a Service is rejected.
	SourceRanges bool `json:"sourceRanges,omitzero" fallback:"false"`
	// Include control plane nodes as members of load balancers.
	IncludeControlPlane bool `json:"includeControlPlane,omitzero" fallback:"false"`
	// The `spec.loadBalancerClass` of the Services that get a load balancer, in addition to Services without a class.
	Class string `json:"class,omitzero"`
	// Ignore Services without a class.
	ClassOnly bool `json:"classOnly,omitzero" fallback:"false"`
	// Interval of the drift check of load balancers.
	DriftInterval metav1.Duration `json:"driftInterval,omitzero" default:"1m"`
	// Addresses that no Service may use, such as the virtual IP of the control plane. Addresses of Nodes are always
	// reserved.
	ReservedAddresses []netip.Addr `json:"reservedAddresses,omitzero" kind:"list of addresses"`
	EdgeGateway
	Gateways []Gateway `json:"gateways,omitzero"`
	KubeVIP  KubeVIP   `json:"kubeVIP,omitzero"`
}

// KubeVIP configures the addresses of Services that kube-vip announces from the nodes.
type KubeVIP struct {
	// `spec.loadBalancerClass` of the Services that kube-vip serves. If empty, it serves the Services without a class,
	// and no load balancers are created in VCD.
	Class         string         `json:"class,omitzero"`
	AddressRanges []AddressRange `json:"addressRanges,omitzero"`
}

// An AddressRange is a range of addresses that kube-vip announces. Both ends are included.
type AddressRange struct {
	// First address of a range for Services that kube-vip serves.
	StartIP netip.Addr `json:"startIP"`
	// Last address of the range.
	EndIP netip.Addr `json:"endIP"`
}

// Enabled reports whether kube-vip serves any Services.
func (k KubeVIP) Enabled() bool { return len(k.AddressRanges) > 0 }

// Replaces reports whether kube-vip serves the Services without a class, so that VCD has no load balancers.
func (k KubeVIP) Replaces() bool { return k.Enabled() && k.Class == "" }

// Disabled reports whether no load balancers are created in VCD.
func (b LoadBalancer) Disabled() bool {
	return b.Enabled != nil && !*b.Enabled || b.KubeVIP.Replaces()
}

// AllGateways returns the default gateway, whose name is empty, and the others.
func (b LoadBalancer) AllGateways() []Gateway {
	return append([]Gateway{{EdgeGateway: b.EdgeGateway}}, b.Gateways...)
}

// Ports have no effect.
type Ports struct {
	HTTP  ccmconfig.Ignored `json:"http,omitzero" ignored:"ports are those of the Service"`
	HTTPS ccmconfig.Ignored `json:"https,omitzero" ignored:"ports are those of the Service"`
}

// A Gateway is an additional edge gateway.
type Gateway struct {
	// Name by which Services refer to this gateway.
	Name string `json:"name" kind:"name"`
	EdgeGateway
}

// An EdgeGateway is the place of load balancers.
type EdgeGateway struct {
	// Routed organization network of the nodes, whose edge gateway has the load balancers. This field or `edgeGateway`
	// is required.
	Network string `json:"network,omitzero" kind:"name" legacy:"true"`
	// Edge gateway for the load balancers.
	ID string `json:"edgeGateway,omitzero" kind:"name or URN"`
	// Subnet for the addresses of Services.
	VIPSubnet netip.Prefix `json:"vipSubnet,omitzero" legacy:"true"`
	// IP Space for the addresses of Services; any of the gateway if empty.
	IPSpace string `json:"ipSpace,omitzero" kind:"name"`
	OneArm  *Range `json:"oneArm,omitzero"`
	// Subnets for addresses of internal load balancers, including requested addresses. If empty, any private address
	// that no Node, VM or gateway uses.
	InternalSubnets []netip.Prefix `json:"internalSubnets,omitzero" kind:"list of CIDR"`
}

// A Range is the range of internal addresses of virtual services in one-arm mode. Both ends are included.
type Range struct {
	// First internal address of virtual services in one-arm mode, with a DNAT rule for each port.
	StartIP netip.Addr `json:"startIP" legacy:"true"`
	// Last internal address of virtual services in one-arm mode.
	EndIP netip.Addr `json:"endIP" legacy:"true"`
}

// Nodes configures the machines of the cluster, and the data that is reported about them.
type Nodes struct {
	// vApps that contain nodes of the cluster.
	VApps []string `json:"vApps,omitzero" kind:"list of names"`
	// Name prefix of vApps with nodes, if each node has its own vApp. Nodes are also found by their provider IDs in any
	// vApp.
	VAppNamePrefix string `json:"vAppNamePrefix,omitzero"`
	// Region of nodes that match no zone of `nodes.zones`.
	Region string `json:"region,omitzero"`
	// Zone of nodes that match no zone of `nodes.zones`: `VDC` for the name of their VDC, or `None`, as with CPI.
	DefaultZone string `json:"defaultZone,omitzero" enum:"VDC,None" fallback:"VDC"`
	// Maximum age of the cached list of machines. A refresh is one query to VCD.
	MaxAge    metav1.Duration `json:"maxAge,omitzero" default:"30s"`
	Zones     []Zone          `json:"zones,omitzero"`
	Addresses Addresses       `json:"addresses,omitzero"`
}

// A Zone is a failure domain: a VDC, or a placement policy in it.
type Zone struct {
	// Zone of the nodes in that VDC.
	Name string `json:"name" required:"set the name of the zone"`
	// Region of the zone.
	Region string `json:"region,omitzero" fallback:"'nodes.region'"`
	// Organization VDC of the zone. Required.
	VDC string `json:"vdc" kind:"name or URN" required:"set the VDC of the zone"`
	// VM placement policy of the zone, if the zone is a part of a VDC.
	PlacementPolicy string `json:"placementPolicy,omitzero" kind:"name or URN"`
}

// Addresses selects the addresses of Nodes.
type Addresses struct {
	// IP families in the order in which addresses are reported; IPv4 first if empty.
	Families []corev1.IPFamily `json:"families,omitzero" kind:"list of IPv4, IPv6" enum:"IPv4,IPv6" fallback:"both"`
	Internal Selection         `json:"internal,omitzero"`
	External Selection         `json:"external,omitzero"`
}

// A Selection selects addresses of a node. An empty one selects nothing.
type Selection struct {
	// Indexes of the NICs whose addresses are InternalIP or ExternalIP.
	NICs []int `json:"nics,omitzero" fallback:"internal: the primary NIC; external: none"`
	// Networks whose addresses are reported.
	CIDRs []netip.Prefix `json:"cidrs,omitzero"`
	// Networks whose addresses are not reported.
	Exclude []netip.Prefix `json:"exclude,omitzero"`
}

// RDE is the runtime defined entity of the cluster.
type RDE struct {
	// Update section `status.cpi` of the cluster's runtime defined entity, if it exists. Entries of deleted objects are
	// removed two minutes after the start, and once an hour.
	Enabled *bool `json:"enabled,omitzero" fallback:"true"`
	// The runtime defined entity of the cluster.
	ID string `json:"id,omitzero" kind:"URN" fallback:"'clusterid', if it is a URN"`
}
