// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"errors"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// coreError converts an error of the CloudStack client to an error that the core handles.
func coreError(err error) error {
	var kind error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, loadbalancer.ErrBusy), errors.Is(err, loadbalancer.ErrRefused), errors.Is(err, loadbalancer.ErrUnknown):
		return err
	case errors.Is(err, cloudstack.ErrBusy):
		kind = loadbalancer.ErrBusy
	case errors.Is(err, cloudstack.ErrForbidden), errors.Is(err, cloudstack.ErrInvalid),
		errors.Is(err, cloudstack.ErrConflict), errors.Is(err, cloudstack.ErrLimit),
		errors.Is(err, cloudstack.ErrNotFound):
		kind = loadbalancer.ErrRefused
	default:
		kind = loadbalancer.ErrUnknown
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// mayHaveExecuted reports whether a failed request may have been executed.
func mayHaveExecuted(err error) bool { return errors.Is(coreError(err), loadbalancer.ErrUnknown) }

// ignoreMissing returns nil if the object was not found, because then it is already deleted.
func ignoreMissing(err error) error {
	if errors.Is(err, cloudstack.ErrNotFound) {
		return nil
	}
	return err
}
