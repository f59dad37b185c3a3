// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"errors"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
)

// kindOf returns an error of CloudStack as one that the core knows.
func kindOf(err error) error {
	var kind error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, plan.ErrBusy), errors.Is(err, plan.ErrRefused), errors.Is(err, plan.ErrUnknown):
		return err
	case errors.Is(err, cloudstack.ErrBusy):
		kind = plan.ErrBusy
	case errors.Is(err, cloudstack.ErrForbidden), errors.Is(err, cloudstack.ErrInvalid),
		errors.Is(err, cloudstack.ErrConflict), errors.Is(err, cloudstack.ErrLimit),
		errors.Is(err, cloudstack.ErrNotFound):
		kind = plan.ErrRefused
	default:
		kind = plan.ErrUnknown
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// unanswered reports whether a request may have been carried out though it failed.
func unanswered(err error) bool { return errors.Is(kindOf(err), plan.ErrUnknown) }

// ignoreMissing takes an object that is not found for deleted.
func ignoreMissing(err error) error {
	if errors.Is(err, cloudstack.ErrNotFound) {
		return nil
	}
	return err
}
