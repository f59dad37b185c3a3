package edge

import (
	"context"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Options say how a Driver behaves; the zero value is usable.
type Options struct {
	// MaxAge is how old what is observed may be; 0: 30 s. What was written here is always seen.
	MaxAge time.Duration
	// FactsAge is how old the addresses of a gateway and what its load balancer allows may be, which the provider sets; 0: 1 h. See Doubt.
	FactsAge time.Duration
	// RollEvery is how often a sixtieth of a cluster's pools and IP sets is read in full, to find what lists do not show; 0: 1 min.
	RollEvery time.Duration
	// MaxWaiting is how many writes may wait for their turn on one gateway before others are turned away as busy; 0: 4.
	MaxWaiting int
	// TaskTimeout is how long a task is waited for; 0: 15 min. What VCD is stuck with must not hold up the other steps for ever.
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

// New returns a driver that works by the session that a function returns, which is asked before every piece of work: credentials may
// change.
func New(session func(ctx context.Context) (*vcd.Session, error), opts Options) *Driver {
	return &Driver{session: session, opts: opts.withDefaults(), gateways: map[string]*gateway{}}
}
