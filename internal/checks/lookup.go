// SPDX-License-Identifier: Apache-2.0

package checks

import infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"

// A Lookup is of a kind of object in VCD that people name in specs.
type Lookup struct {
	// Reason is that of a condition if the object is not found.
	Reason string
	// Otherwise is what helps, beside another name in the spec.
	Otherwise string
}

// Lookups of what VMs are created in and from.
var (
	VDC             = Lookup{infrav1.VDCNotFoundReason, "grant the user access to the VDC"}
	Network         = Lookup{infrav1.NetworkNotFoundReason, "connect the network to the VDC"}
	StorageProfile  = Lookup{infrav1.StorageProfileNotFoundReason, "add and enable the profile in the VDC"}
	SizingPolicy    = Lookup{infrav1.SizingPolicyNotFoundReason, "assign the policy to the VDC"}
	PlacementPolicy = Lookup{infrav1.PlacementPolicyNotFoundReason, "assign the policy to the VDC"}
	Catalog         = Lookup{infrav1.CatalogNotFoundReason, "share the catalog with the organization"}
)

// Remedy returns what helps if the object that a field names is not found.
func (l Lookup) Remedy(field string) string { return "correct " + field + ", or " + l.Otherwise }
