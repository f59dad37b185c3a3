// SPDX-License-Identifier: Apache-2.0

package v1beta4

// LoadBalancerMode determines whether Services of type LoadBalancer get a load balancer.
// +kubebuilder:validation:Enum=Enabled;Disabled
type LoadBalancerMode string

// Load balancer modes.
const (
	// LoadBalancerEnabled creates load balancers for Services.
	LoadBalancerEnabled LoadBalancerMode = "Enabled"
	// LoadBalancerDisabled ignores Services: the cloud controller manager manages only Nodes.
	LoadBalancerDisabled LoadBalancerMode = "Disabled"
)

// SourceRangesPolicy is the policy for Services with spec.loadBalancerSourceRanges.
// +kubebuilder:validation:Enum=Refuse;Firewall
type SourceRangesPolicy string

// Policies for source ranges.
const (
	// SourceRangesRefuse creates nothing for such a Service, which would otherwise be open to all clients.
	SourceRangesRefuse SourceRangesPolicy = "Refuse"
	// SourceRangesFirewall creates firewall rules on the edge gateway.
	SourceRangesFirewall SourceRangesPolicy = "Firewall"
)

// TLSPorts selects the ports of Services with TLS termination.
// +kubebuilder:validation:Enum=AppProtocol;Annotated
type TLSPorts string

// Ports with TLS termination.
const (
	// TLSPortsAppProtocol selects ports in an annotation of the Service or with appProtocol https.
	TLSPortsAppProtocol TLSPorts = "AppProtocol"
	// TLSPortsAnnotated selects ports in an annotation of the Service.
	TLSPortsAnnotated TLSPorts = "Annotated"
)

// LoadBalancerMembers selects the nodes that get the traffic of Services.
// +kubebuilder:validation:Enum=Workers;AllNodes
type LoadBalancerMembers string

// Members of load balancers.
const (
	// LoadBalancerWorkers are all nodes except those of the control plane.
	LoadBalancerWorkers LoadBalancerMembers = "Workers"
	// LoadBalancerAllNodes are all nodes.
	LoadBalancerAllNodes LoadBalancerMembers = "AllNodes"
)

// UnclassifiedServices is the policy for Services without spec.loadBalancerClass.
// +kubebuilder:validation:Enum=Serve;Ignore
type UnclassifiedServices string

// Policies for Services without a class.
const (
	// UnclassifiedServe creates load balancers for them too.
	UnclassifiedServe UnclassifiedServices = "Serve"
	// UnclassifiedIgnore leaves them to other controllers.
	UnclassifiedIgnore UnclassifiedServices = "Ignore"
)

// LoadBalancerAlgorithm is how a pool selects a member.
// +kubebuilder:validation:Enum=RoundRobin;LeastConnections;LeastLoad;FastestResponse;FewestServers;FewestTasks;Random;ConsistentHash;CoreAffinity
type LoadBalancerAlgorithm string

// Algorithms of pools.
const (
	// AlgorithmRoundRobin is VCD's ROUND_ROBIN.
	AlgorithmRoundRobin LoadBalancerAlgorithm = "RoundRobin"
	// AlgorithmLeastConnections is VCD's LEAST_CONNECTIONS.
	AlgorithmLeastConnections LoadBalancerAlgorithm = "LeastConnections"
	// AlgorithmLeastLoad is VCD's LEAST_LOAD.
	AlgorithmLeastLoad LoadBalancerAlgorithm = "LeastLoad"
	// AlgorithmFastestResponse is VCD's FASTEST_RESPONSE.
	AlgorithmFastestResponse LoadBalancerAlgorithm = "FastestResponse"
	// AlgorithmFewestServers is VCD's FEWEST_SERVERS.
	AlgorithmFewestServers LoadBalancerAlgorithm = "FewestServers"
	// AlgorithmFewestTasks is VCD's FEWEST_TASKS.
	AlgorithmFewestTasks LoadBalancerAlgorithm = "FewestTasks"
	// AlgorithmRandom is VCD's RANDOM.
	AlgorithmRandom LoadBalancerAlgorithm = "Random"
	// AlgorithmConsistentHash is VCD's CONSISTENT_HASH.
	AlgorithmConsistentHash LoadBalancerAlgorithm = "ConsistentHash"
	// AlgorithmCoreAffinity is VCD's CORE_AFFINITY.
	AlgorithmCoreAffinity LoadBalancerAlgorithm = "CoreAffinity"
)

// LoadBalancerSpec has defaults for load balancers of Services. Annotations of a Service override them.
// +kubebuilder:validation:XValidation:rule="!has(self.kubeVIP) || has(self.kubeVIP.class) || !has(self.class)",fieldPath=".class",message="has no effect when kubeVIP has no class, because kube-vip then serves all Services: set kubeVIP.class, or remove class"
// +kubebuilder:validation:XValidation:rule="!has(self.kubeVIP) || !has(self.kubeVIP.class) || !has(self.class) || self.kubeVIP.class != self.class.name",fieldPath=".kubeVIP.class",message="must not be the class of the load balancers of VCD, loadBalancer.class.name"
// +kubebuilder:validation:XValidation:rule="!has(self.oneArm) || self.?armMode.orValue('TwoArm') == 'OneArm'",fieldPath=".oneArm",message="may only be set when armMode is OneArm"
// +kubebuilder:validation:MinProperties=1
type LoadBalancerSpec struct {
	// mode is Enabled or Disabled; Enabled if empty. Disabled does not require NSX. Services with load balancers keep
	// them and cannot be deleted until mode is Enabled again.
	// +optional
	Mode LoadBalancerMode `json:"mode,omitempty"`

	// armMode is TwoArm (default) or OneArm, which places virtual services on internal addresses behind DNAT rules.
	// +optional
	ArmMode ArmMode `json:"armMode,omitempty"`

	// oneArm configures armMode OneArm.
	// +optional
	OneArm OneArmSpec `json:"oneArm,omitempty,omitzero"`

	// vipSubnet is the CIDR of allowed external addresses.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a network with prefix length, such as 10.0.0.0/24"
	VIPSubnet string `json:"vipSubnet,omitempty"`

	// internalSubnets are the CIDRs for addresses of internal load balancers, including requested addresses. If empty,
	// they can have any private address that no Node, VM or gateway uses.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a network with prefix length, such as 10.0.0.0/24"
	InternalSubnets []string `json:"internalSubnets,omitempty"`

	// ipSpace is the name of the IP Space for external addresses; any of the gateway if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	IPSpace string `json:"ipSpace,omitempty"`

	// serviceEngineGroup is the name of the service engine group of virtual services; the first with free capacity if
	// empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ServiceEngineGroup string `json:"serviceEngineGroup,omitempty"`

	// algorithm is how pools select a member; RoundRobin if empty.
	// +optional
	Algorithm LoadBalancerAlgorithm `json:"algorithm,omitempty"`

	// certificateAlias is the alias in VCD's certificate library of the default certificate for TLS ports;
	// <infraID>-cert if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	CertificateAlias string `json:"certificateAlias,omitempty"`

	// tlsPorts are the ports with TLS termination: AppProtocol (default) or Annotated. With Annotated, TLS to ports
	// with appProtocol https passes through unless an annotation of the Service lists them, as with VMware's CPI.
	// +optional
	TLSPorts TLSPorts `json:"tlsPorts,omitempty"`

	// sourceRanges is the policy for Services with spec.loadBalancerSourceRanges: Refuse (default) or Firewall.
	// Firewall requires VCD 10.5.1 and the right to configure the firewall of the gateway.
	// +optional
	SourceRanges SourceRangesPolicy `json:"sourceRanges,omitempty"`

	// members are the nodes that receive traffic: Workers (default), or AllNodes, which includes the control plane.
	// +optional
	Members LoadBalancerMembers `json:"members,omitempty"`

	// class selects the Services that get a load balancer; those without a class if empty.
	// +optional
	Class *LoadBalancerClassSpec `json:"class,omitempty"`

	// kubeVIP makes kube-vip announce the addresses of Services from the nodes. This does not require NSX Advanced Load Balancer.
	// Without a class it serves all Services that have no class, and VCD creates no load balancers. Requires mode Managed of
	// cloudProvider. Mutable in place; if removed, kube-vip is removed from the workload cluster.
	// +optional
	KubeVIP *KubeVIPServices `json:"kubeVIP,omitempty"`

	// edgeGateways are additional edge gateways, to which Services refer by name. Load balancers on them are also
	// deleted with the cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	EdgeGateways []LoadBalancerGateway `json:"edgeGateways,omitempty"`

	// driftIntervalSeconds is the interval for comparing load balancers with their Services, in seconds; 60 if empty.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	DriftIntervalSeconds *int32 `json:"driftIntervalSeconds,omitempty"`
}

// KubeVIPServices configures kube-vip as the load balancer of Services. One node at a time announces the addresses of all
// Services, by ARP, or by neighbor discovery for IPv6. Which nodes can do so depends on loadBalancer.members.
type KubeVIPServices struct {
	// addressRanges are the addresses that Services get. They must be in subnets of the nodes' network, outside its static
	// pool and its DHCP ranges, and used by nothing else. For dual stack, give ranges of both families.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	AddressRanges []AddressRange `json:"addressRanges,omitempty"`

	// class is the spec.loadBalancerClass of the Services that kube-vip serves, such as example.com/kube-vip. Services
	// without a class then belong to the load balancers of VCD. If empty, kube-vip serves the Services without a class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Class string `json:"class,omitempty"`

	// interface of the nodes that has the addresses; the one with the default route if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Interface string `json:"interface,omitempty"`

	// image is the reference of kube-vip's image, with registry and tag or digest. If empty, it is that of
	// controlPlaneLoadBalancer.kubeVIP, or the bundled version from its public registry.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// LoadBalancerClassSpec selects the Services that get a load balancer.
type LoadBalancerClassSpec struct {
	// name is a spec.loadBalancerClass, such as example.com/vcd.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Name string `json:"name,omitempty"`

	// unclassifiedServices is the policy for Services without a class: Serve (default) or Ignore.
	// +optional
	UnclassifiedServices UnclassifiedServices `json:"unclassifiedServices,omitempty"`
}

// LoadBalancerGateway is an additional edge gateway for load balancers.
// +kubebuilder:validation:XValidation:rule="!has(self.oneArm) || self.?armMode.orValue('TwoArm') == 'OneArm'",fieldPath=".oneArm",message="may only be set when armMode is OneArm"
// +kubebuilder:validation:XValidation:rule="has(self.edgeGateway) != has(self.network)",fieldPath=".edgeGateway",message="exactly one of edgeGateway and network must be set"
type LoadBalancerGateway struct {
	// name is the name by which Services refer to the gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*$`
	Name string `json:"name,omitempty"`

	// edgeGateway is the name or URN of the edge gateway.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	EdgeGateway string `json:"edgeGateway,omitempty"`

	// network is the name or URN of a routed network of the cluster's VDC, whose edge gateway it is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Network string `json:"network,omitempty"`

	// armMode is TwoArm (default) or OneArm, which places virtual services on internal addresses behind DNAT rules.
	// +optional
	ArmMode ArmMode `json:"armMode,omitempty"`

	// oneArm configures armMode OneArm.
	// +optional
	OneArm OneArmSpec `json:"oneArm,omitempty,omitzero"`

	// vipSubnet is the CIDR of allowed external addresses.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a network with prefix length, such as 10.0.0.0/24"
	VIPSubnet string `json:"vipSubnet,omitempty"`

	// internalSubnets are the CIDRs for addresses of internal load balancers, including requested addresses. If empty,
	// they can have any private address that no Node, VM or gateway uses.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a network with prefix length, such as 10.0.0.0/24"
	InternalSubnets []string `json:"internalSubnets,omitempty"`

	// ipSpace is the name of the IP Space for external addresses; any of the gateway if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	IPSpace string `json:"ipSpace,omitempty"`
}
