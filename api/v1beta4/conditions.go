package v1beta4

// Condition types of a VCDCluster.
const (
	// IdentityReadyCondition says whether the identity can be used from here, for the site and organisation, and logs in.
	IdentityReadyCondition = "IdentityReady"
	// NetworkReadyCondition says whether VDC and network were found.
	NetworkReadyCondition = "NetworkReady"
	// EndpointReadyCondition says whether the control-plane endpoint is known and prepared.
	EndpointReadyCondition = "EndpointReady"
	// VAppLayoutReadyCondition says whether what runs in the workload cluster gets along with the layout. It is there if that is PerMachine.
	VAppLayoutReadyCondition = "VAppLayoutReady"
	// GoneTrustedCondition says whether VMs of the cluster that are missing may count as gone. It is there, and false, while VMs of
	// several clusters of the site are missing together and nobody has said that they are gone. It is no part of Ready.
	GoneTrustedCondition = "GoneTrusted"
	// CloudProviderReadyCondition says whether the bundled cloud controller manager runs in the workload cluster. It is there if
	// spec.cloudProvider.mode is Managed, and no part of Ready: machines are made before it can run.
	CloudProviderReadyCondition = "CloudProviderReady"
)

// Condition types of a VCDMachine.
const (
	// BootstrapReadyCondition says whether the bootstrap data is there and fits.
	BootstrapReadyCondition = "BootstrapReady"
	// PlacementReadyCondition says whether VDC, template, policies and networks of the machine were found.
	PlacementReadyCondition = "PlacementReady"
	// VAppReadyCondition says whether the vApp of the machine is there and is the cluster's.
	VAppReadyCondition = "VAppReady"
	// VMCreatedCondition says whether the VM exists.
	VMCreatedCondition = "VMCreated"
	// BootstrapInjectedCondition says whether bootstrap data and network configuration were written to the VM.
	BootstrapInjectedCondition = "BootstrapInjected"
	// PoweredOnCondition says whether the VM runs.
	PoweredOnCondition = "PoweredOn"
	// AddressesReadyCondition says whether the addresses of the machine are known.
	AddressesReadyCondition = "AddressesReady"
	// VMAsSpecifiedCondition says whether the VM is as it was made, and its disk as large as wished. It is no part of Ready, unless
	// annotation drift-in-ready says so: a Node whose VM was changed works, and must not be replaced for it.
	VMAsSpecifiedCondition = "VMAsSpecified"
	// LeaseUnlimitedCondition says whether VCD leaves the vApp running. It is there, and false, while VCD will stop the vApp unless
	// its lease is renewed. It is no part of Ready.
	LeaseUnlimitedCondition = "LeaseUnlimited"
)

// Condition types of a VCDMachineTemplate.
const (
	// CapacityKnownCondition says whether status.capacity is what a machine will have, so that an autoscaler can scale from zero.
	CapacityKnownCondition = "CapacityKnown"
)

// Condition types of identities.
const (
	// SecretReadyCondition says whether the Secret is there and complete, not whether it logs in.
	SecretReadyCondition = "SecretReady"
)
