// SPDX-License-Identifier: Apache-2.0

// Package edge executes plans for load balancers on the edge gateways of VMware Cloud Director. It observes the state
// that package lb plans with, runs the steps of plans one by one, and finds and removes all objects of a cluster. It
// has no code for Kubernetes.
//
// All callers share one cache of each gateway's lists, which writes of this process update. Writes to one gateway are
// queued, because VCD serializes them. Gateways are independent of each other.
package edge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Options configure a [Driver]. The zero value is usable.
type Options struct {
	// MaxAge is the maximum age of cached lists; 0 means 30 s. Writes of this process are always visible.
	MaxAge time.Duration
	// FactsAge is the maximum age of the provider's settings of a gateway, unless they make a load balancer impossible;
	// 0 means 1 h.
	FactsAge time.Duration
	// RollEvery is the interval at which a sixtieth of a cluster's pools and IP sets is read in full, to find changes
	// that lists do not show; 0 means 1 min.
	RollEvery time.Duration
	// MaxWaiting is the number of writes that may wait for one gateway. Further ones get [loadbalancer.ErrBusy]; 0
	// means 4.
	MaxWaiting int
	// TaskTimeout limits the wait for a task, so that a stuck task does not block other steps forever; 0 means 15 min.
	TaskTimeout time.Duration
	// SourceRanges allows the creation and deletion of firewall rules on the gateway, if VCD supports that
	// individually.
	SourceRanges bool
	// Clock provides the time. Nil means real time.
	Clock vcd.Clock
}

func (o Options) withDefaults() Options {
	setDefault(&o.MaxAge, 30*time.Second)
	setDefault(&o.FactsAge, time.Hour)
	setDefault(&o.RollEvery, time.Minute)
	setDefault(&o.MaxWaiting, 4)
	setDefault(&o.TaskTimeout, 15*time.Minute)
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	return o
}

func setDefault[T comparable](value *T, fallback T) {
	if *value == *new(T) {
		*value = fallback
	}
}

type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() }
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// A Driver observes edge gateways and runs steps on them, all with one session. It is safe for concurrent use.
type Driver struct {
	session func(ctx context.Context) (*vcd.Session, error)
	opts    Options

	mu       sync.Mutex
	gateways map[string]*gateway // by URN
	sequence uint64              // orders reads and queries
}

// New returns a driver. It calls session before each operation, because credentials may change.
func New(session func(ctx context.Context) (*vcd.Session, error), opts Options) *Driver {
	return &Driver{session: session, opts: opts.withDefaults(), gateways: map[string]*gateway{}}
}

// busy are errors that disappear by themselves, and refused are errors that require a change. After any other error, it
// is unknown what VCD has done.
var (
	busy    = []error{vcd.ErrBusy, vcd.ErrThrottled, vcd.ErrLater, vcd.ErrChanged}
	refused = []error{
		vcd.ErrInvalid, vcd.ErrForbidden, vcd.ErrNotFound, vcd.ErrUnauthorized, vcd.ErrAmbiguous, vcd.ErrQuota,
		vcd.ErrConflict, vcd.ErrTLS,
	}
)

// classified wraps an error in the error of package loadbalancer that determines how the caller continues. The cause
// stays wrapped.
func classified(err error) error {
	switch {
	case err == nil, is(err, []error{loadbalancer.ErrBusy, loadbalancer.ErrRefused, loadbalancer.ErrUnknown}):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &failure{loadbalancer.ErrUnknown, err}
	case is(err, busy):
		return &failure{loadbalancer.ErrBusy, err}
	case is(err, refused):
		return &failure{loadbalancer.ErrRefused, err}
	}
	return &failure{loadbalancer.ErrUnknown, err}
}

func is(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// A failure is an error with its class. Its text is that of the cause.
type failure struct{ kind, cause error }

// Error implements error.
func (f *failure) Error() string { return f.cause.Error() }

// Unwrap returns both the class and the cause.
func (f *failure) Unwrap() []error { return []error{f.kind, f.cause} }

func failed(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Errorf(format, args...)}
}
