// SPDX-License-Identifier: Apache-2.0

package lb

import "errors"

// Errors that errors of steps wrap.
var (
	// ErrBusy means that VCD is working on the object: try again soon.
	ErrBusy = errors.New("busy")
	// ErrRefused means that VCD needs something changed first: bad input, a missing right, a quota.
	ErrRefused = errors.New("refused")
	// ErrUnknown means that the state is unknown: VCD did not answer, or not completely.
	ErrUnknown = errors.New("unknown")
)
