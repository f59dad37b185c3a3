package edge

import (
	"context"
	"errors"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// busy are the failures that pass by themselves; refused those that somebody has to do something about. Of all others, nobody
// knows what VCD has done.
var (
	busy    = []error{vcd.ErrBusy, vcd.ErrThrottled, vcd.ErrLater, vcd.ErrChanged}
	refused = []error{
		vcd.ErrInvalid, vcd.ErrForbidden, vcd.ErrNotFound, vcd.ErrUnauthorized, vcd.ErrAmbiguous, vcd.ErrQuota, vcd.ErrConflict, vcd.ErrTLS,
	}
)

// classified makes an error wrap the one of package lb that says what to do. The cause stays within.
func classified(err error) error {
	switch {
	case err == nil, is(err, []error{lb.ErrBusy, lb.ErrRefused, lb.ErrUnknown}):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &failure{lb.ErrUnknown, err}
	case is(err, busy):
		return &failure{lb.ErrBusy, err}
	case is(err, refused):
		return &failure{lb.ErrRefused, err}
	}
	return &failure{lb.ErrUnknown, err}
}

func is(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// A failure is an error with what it means to a plan. Its text is that of the cause.
type failure struct{ kind, cause error }

// Error implements error.
func (f *failure) Error() string { return f.cause.Error() }

// Unwrap lets [errors.Is] match both.
func (f *failure) Unwrap() []error { return []error{f.kind, f.cause} }

func failed(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Errorf(format, args...)}
}
