// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"context"
	"errors"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Reasons of events about CloudStack being unusable.
const (
	// ReasonUnavailable means that CloudStack does not respond, or cannot list its objects.
	ReasonUnavailable = "CloudStackUnavailable"
	// ReasonRejected means that CloudStack rejects the credentials.
	ReasonRejected = "CloudStackCredentialsRejected"
	// ReasonUntrusted means that CloudStack's certificate is not trusted.
	ReasonUntrusted = "CloudStackCertificateNotTrusted"
	// ReasonForbidden means that the user's role lacks the permission for a command.
	ReasonForbidden = "CloudStackForbidden"
	// ReasonProject means that the project does not exist or is not visible to the user.
	ReasonProject = "CloudStackProjectNotFound"
)

// Explain returns a function that explains errors which make CloudStack at a URL unusable.
func Explain(url string) func(error) (cpi.Trouble, bool) {
	return func(err error) (cpi.Trouble, bool) {
		trouble := cpi.Trouble{Stays: true}
		switch {
		case errors.Is(err, loadbalancer.ErrBusy), errors.Is(err, loadbalancer.ErrRefused):
			return cpi.Trouble{}, false // It concerns one load balancer, whose Service gets events.
		case errors.Is(err, cloudstack.ErrChanged):
			return cpi.Trouble{}, false // CloudStack responds. Objects that a list lacks count as unknown.
		case errors.Is(err, cloudstack.ErrUnauthorized):
			trouble.Reason = ReasonRejected
			trouble.Message = fmt.Sprintf(
				"%s rejects api-key and secret-key (%v): correct them in cloud-config, and check the clock", url, err)
		case errors.Is(err, cloudstack.ErrTLS):
			trouble.Reason = ReasonUntrusted
			trouble.Message = fmt.Sprintf(
				"the certificate of %s is not trusted (%v): set ca-file", url, err)
		case errors.Is(err, cloudstack.ErrForbidden):
			trouble.Reason = ReasonForbidden
			trouble.Message = fmt.Sprintf(
				"%s denies a command (%v): grant the user's role the permission", url, err)
		case errors.Is(err, cloudstack.ErrNotFound):
			trouble.Reason = ReasonProject
			trouble.Message = fmt.Sprintf(
				"the project does not exist on %s or is not visible to the user (%v): correct project-id", url, err)
		case errors.Is(err, cloudstack.ErrFailing):
			return cpi.Trouble{
				Reason:  ReasonUnavailable,
				Message: fmt.Sprintf("%s fails (%v): check the log of its management server; nothing is changed until it can list its objects again", url, err),
			}, true
		case errors.Is(err, cloudstack.ErrUnavailable), errors.Is(err, cloudstack.ErrBusy),
			errors.Is(err, context.DeadlineExceeded):
			return cpi.Trouble{
				Reason:  ReasonUnavailable,
				Message: fmt.Sprintf("%s does not respond (%v): nothing is changed until it does", url, err),
			}, true
		default:
			return cpi.Trouble{}, false
		}
		return trouble, true
	}
}
