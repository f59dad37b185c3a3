// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Reasons of events about VCD being unusable.
const (
	// ReasonUnavailable means that VCD does not respond.
	ReasonUnavailable = "VCDUnavailable"
	// ReasonRejected means that VCD rejects the credentials.
	ReasonRejected = "VCDCredentialsRejected"
	// ReasonUntrusted means that VCD's certificate is not trusted.
	ReasonUntrusted = "VCDCertificateNotTrusted"
	// ReasonUnusable means that VCD cannot be used for the reason in the message.
	ReasonUnusable = "VCDUnusable"
)

// Explain returns a function that explains errors that make VCD at a site unusable.
func Explain(site string) func(error) (cpi.Trouble, bool) {
	return func(err error) (cpi.Trouble, bool) {
		switch {
		case errors.Is(err, vcd.ErrUnauthorized):
			return cpi.Trouble{
				Reason:  ReasonRejected,
				Stays:   true,
				Message: fmt.Sprintf("%s rejects the credentials of the cloud controller manager (%v): correct them, the controller then continues automatically", site, err),
			}, true
		case errors.Is(err, vcd.ErrTLS):
			return cpi.Trouble{
				Reason:  ReasonUntrusted,
				Stays:   true,
				Message: fmt.Sprintf("the certificate of %s is not trusted (%v): set vcd.caBundle", site, err),
			}, true
		case errors.Is(err, vcd.ErrUnavailable), errors.Is(err, vcd.ErrThrottled), errors.Is(err, vcd.ErrLater),
			errors.Is(err, context.DeadlineExceeded):
			return cpi.Trouble{
				Reason:  ReasonUnavailable,
				Message: fmt.Sprintf("%s does not respond (%v): nothing is changed until it does", site, err),
			}, true
		case errors.Is(err, vcd.ErrBusy), concernsOne(err):
			return cpi.Trouble{}, false
		}
		return cpi.Trouble{Reason: ReasonUnusable, Message: fmt.Sprintf("%s cannot be used: %v", site, err)}, true
	}
}

// concernsOne reports whether an error concerns one load balancer, whose Service gets events.
func concernsOne(err error) bool {
	if _, all := errors.AsType[*locateError](err); all {
		return false
	}
	return errors.Is(err, loadbalancer.ErrBusy) || errors.Is(err, loadbalancer.ErrRefused) ||
		errors.Is(err, loadbalancer.ErrUnknown)
}
