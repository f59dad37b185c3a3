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
	// BadPort: a port is invalid, has no node port, or is there twice.
	BadPort = "BadPort"
	// BadFamilies: a family of addresses is asked for that does not fit the rest.
	BadFamilies = "BadFamilies"
	// NoMembers: no node has an address of the family.
	NoMembers = "NoMembers"
	// TooManyMembers: only some of the nodes are members.
	TooManyMembers = "TooManyMembers"
	// Unsupported: the gateway, the version of the API or the rights of the user do not allow it.
	Unsupported = "Unsupported"
	// CertificateMissing: TLS is asked for without a certificate.
	CertificateMissing = "CertificateMissing"
	// CertificateUnknown: the library has no certificate of this alias, or several.
	CertificateUnknown = "CertificateUnknown"
	// BadRange: a range or subnet of addresses is missing or invalid.
	BadRange = "BadRange"
	// AddressTaken: the address is another's.
	AddressTaken = "AddressTaken"
	// AddressOutside: the address is not one of the gateway's.
	AddressOutside = "AddressOutside"
	// NoFreeAddress: no address is left.
	NoFreeAddress = "NoFreeAddress"
	// PortTaken: another virtual service or rule has this port of the address.
	PortTaken = "PortTaken"
	// NoEngineGroup: the gateway has no service engine group, not the one asked for, or none with room.
	NoEngineGroup = "NoEngineGroup"
	// RealizationFailed: VCD could not make something, and neither when it was asked again.
	RealizationFailed = "RealizationFailed"
	// NotProvablyOurs: objects with a name of cloud provider interface 1.6.1 may be another Service's.
	NotProvablyOurs = "NotProvablyOurs"
	// OtherClusterID: the Service has something under another id of the cluster.
	OtherClusterID = "OtherClusterID"
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
