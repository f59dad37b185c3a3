// SPDX-License-Identifier: Apache-2.0

package checks

import infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"

// A Lookup describes a kind of VCD object that specs refer to by name.
type Lookup struct {
	// Reason is the reason of the condition if the object is not found.
	Reason string
	// Otherwise is the alternative remedy to correcting the name in the spec.
	Otherwise string
}

// Lookups of the objects that a VM is created in and from.
var (
	VDC             = Lookup{infrav1.VDCNotFoundReason, "grant the user access to the VDC"}
	Network         = Lookup{infrav1.NetworkNotFoundReason, "connect the network to the VDC"}
	StorageProfile  = Lookup{infrav1.StorageProfileNotFoundReason, "add and enable the profile in the VDC"}
	SizingPolicy    = Lookup{infrav1.SizingPolicyNotFoundReason, "assign the policy to the VDC"}
	PlacementPolicy = Lookup{infrav1.PlacementPolicyNotFoundReason, "assign the policy to the VDC"}
	Catalog         = Lookup{infrav1.CatalogNotFoundReason, "share the catalog with the organization"}
)

// Remedy returns the remedy if the object in a field is not found.
func (l Lookup) Remedy(field string) string { return "correct " + field + ", or " + l.Otherwise }
