package vcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	defaultLedgerEvery = 30 * time.Second
	// ledgerOff is how long nothing is written after VCD showed that we may not, or that there is no such entity.
	ledgerOff = time.Hour
	// ledgerTries is how often an entity is read anew when somebody else changes it at the same time.
	ledgerTries = 5
	// ledgerKept is how many errors and events wait to be written.
	ledgerKept = 10
)

// LedgerOptions say where a [Ledger] is written.
type LedgerOptions struct {
	Session func(context.Context) (*vcd.Session, error)
	ID      string        // URN of the runtime defined entity
	Version string        // of the controller
	Every   time.Duration // between two writes; 0: 30 s
	Clock   clock.Clock   // nil: real time
	// Standing returns all objects of kinds that stand where load balancers may be, whosever they are; nil: what the entity lists is not held
	// against them.
	Standing func(context.Context, []lb.Kind) ([]lb.ObjectStatus, error)
}

// A Ledger keeps section status.cpi of the cluster's runtime defined entity. What it cannot write stays for later; where there
// is no entity, no place in it or no right, there is no record.
type Ledger struct {
	opts LedgerOptions

	mu      sync.Mutex
	started bool
	change  rde.Change
	dirty   bool
	off     time.Time // until when nothing is written
	next    time.Time // when the entity is held against what stands
	owners  map[string]owned
}

// owned is what was noted of one owner.
type owned struct {
	resources []rde.Resource
	addresses []string
	told      []rde.Resource // when the last event was
	failure   string
}

func (o owned) same(other owned) bool {
	return slices.Equal(o.resources, other.resources) && slices.Equal(o.addresses, other.addresses)
}

var (
	_ cpi.Ledger  = (*Ledger)(nil)
	_ cpi.Starter = (*Ledger)(nil)
)

// NewLedger returns a ledger, which begins by writing down the version of the controller.
func NewLedger(opts LedgerOptions) *Ledger {
	if opts.Every == 0 {
		opts.Every = defaultLedgerEvery
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Ledger{opts: opts, owners: map[string]owned{}, dirty: true, next: opts.Clock.Now().Add(ledgerFirstLook)}
}

// Start writes what was noted, from time to time.
func (l *Ledger) Start(ctx context.Context) {
	l.mu.Lock()
	l.started = true
	l.mu.Unlock()
	go func() {
		for {
			if err := errors.Join(l.look(ctx), l.write(ctx)); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).V(2).Info("Not written down in the runtime defined entity", "entity", l.opts.ID, "reason", err.Error())
			}
			select {
			case <-ctx.Done():
				return
			case <-l.opts.Clock.After(l.opts.Every):
			}
		}
	}()
}

// Note notes what has become of a load balancer.
func (l *Ledger) Note(e cpi.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := e.Place + "/" + e.Owner.UID + "/" + e.Owner.String()
	before, known := l.owners[key]
	if e.Err != nil {
		l.failed(key, before, e)
		return
	}
	now, next := l.compare(e, before, known)
	l.owners[key] = now
	if e.Absent && e.Settled {
		delete(l.owners, key)
	}
	if len(next.Events)+len(next.Healed) == 0 && now.same(before) {
		return
	}
	next.Drop = slices.DeleteFunc(slices.Clone(before.resources), func(r rde.Resource) bool { return contains(now.resources, r) })
	next.DropIPs = slices.DeleteFunc(slices.Clone(before.addresses), l.inUse)
	l.add(next)
}

// compare returns what is known of an owner now, and what is new about it.
func (l *Ledger) compare(e cpi.Entry, before owned, known bool) (owned, rde.Change) {
	now := owned{resources: resourcesOf(e.Objects), addresses: addressesOf(e), told: before.told}
	next := rde.Change{Put: now.resources, AddIPs: now.addresses}
	switch {
	case !known:
		now.told = now.resources // what stood before we looked is no news
	case e.Settled && !slices.Equal(now.resources, now.told):
		next.Events = []rde.Entry{l.entry(e, eventOf(e, now.told)+"Loadbalancer", "")}
		now.told = now.resources
	}
	switch {
	case before.failure != "" && e.Settled:
		next.Healed = []string{e.Owner.String()}
	default:
		now.failure = before.failure
	}
	return now, next
}

// eventOf says what was done to a load balancer of which resources stood.
func eventOf(e cpi.Entry, stood []rde.Resource) string {
	switch {
	case e.Absent:
		return "Deleted"
	case len(stood) == 0:
		return "Created"
	}
	return "Updated"
}

// failed notes an error, once until another one.
func (l *Ledger) failed(key string, before owned, e cpi.Entry) {
	if before.failure == e.Err.Error() {
		return
	}
	before.failure = e.Err.Error()
	l.owners[key] = before
	name := "Update"
	switch {
	case e.Absent:
		name = "Delete"
	case len(before.resources) == 0:
		name = "Create"
	}
	l.add(rde.Change{Errors: []rde.Entry{l.entry(e, name+"LoadbalancerError", before.failure)}})
}

func (l *Ledger) entry(e cpi.Entry, name, detail string) rde.Entry {
	return rde.Entry{Name: name, OccurredAt: l.opts.Clock.Now(), ResourceName: e.Owner.String(), Detail: detail}
}

func contains(all []rde.Resource, r rde.Resource) bool {
	return slices.ContainsFunc(all, func(x rde.Resource) bool { return x.Type == r.Type && x.ID == r.ID })
}

func (l *Ledger) inUse(address string) bool {
	for _, o := range l.owners {
		if slices.Contains(o.addresses, address) {
			return true
		}
	}
	return false
}

// add adds to what is to be written: what is said later holds.
func (l *Ledger) add(next rde.Change) {
	c := &l.change
	is := func(all []rde.Resource) func(rde.Resource) bool {
		return func(r rde.Resource) bool { return contains(all, r) }
	}
	in := func(all []string) func(string) bool { return func(s string) bool { return slices.Contains(all, s) } }
	c.Put = append(slices.DeleteFunc(c.Put, is(slices.Concat(next.Put, next.Drop))), next.Put...)
	c.Drop = append(slices.DeleteFunc(c.Drop, is(slices.Concat(next.Put, next.Drop))), next.Drop...)
	c.AddIPs = append(slices.DeleteFunc(c.AddIPs, in(slices.Concat(next.AddIPs, next.DropIPs))), next.AddIPs...)
	c.DropIPs = append(slices.DeleteFunc(c.DropIPs, in(slices.Concat(next.AddIPs, next.DropIPs))), next.DropIPs...)
	c.Healed = append(slices.DeleteFunc(c.Healed, in(next.Healed)), next.Healed...)
	c.Errors = slices.DeleteFunc(c.Errors, func(e rde.Entry) bool { return slices.Contains(next.Healed, e.ResourceName) })
	c.Errors, c.Events = last(append(c.Errors, next.Errors...), ledgerKept), last(append(c.Events, next.Events...), ledgerKept)
	c.Drop, c.DropIPs, c.Healed = last(c.Drop, ledgerDrops), last(c.DropIPs, ledgerDrops), last(c.Healed, ledgerDrops)
	l.dirty = true
}

func last[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// write writes what was noted since it was written last, if there is anything.
func (l *Ledger) write(ctx context.Context) error {
	change, ok := l.take()
	if !ok {
		return nil
	}
	err := l.update(ctx, change)
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrForbidden) || errors.Is(err, rde.ErrOtherType) {
		l.off = l.opts.Clock.Now().Add(ledgerOff)
	}
	since := l.change // what was noted meanwhile comes after what could not be written
	l.change = change
	l.add(since)
	return err
}

func (l *Ledger) take() (rde.Change, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dirty || l.opts.Clock.Now().Before(l.off) {
		return rde.Change{}, false
	}
	change := l.change
	l.change, l.dirty = rde.Change{}, false
	return change, true
}

// update changes the entity, unless it says everything already.
func (l *Ledger) update(ctx context.Context, change rde.Change) error {
	change.Version = l.opts.Version
	for try := 1; ; try++ {
		session, err := l.opts.Session(ctx)
		if err != nil {
			return err
		}
		entity, err := session.Entities.Get(ctx, l.opts.ID)
		if err != nil {
			return err
		}
		content, err := rde.Merge(entity.Type, entity.Content, change)
		if err != nil {
			return fmt.Errorf("changing entity %s: %w", l.opts.ID, err)
		}
		if string(content) == string(entity.Content) {
			return nil
		}
		_, err = session.Entities.Update(ctx, entity, content)
		if err == nil || !errors.Is(err, vcd.ErrChanged) || try == ledgerTries {
			return err
		}
	}
}

var resourceTypes = map[lb.Kind]string{
	lb.KindService: rde.VirtualService, lb.KindPool: rde.Pool, lb.KindRule: rde.NATRule, lb.KindProfile: rde.ApplicationPortProfile,
}

// resourcesOf returns the objects that VMware's CPI wrote down, too: cleaning up after a cluster looks for these.
func resourcesOf(objects []lb.ObjectStatus) []rde.Resource {
	var out []rde.Resource
	for _, o := range objects {
		if resourceTypes[o.Kind] == "" {
			continue
		}
		r := rde.Resource{Type: resourceTypes[o.Kind], ID: o.ID, Name: o.Name}
		if o.Kind == lb.KindService && o.Address.IsValid() {
			r.VirtualIP = o.Address.String()
		}
		out = append(out, r)
	}
	return out
}

func addressesOf(e cpi.Entry) []string {
	var out []string
	for _, a := range e.Addresses {
		out = append(out, a.String())
	}
	return out
}
