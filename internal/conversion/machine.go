// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// shutdownTimeout is the default of v1beta4 in seconds.
const shutdownTimeout = 60

func machineKind() *kind[*infrav1.VCDMachine, *v1beta3.VCDMachine] {
	return &kind[*infrav1.VCDMachine, *v1beta3.VCDMachine]{
		newHub:  func() *infrav1.VCDMachine { return &infrav1.VCDMachine{} },
		newOld:  func() *v1beta3.VCDMachine { return &v1beta3.VCDMachine{} },
		toHub:   machineToHub,
		fromHub: machineFromHub,
		settle: func(hub, former *infrav1.VCDMachine) {
			settleMachineSpec(&hub.Spec, &former.Spec)
			if former.Spec.ProviderID != "" {
				hub.Spec.ProviderID = former.Spec.ProviderID
			}
		},
	}
}

func machineToHub(old *v1beta3.VCDMachine, hub *infrav1.VCDMachine) {
	machineSpecToHub(&old.Spec, &hub.Spec)
	hub.Spec.ProviderID = cmp.Or(ptr.Deref(old.Spec.ProviderID, ""), ptr.Deref(old.Status.ProviderID, ""))
	hub.Status.Conditions = conditionsToHub(old.Status.Conditions)
	if old.Status.Ready {
		hub.Status.Initialization.Provisioned = ptr.To(true)
	}
	for _, a := range old.Status.Addresses {
		if a.Address != "" {
			hub.Status.Addresses = append(hub.Status.Addresses, clusterv1.MachineAddress{
				Type:    clusterv1.MachineAddressType(a.Type),
				Address: a.Address,
			})
		}
	}
	hub.Status.FailureDomain = ptr.Deref(old.Status.FailureDomain, "")
}

func machineFromHub(hub *infrav1.VCDMachine, old *v1beta3.VCDMachine) {
	machineSpecFromHub(&hub.Spec, &old.Spec)
	if id := hub.Spec.ProviderID; id != "" {
		old.Spec.ProviderID = &id
		old.Status.ProviderID = &id
	}
	old.Status.Conditions = conditionsFromHub(hub.Status.Conditions)
	old.Status.Ready = ptr.Deref(hub.Status.Initialization.Provisioned, false)
	for _, a := range hub.Status.Addresses {
		old.Status.Addresses = append(old.Status.Addresses, v1beta3.MachineAddress{
			Type:    string(a.Type),
			Address: a.Address,
		})
	}
	if zone := hub.Status.FailureDomain; zone != "" {
		old.Status.FailureDomain = &zone
	}
}

// machineSpecToHub sets the fields that machines and machine templates share.
func machineSpecToHub(old *v1beta3.VCDMachineSpec, hub *infrav1.VCDMachineSpec) {
	hub.Catalog = old.Catalog
	hub.Template = old.Template
	hub.SizingPolicy = old.SizingPolicy
	hub.PlacementPolicy = old.PlacementPolicy
	hub.StorageProfile = old.StorageProfile
	if !old.DiskSize.IsZero() {
		hub.DiskSize = ptr.To(old.DiskSize.DeepCopy())
	}
	hub.Networks = networksToHub(old.ExtraOvdcNetworks)
	hub.VMNamingTemplate = old.VMNamingTemplate
	hub.PowerOffPolicy = infrav1.PowerOffReport
	hub.PowerOffMode = infrav1.PowerOffTrySoft
	hub.AntiAffinity = infrav1.AntiAffinityNone
	hub.ShutdownTimeoutSeconds = ptr.To[int32](shutdownTimeout)
}

func machineSpecFromHub(hub *infrav1.VCDMachineSpec, old *v1beta3.VCDMachineSpec) {
	old.Catalog = hub.Catalog
	old.Template = hub.Template
	old.SizingPolicy = hub.SizingPolicy
	old.PlacementPolicy = hub.PlacementPolicy
	old.StorageProfile = hub.StorageProfile
	if hub.DiskSize != nil {
		old.DiskSize = hub.DiskSize.DeepCopy()
	}
	old.ExtraOvdcNetworks = networksFromHub(hub.Networks)
	old.VMNamingTemplate = hub.VMNamingTemplate
}

// settleMachineSpec removes the only NIC if it equals the default, unless the former spec had NICs.
func settleMachineSpec(spec, former *infrav1.VCDMachineSpec) {
	if len(former.Networks) == 0 && equality.Semantic.DeepEqual(spec.Networks, networksToHub(nil)) {
		spec.Networks = nil
	}
}

// networksToHub returns the NICs of a machine: one in the network of the cluster, and one in each additional network.
func networksToHub(extra []string) []infrav1.NetworkSpec {
	networks := []infrav1.NetworkSpec{nic("")}
	for _, name := range extra {
		if name != "" {
			networks = append(networks, nic(name))
		}
	}
	return networks
}

// nic returns a NIC with the settings that CAPVCD uses.
func nic(network string) infrav1.NetworkSpec {
	return infrav1.NetworkSpec{
		Name:          network,
		AddressSource: infrav1.AddressStaticPool,
		Adapter:       infrav1.AdapterVMXNET3,
	}
}

// networksFromHub returns the networks of all NICs except the first.
func networksFromHub(networks []infrav1.NetworkSpec) []string {
	var extra []string
	for i, n := range networks {
		if i > 0 {
			extra = append(extra, n.Name)
		}
	}
	return extra
}
