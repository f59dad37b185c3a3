// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Reasons of refusals and notices.
const (
	// NoPorts: the Service has no ports that a load balancer supports.
	NoPorts = "NoPorts"
	// InvalidPort: a port is invalid, duplicated, or has no node port.
	InvalidPort = "InvalidPort"
	// InvalidFamilies: a requested IP family conflicts with other settings.
	InvalidFamilies = "InvalidFamilies"
	// NoMembers: no node has an address of the IP family.
	NoMembers = "NoMembers"
	// TooManyMembers: only some of the nodes are members.
	TooManyMembers = "TooManyMembers"
	// Unsupported: the gateway, the API version or the rights of the user do not allow a request of the Service.
	Unsupported = "Unsupported"
	// CertificateMissing: TLS is requested without a certificate.
	CertificateMissing = "CertificateMissing"
	// CertificateNotFound: the library has no certificate with this alias, or several.
	CertificateNotFound = "CertificateNotFound"
	// InvalidRange: a range or subnet of addresses is missing or invalid.
	InvalidRange = "InvalidRange"
	// InvalidHealthCheck: a setting of health checks is out of bounds.
	InvalidHealthCheck = "InvalidHealthCheck"
	// AddressInUse: the address is in use elsewhere.
	AddressInUse = "AddressInUse"
	// AddressOutOfRange: the address does not belong to the gateway.
	AddressOutOfRange = "AddressOutOfRange"
	// NoFreeAddress: no free address is available.
	NoFreeAddress = "NoFreeAddress"
	// PortInUse: another virtual service or rule uses this port of the address.
	PortInUse = "PortInUse"
	// EngineGroupUnavailable: the gateway has no service engine group, lacks the requested one, or has none with free
	// capacity.
	EngineGroupUnavailable = "EngineGroupUnavailable"
	// RealizationFailed: VCD could not realize an object, even after a retry.
	RealizationFailed = "RealizationFailed"
	// OwnershipUnverified: objects with a name of cloud provider interface 1.6.1 may belong to another Service.
	OwnershipUnverified = "OwnershipUnverified"
	// ClusterIDMismatch: the Service has objects with another ID of the cluster.
	ClusterIDMismatch = "ClusterIDMismatch"
	// AddressShared: the address is also used elsewhere, so it cannot be released.
	AddressShared = "AddressShared"
)

// finding returns a finding. The message is formatted as by [fmt.Sprintf].
func finding(reason, format string, args ...any) *loadbalancer.Finding {
	return &loadbalancer.Finding{
		Reason:  reason,
		Message: fmt.Sprintf(format, args...),
	}
}
