// SPDX-License-Identifier: Apache-2.0

package v1beta4

// EndpointType is the type of the control-plane endpoint.
// +kubebuilder:validation:Enum=KubeVIP;EdgeGateway;External
type EndpointType string

// Endpoint types.
const (
	// EndpointKubeVIP is a virtual IP that kube-vip announces from the control-plane nodes.
	EndpointKubeVIP EndpointType = "KubeVIP"
	// EndpointEdgeGateway is an NSX ALB virtual service on the network's edge gateway.
	EndpointEdgeGateway EndpointType = "EdgeGateway"
	// EndpointExternal is a load balancer that the user provides.
	EndpointExternal EndpointType = "External"
)

// ControlPlaneLoadBalancerSpec is a union: only the member for its type may be set. Host and port of the endpoint are
// set in controlPlaneEndpoint.
// +kubebuilder:validation:XValidation:rule="self.type == 'KubeVIP' || !has(self.kubeVIP)",fieldPath=".kubeVIP",message="may only be set when type is KubeVIP"
// +kubebuilder:validation:XValidation:rule="self.type == 'EdgeGateway' || !has(self.edgeGateway)",fieldPath=".edgeGateway",message="may only be set when type is EdgeGateway"
// +kubebuilder:validation:MinProperties=1
type ControlPlaneLoadBalancerSpec struct {
	// type of the endpoint: KubeVIP, which is the default, EdgeGateway or External.
	// +optional
	// +kubebuilder:default=KubeVIP
	Type EndpointType `json:"type,omitempty"`

	// kubeVIP configures an endpoint of type KubeVIP.
	// +optional
	KubeVIP *KubeVIPEndpoint `json:"kubeVIP,omitempty"`

	// edgeGateway configures an endpoint of type EdgeGateway.
	// +optional
	EdgeGateway *EdgeGatewayEndpoint `json:"edgeGateway,omitempty"`
}

// KubeVIPMode is the workload type of kube-vip.
// +kubebuilder:validation:Enum=StaticPod;DaemonSet
type KubeVIPMode string

// Modes of kube-vip.
const (
	// KubeVIPStaticPod is a static pod on each control-plane node.
	KubeVIPStaticPod KubeVIPMode = "StaticPod"
	// KubeVIPDaemonSet is a DaemonSet in the workload cluster, which is updated in place. The first node has a static
	// pod until the DaemonSet runs.
	KubeVIPDaemonSet KubeVIPMode = "DaemonSet"
)

// VIPSource is the source of the virtual IP of the control plane.
// +kubebuilder:validation:Enum=Manual;IPAM;DHCP
type VIPSource string

// Sources of virtual IPs.
const (
	// VIPSourceManual is controlPlaneEndpoint.host: the address, or a name with a DNS record that the user manages.
	VIPSourceManual VIPSource = "Manual"
	// VIPSourceIPAM is a pool of the Cluster API IPAM contract.
	VIPSourceIPAM VIPSource = "IPAM"
	// VIPSourceDHCP is a DHCP server that updates the record of controlPlaneEndpoint.host by dynamic DNS.
	VIPSourceDHCP VIPSource = "DHCP"
)

// KubeVIPEndpoint configures kube-vip. addressSource determines which of the other fields may be set.
// +kubebuilder:validation:XValidation:rule="(self.?addressSource.orValue('Manual') == 'IPAM') == has(self.poolRefs)",fieldPath=".poolRefs",message="must be set when addressSource is IPAM, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.secondaryPoolRefs) || has(self.poolRefs)",fieldPath=".secondaryPoolRefs",message="may only be set when addressSource is IPAM"
// +kubebuilder:validation:XValidation:rule="!has(self.secondaryAddress) || self.?addressSource.orValue('Manual') == 'Manual'",fieldPath=".secondaryAddress",message="may only be set when addressSource is Manual"
// +kubebuilder:validation:XValidation:rule="!has(self.bgp) || self.?addressSource.orValue('Manual') != 'DHCP'",fieldPath=".bgp",message="cannot be set when addressSource is DHCP: the address belongs to the nodes' network and requires ARP"
type KubeVIPEndpoint struct {
	// addressSource is the source of the virtual IP. Manual, the default, uses controlPlaneEndpoint.host: an address
	// outside the static pool and the DHCP ranges of the nodes' network, and in that network unless bgp is set; or a
	// name with a DNS record that you manage. IPAM claims the address from poolRefs. With DHCP,
	// controlPlaneEndpoint.host is a name: kube-vip requests an IPv4 address from a DHCP server for the first label of
	// the name, and the server updates the record by dynamic DNS. The name must resolve before the first node starts.
	// Immutable once infraID is set.
	// +optional
	// +kubebuilder:default=Manual
	AddressSource VIPSource `json:"addressSource,omitempty"`

	// secondaryAddress is the virtual IP of the other family, for dual stack. Immutable once infraID is set.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address, such as 10.0.0.10"
	SecondaryAddress string `json:"secondaryAddress,omitempty"`

	// poolRefs are the IPAM pools for the virtual IP, in order: the next one is used when a pool has no free address or
	// does not respond. The claimed address is the endpoint's host.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	PoolRefs []IPPoolReference `json:"poolRefs,omitempty"`

	// secondaryPoolRefs are the IPAM pools, in order, for the virtual IP of the other family, for dual stack.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	SecondaryPoolRefs []IPPoolReference `json:"secondaryPoolRefs,omitempty"`

	// mode is the workload type of kube-vip: StaticPod (default) or DaemonSet. Immutable once infraID is set.
	// +optional
	// +kubebuilder:default=StaticPod
	Mode KubeVIPMode `json:"mode,omitempty"`

	// bgp announces the virtual IPs to routers with BGP, so that control planes may be in different networks. If empty,
	// ARP (IPv6: neighbor discovery) is used. Mutable in place; takes effect on new control-plane nodes, in mode
	// DaemonSet on all.
	// +optional
	BGP *KubeVIPBGP `json:"bgp,omitempty"`

	// interface of the nodes for the virtual IPs; if empty, kube-vip uses the interface with the default route, or the
	// loopback interface with bgp. Mutable in place; takes effect on new control-plane nodes, in mode DaemonSet on all.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Interface string `json:"interface,omitempty"`

	// image is the reference of kube-vip's image, with registry and tag or digest. Set it if nodes cannot reach the
	// default registry. Mutable in place; takes effect on new control-plane nodes, in mode DaemonSet on all.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// KubeVIPBGP announces virtual IPs with BGP, from the control-plane node that holds the lease of kube-vip.
type KubeVIPBGP struct {
	// asNumber is the autonomous system of the nodes.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	ASNumber int64 `json:"asNumber,omitempty"`

	// routerInterface is the interface of the nodes, such as eth0, whose IPv4 address is the router id of a node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	RouterInterface string `json:"routerInterface,omitempty"`

	// sourceInterface is the interface for sessions with the peers; determined by the routes of the node if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	SourceInterface string `json:"sourceInterface,omitempty"`

	// peers are the routers, at least one of the family of each virtual IP.
	// +required
	// +listType=map
	// +listMapKey=address
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Peers []KubeVIPPeer `json:"peers,omitempty"`
}

// KubeVIPPeer is a router to which virtual IPs are announced.
type KubeVIPPeer struct {
	// address of the router.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address, such as 10.0.0.10"
	Address string `json:"address,omitempty"`

	// asNumber is the autonomous system of the router.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	ASNumber int64 `json:"asNumber,omitempty"`

	// multiHop allows a router that is not on a network of the nodes.
	// +optional
	MultiHop *bool `json:"multiHop,omitempty"`

	// passwordSecretRef refers to the password for TCP MD5 signatures in a Secret of the same namespace. The manifest
	// of kube-vip on the nodes contains it, so all users who may read pods of kube-system in the workload cluster can
	// read it.
	// +optional
	PasswordSecretRef *SecretKeyReference `json:"passwordSecretRef,omitempty"`
}

// SecretKeyReference refers to a key of a Secret in the same namespace.
type SecretKeyReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key in the data of the Secret; password if empty.
	// +optional
	// +kubebuilder:default=password
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// EdgeGatewayEndpoint configures virtual services of NSX Advanced Load Balancer, whose members are the control planes.
// +kubebuilder:validation:XValidation:rule="!has(self.oneArm) || self.?armMode.orValue('TwoArm') == 'OneArm'",fieldPath=".oneArm",message="may only be set when armMode is OneArm"
type EdgeGatewayEndpoint struct {
	// name or URN of the edge gateway; that of ovdcNetwork if empty. It must be able to reach the nodes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// secondaryAddress is the virtual IP of the IP family that controlPlaneEndpoint.host does not have, for dual stack.
	// Immutable once infraID is set.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address, such as 10.0.0.10"
	SecondaryAddress string `json:"secondaryAddress,omitempty"`

	// ipSpace is the name or URN of the IP Space for the address; any usable one if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	IPSpace string `json:"ipSpace,omitempty"`

	// serviceEngineGroup is the name or URN of the service engine group; any with free capacity if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ServiceEngineGroup string `json:"serviceEngineGroup,omitempty"`

	// armMode is TwoArm (default) or OneArm, which places the virtual service on an internal address behind a DNAT
	// rule.
	// +optional
	ArmMode ArmMode `json:"armMode,omitempty"`

	// oneArm configures armMode OneArm.
	// +optional
	OneArm OneArmSpec `json:"oneArm,omitempty,omitzero"`

	// extraPorts are additional ports of the endpoint for the control planes, such as that of konnectivity.
	// +optional
	// +listType=map
	// +listMapKey=port
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	ExtraPorts []EndpointPort `json:"extraPorts,omitempty"`

	// healthMonitor checks the control planes: TCP, the default, connects to the port; Ping only checks that the VM
	// runs.
	// +optional
	// +kubebuilder:default=TCP
	HealthMonitor EndpointMonitor `json:"healthMonitor,omitempty"`
}

// EndpointPort is an additional TCP port of the control-plane endpoint.
type EndpointPort struct {
	// port that clients use.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// targetPort of the control planes; port if empty.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	TargetPort int32 `json:"targetPort,omitempty"`
}

// EndpointMonitor is a kind of health check of control planes.
// +kubebuilder:validation:Enum=TCP;Ping
type EndpointMonitor string

// Health checks.
const (
	// EndpointMonitorTCP connects to the port.
	EndpointMonitorTCP EndpointMonitor = "TCP"
	// EndpointMonitorPing sends ICMP echo requests.
	EndpointMonitorPing EndpointMonitor = "Ping"
)

// ArmMode determines whether virtual services have external addresses, or internal ones behind DNAT rules.
// +kubebuilder:validation:Enum=TwoArm;OneArm
type ArmMode string

// Arm modes.
const (
	// ArmModeTwoArm puts virtual services on external addresses.
	ArmModeTwoArm ArmMode = "TwoArm"
	// ArmModeOneArm puts virtual services on internal addresses behind DNAT rules.
	ArmModeOneArm ArmMode = "OneArm"
)

// OneArmSpec configures one-arm load balancing.
// +kubebuilder:validation:MinProperties=1
type OneArmSpec struct {
	// internalRange is the range of internal addresses of virtual services; 192.168.8.2 to 192.168.8.100 if empty.
	// +optional
	InternalRange AddressRange `json:"internalRange,omitempty,omitzero"`
}
