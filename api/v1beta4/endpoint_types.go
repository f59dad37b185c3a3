package v1beta4

// EndpointType is what serves the control-plane endpoint.
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

// EndpointSpec is a union: the member of the type's name may be set. The port of the endpoint is that of
// controlPlaneEndpoint.
// +kubebuilder:validation:XValidation:rule="self.type == 'KubeVIP' || !has(self.kubeVIP)",fieldPath=".kubeVIP",message="may only be set when type is KubeVIP"
// +kubebuilder:validation:XValidation:rule="self.type == 'EdgeGateway' || !has(self.edgeGateway)",fieldPath=".edgeGateway",message="may only be set when type is EdgeGateway"
type EndpointSpec struct {
	// type of the endpoint: KubeVIP, which is the default, EdgeGateway or External.
	// +required
	// +kubebuilder:default=KubeVIP
	Type EndpointType `json:"type,omitempty"`

	// kubeVIP configures an endpoint of type KubeVIP.
	// +optional
	KubeVIP *KubeVIPEndpoint `json:"kubeVIP,omitempty"`

	// edgeGateway configures an endpoint of type EdgeGateway.
	// +optional
	EdgeGateway *EdgeGatewayEndpoint `json:"edgeGateway,omitempty"`
}

// KubeVIPEndpoint configures kube-vip. Set one of addresses, poolRefs and dnsName, unless controlPlaneEndpoint has a
// host.
// +kubebuilder:validation:XValidation:rule="[has(self.addresses), has(self.poolRefs), has(self.dnsName)].filter(x, x).size() <= 1",message="only one of addresses, poolRefs and dnsName may be set"
type KubeVIPEndpoint struct {
	// addresses are the virtual IPs, at most one of each family; the first is the endpoint's host. They must be in the
	// nodes' network, outside its static pool and its DHCP ranges.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	Addresses []string `json:"addresses,omitempty"`

	// poolRefs are the IPAM pools that the virtual IPs are claimed from, at most one of each family; the address of the
	// first is the endpoint's host.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	PoolRefs []IPPoolReference `json:"poolRefs,omitempty"`

	// dnsName is a name that kube-vip updates by dynamic DNS.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DNSName string `json:"dnsName,omitempty"`

	// interface of the nodes that announces the virtual IP; kube-vip takes the one with the default route if empty.
	// Mutable in place; takes effect on new control-plane nodes.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	Interface string `json:"interface,omitempty"`

	// image is the reference of kube-vip's image, with registry and tag or digest. Set it if nodes cannot reach the
	// default registry. Mutable in place; takes effect on new control-plane nodes.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// EdgeGatewayEndpoint configures a virtual service of NSX Advanced Load Balancer.
type EdgeGatewayEndpoint struct {
	// addresses are the virtual IPs to use, at most one of each family; a free one if empty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	Addresses []string `json:"addresses,omitempty"`

	// ipSpace is the name or URN of the IP Space that the address is taken from; any usable one if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	IPSpace string `json:"ipSpace,omitempty"`

	// serviceEngineGroup is the name or URN of the service engine group; any with room if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ServiceEngineGroup string `json:"serviceEngineGroup,omitempty"`

	// oneArm puts the virtual service on an internal address behind a DNAT rule.
	// +optional
	OneArm *OneArmSpec `json:"oneArm,omitempty"`
}

// OneArmSpec configures one-arm load balancing.
type OneArmSpec struct {
	// internalRange is the range of internal addresses of virtual services; 192.168.8.2 to 192.168.8.100 if empty.
	// +optional
	InternalRange AddressRange `json:"internalRange,omitempty,omitzero"`
}
