// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Reasons of refusals and notices.
const (
	// NoPorts: the Service has no ports that could be balanced.
	NoPorts = "NoPorts"
	// InvalidPort: a port is invalid, has no node port, or is there twice.
	InvalidPort = "InvalidPort"
	// InvalidFamilies: a family of addresses is asked for that does not fit the rest.
	InvalidFamilies = "InvalidFamilies"
	// NoMembers: no node has an address of the family.
	NoMembers = "NoMembers"
	// TooManyMembers: only some of the nodes are members.
	TooManyMembers = "TooManyMembers"
	// Unsupported: the gateway, the version of the API or the rights of the user do not allow it.
	Unsupported = "Unsupported"
	// CertificateMissing: TLS is asked for without a certificate.
	CertificateMissing = "CertificateMissing"
	// CertificateNotFound: the library has no certificate of this alias, or several.
	CertificateNotFound = "CertificateNotFound"
	// InvalidRange: a range or subnet of addresses is missing or invalid.
	InvalidRange = "InvalidRange"
	// AddressInUse: the address is another's.
	AddressInUse = "AddressInUse"
	// AddressOutOfRange: the address is not one of the gateway's.
	AddressOutOfRange = "AddressOutOfRange"
	// NoFreeAddress: no address is left.
	NoFreeAddress = "NoFreeAddress"
	// PortInUse: another virtual service or rule has this port of the address.
	PortInUse = "PortInUse"
	// EngineGroupUnavailable: the gateway has no service engine group, not the one asked for, or none with room.
	EngineGroupUnavailable = "EngineGroupUnavailable"
	// RealizationFailed: VCD could not make something, and neither when it was asked again.
	RealizationFailed = "RealizationFailed"
	// OwnershipUnverified: objects with a name of cloud provider interface 1.6.1 may be another Service's.
	OwnershipUnverified = "OwnershipUnverified"
	// ClusterIDMismatch: the Service has something under another id of the cluster.
	ClusterIDMismatch = "ClusterIDMismatch"
	// AddressShared: others use the address, too, and it cannot be given back.
	AddressShared = "AddressShared"
)

// finding returns a finding with a message as of [fmt.Sprintf].
func finding(reason, format string, args ...any) *loadbalancer.Finding {
	return &loadbalancer.Finding{
		Reason:  reason,
		Message: fmt.Sprintf(format, args...),
	}
}
