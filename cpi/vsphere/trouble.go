// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"errors"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
)

// Reasons of events about a vCenter being unusable.
const (
	// ReasonUnavailable means that a vCenter does not respond.
	ReasonUnavailable = "VCenterUnavailable"
	// ReasonRejected means that a vCenter rejects the credentials.
	ReasonRejected = "VCenterCredentialsRejected"
	// ReasonUntrusted means that the certificate of a vCenter is not trusted.
	ReasonUntrusted = "VCenterCertificateNotTrusted"
	// ReasonUnusable means that a datacenter of the configuration is not found.
	ReasonUnusable = "VCenterUnusable"
	// ReasonNoTags means that the tags of a vCenter cannot be read: new Nodes wait.
	ReasonNoTags = "VCenterTagsUnreadable"
)

// Explain explains errors that make a vCenter unusable.
func Explain(err error) (cpi.Trouble, bool) {
	switch {
	case errors.Is(err, errCredentials):
		return cpi.Trouble{
			Reason:  ReasonRejected,
			Stays:   true,
			Message: fmt.Sprintf("A vCenter rejects the credentials of the cloud controller manager (%v): correct them, the controller then continues automatically", err),
		}, true
	case untrusted(err):
		return cpi.Trouble{
			Reason:  ReasonUntrusted,
			Stays:   true,
			Message: fmt.Sprintf("The certificate of a vCenter is not trusted (%v): set caFile or thumbprint", err),
		}, true
	case errors.Is(err, errDatacenter):
		return cpi.Trouble{Reason: ReasonUnusable, Stays: true, Message: err.Error()}, true
	case errors.Is(err, errTags):
		return cpi.Trouble{
			Reason:  ReasonNoTags,
			Message: fmt.Sprintf("Cannot read the tags of a vCenter; new Nodes wait: %v", err),
		}, true
	}
	return cpi.Trouble{
		Reason:  ReasonUnavailable,
		Message: fmt.Sprintf("A vCenter does not respond (%v): no Node is deleted until it does", err),
	}, true
}
