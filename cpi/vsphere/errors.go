// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// sessionEnded reports whether an error means that the session in vCenter, or the view that belongs to it, no longer
// exists.
func sessionEnded(err error) bool {
	return fault.Is(err, &types.NotAuthenticated{}) || fault.Is(err, &types.ManagedObjectNotFound{})
}

// tokenRefused reports whether the token service rejected a certificate. Its faults have WS-Security and WS-Trust codes
// with any prefix.
func tokenRefused(err error) bool {
	if err == nil || !soap.IsSoapFault(err) {
		return false
	}
	code := soap.ToSoapFault(err).Code
	return slices.Contains([]string{
		"FailedAuthentication", "FailedCheck", "InvalidSecurity", "InvalidSecurityToken",
	}, code[strings.LastIndex(code, ":")+1:])
}

// credentialError wraps errors of vCenter about credentials in errCredentials.
func credentialError(err error) error {
	if err != nil && (fault.Is(err, &types.InvalidLogin{}) || fault.Is(err, &types.NoPermission{})) {
		return fmt.Errorf("%w: %w", errCredentials, err)
	}
	return err
}

// untrusted reports whether an error means that the certificate of a vCenter is not trusted.
func untrusted(err error) bool { return soap.IsCertificateUntrusted(err) }

// hasFault reports whether an error is one of the given vCenter faults.
func hasFault(err error, faults ...types.BaseMethodFault) bool {
	return slices.ContainsFunc(faults, func(f types.BaseMethodFault) bool { return fault.Is(err, f) })
}

// hidden reports whether vCenter does not show an object to the user.
func hidden(err error) bool {
	return restError(err, http.StatusNotFound) || restError(err, http.StatusForbidden)
}

// restError reports whether an error wraps a response of the tags endpoint with the given status.
func restError(err error, status int) bool {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(several.Unwrap(), func(err error) bool { return restError(err, status) })
	}
	return err != nil && (rest.IsStatusError(err, status) || restError(errors.Unwrap(err), status))
}
