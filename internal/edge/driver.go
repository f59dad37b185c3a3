// SPDX-License-Identifier: Apache-2.0

// Package edge carries out plans for load balancers on the edge gateways of VMware Cloud Director: it observes what
// package lb plans with, runs the steps of plans one by one, and finds and removes everything of a cluster. It
// knows nothing of Kubernetes.
//
// All callers share one cache of each gateway's lists, which writes from here update. Writes to one gateway are
// queued, as VCD serializes them; gateways are independent of each other.
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

// Options of a [Driver]; the zero value is usable.
type Options struct {
	// MaxAge is how old cached lists may be; 0: 30 s. What was written here is always seen.
	MaxAge time.Duration
	// FactsAge is how old the provider's settings of a gateway may be, unless they make a load balancer impossible;
	// 0: 1 h.
	FactsAge time.Duration
	// RollEvery is how often a sixtieth of a cluster's pools and IP sets is read in full, for what lists do not
	// show; 0: 1 min.
	RollEvery time.Duration
	// MaxWaiting is how many writes may wait for one gateway before others get [loadbalancer.ErrBusy]; 0: 4.
	MaxWaiting int
	// TaskTimeout bounds the wait for a task; 0: 15 min. A stuck task must not hold up other steps for ever.
	TaskTimeout time.Duration
	// SourceRanges allows rules of the gateway's firewall to be created and deleted, where VCD can do so one by one.
	SourceRanges bool
	// Clock; nil: real time.
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

// A Driver observes edge gateways and runs steps on them, all by one session. It is safe for concurrent use.
type Driver struct {
	session func(ctx context.Context) (*vcd.Session, error)
	opts    Options

	mu       sync.Mutex
	gateways map[string]*gateway // by URN
	sequence uint64              // orders reads and queries
}

// New returns a driver that gets its session from a function before every piece of work: credentials may change.
func New(session func(ctx context.Context) (*vcd.Session, error), opts Options) *Driver {
	return &Driver{session: session, opts: opts.withDefaults(), gateways: map[string]*gateway{}}
}

// busy are the failures that pass by themselves; refused those that need something changed. After all others, it is
// not known what VCD has done.
var (
	busy    = []error{vcd.ErrBusy, vcd.ErrThrottled, vcd.ErrLater, vcd.ErrChanged}
	refused = []error{
		vcd.ErrInvalid, vcd.ErrForbidden, vcd.ErrNotFound, vcd.ErrUnauthorized, vcd.ErrAmbiguous, vcd.ErrQuota,
		vcd.ErrConflict, vcd.ErrTLS,
	}
)

// classified makes an error wrap that of package loadbalancer which determines how the caller continues. The cause stays wrapped.
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

// Unwrap lets [errors.Is] match both.
func (f *failure) Unwrap() []error { return []error{f.kind, f.cause} }

func failed(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Errorf(format, args...)}
}
