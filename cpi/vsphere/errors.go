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

// sessionEnded reports whether an error means that vCenter has forgotten the session, or the view that belongs to it.
func sessionEnded(err error) bool {
	return fault.Is(err, &types.NotAuthenticated{}) || fault.Is(err, &types.ManagedObjectNotFound{})
}

// tokenRefused reports whether the token service has answered that it does not accept a certificate. Its faults have
// codes of WS-Security and WS-Trust, with any prefix.
func tokenRefused(err error) bool {
	if err == nil || !soap.IsSoapFault(err) {
		return false
	}
	code := soap.ToSoapFault(err).Code
	return slices.Contains([]string{
		"FailedAuthentication", "FailedCheck", "InvalidSecurity", "InvalidSecurityToken",
	}, code[strings.LastIndex(code, ":")+1:])
}

// refusal makes an error of vCenter about credentials one that is known.
func refusal(err error) error {
	if err != nil && (fault.Is(err, &types.InvalidLogin{}) || fault.Is(err, &types.NoPermission{})) {
		return fmt.Errorf("%w: %w", errCredentials, err)
	}
	return err
}

// untrusted reports whether an error means that the certificate of a vCenter is not trusted.
func untrusted(err error) bool { return soap.IsCertificateUntrusted(err) }

// hasFault reports whether an error is one of those faults of vCenter.
func hasFault(err error, faults ...types.BaseMethodFault) bool {
	return slices.ContainsFunc(faults, func(f types.BaseMethodFault) bool { return fault.Is(err, f) })
}

// hidden reports whether vCenter does not show something to the user.
func hidden(err error) bool {
	return restError(err, http.StatusNotFound) || restError(err, http.StatusForbidden)
}

// restError reports whether an error wraps one of a status of the endpoint of tags.
func restError(err error, status int) bool {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(several.Unwrap(), func(err error) bool { return restError(err, status) })
	}
	return err != nil && (rest.IsStatusError(err, status) || restError(errors.Unwrap(err), status))
}
