// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	defaultReportInterval = 30 * time.Second
	// reportPauseMax is the pause after VCD reported that the entity does not exist or the right to it is missing.
	reportPauseMax = time.Hour
	// minRejectionPause is the first pause after VCD rejected the content, for example because of a schema of the site.
	// It doubles each time, up to reportPauseMax.
	minRejectionPause = 10 * time.Minute
	// reportTries limits the attempts to update an entity that other clients change at the same time.
	reportTries = 5
	reportPause = 100 * time.Millisecond
	// keptEntries limits the errors and events that wait to be written.
	keptEntries = 10
)

// ReporterOptions configure a [Reporter].
type ReporterOptions struct {
	Session func(context.Context) (*vcd.Session, error)
	ID      string        // URN of the runtime defined entity
	Version string        // of the controller
	Every   time.Duration // between two writes; 0: 30 s
	Clock   clock.Clock   // nil: real time
}

// A Reporter maintains the section status.cpi of the cluster's runtime defined entity (RDE). Data that it cannot write
// is kept for later. Without an entity, the section or the right, nothing is reported. The Reporter never blocks a load
// balancer.
type Reporter struct {
	opts ReporterOptions
	// existing returns all objects of some kinds at the locations of load balancers, of all owners. Nil disables the
	// search for stale entries.
	existing func(context.Context, []loadbalancer.Kind) ([]loadbalancer.Object, error)

	mu      sync.Mutex
	started bool
	change  rde.Change
	dirty   bool
	off     time.Time     // until then nothing is written
	pause   time.Duration // after the last refusal
	next    time.Time     // time of the next search for stale entries
	owners  map[string]reported
}

// An observation is the observed state of an owner's objects on a gateway.
type observation struct {
	gateway string
	owner   loadbalancer.Owner
	// absent means that nothing is desired. settled means that the observed state matches the desired state.
	absent, settled bool
	objects         []loadbalancer.Object
	addresses       []netip.Addr
	// err is the reason why the request was refused or the observation failed. Then the other results are not set.
	err error
}

// reported is the last observation of one owner.
type reported struct {
	resources []rde.Resource
	addresses []string
	announced []rde.Resource // at the last event
	failure   string
}

func (o reported) same(other reported) bool {
	return slices.Equal(o.resources, other.resources) && slices.Equal(o.addresses, other.addresses)
}

var _ cpi.Starter = (*Reporter)(nil)

// NewReporter returns a reporter. Its first write contains the version of the controller.
func NewReporter(opts ReporterOptions) *Reporter {
	opts.Every = cmp.Or(opts.Every, defaultReportInterval)
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Reporter{
		opts:   opts,
		owners: map[string]reported{},
		dirty:  true,
		next:   opts.Clock.Now().Add(firstStaleSearch),
	}
}

// Start writes observations at intervals until ctx ends.
func (r *Reporter) Start(ctx context.Context) {
	r.mu.Lock()
	r.started = true
	r.mu.Unlock()
	go func() {
		for {
			if err := errors.Join(r.searchStale(ctx), r.write(ctx)); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).V(2).Info("Skipped writing to the runtime defined entity", "entity", r.opts.ID,
					"reason", err.Error())
			}
			select {
			case <-ctx.Done():
				return
			case <-r.opts.Clock.After(r.opts.Every):
			}
		}
	}()
}

// observed records the outcome of a plan.
func (r *Reporter) observed(gateway string, want lb.Desired, p loadbalancer.Plan, err error) {
	o := observation{gateway: gateway, owner: want.Owner, absent: want.Absent, settled: p.Done()}
	switch {
	case errors.Is(err, loadbalancer.ErrBusy):
		return
	case err != nil:
		o.err = err
	case len(p.Refusals) > 0:
		o.err = errors.New(p.Refusals[0].Message)
	default:
		o.objects = p.Status.Objects
		o.addresses = p.Status.Addresses
	}
	r.note(o)
}

func (r *Reporter) note(o observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := o.gateway + "/" + o.owner.UID + "/" + o.owner.String()
	before, known := r.owners[key]
	if o.err != nil {
		r.failed(key, before, o)
		return
	}
	now, next := r.compare(o, before, known)
	r.owners[key] = now
	if o.absent && o.settled {
		delete(r.owners, key)
	}
	if len(next.Events)+len(next.Healed) == 0 && now.same(before) {
		return
	}
	next.Drop = slices.DeleteFunc(slices.Clone(before.resources),
		func(r rde.Resource) bool { return contains(now.resources, r) })
	next.DropIPs = slices.DeleteFunc(slices.Clone(before.addresses), r.inUse)
	r.add(next)
}

// compare returns the new state of an owner, and the changes since the previous one.
func (r *Reporter) compare(o observation, before reported, known bool) (reported, rde.Change) {
	now := reported{resources: resourcesOf(o.objects), addresses: addressesOf(o.addresses), announced: before.announced}
	next := rde.Change{Put: now.resources, AddIPs: now.addresses}
	switch {
	case !known:
		now.announced = now.resources // objects that existed before this process are no event
	case o.settled && !slices.Equal(now.resources, now.announced):
		next.Events = []rde.Entry{r.entry(o, eventOf(o, now.announced)+"Loadbalancer", "")}
		now.announced = now.resources
	}
	switch {
	case before.failure != "" && o.settled:
		next.Healed = []string{o.owner.String()}
	default:
		now.failure = before.failure
	}
	return now, next
}

// eventOf returns the change of a load balancer that had the given resources before.
func eventOf(o observation, stood []rde.Resource) string {
	switch {
	case o.absent:
		return "Deleted"
	case len(stood) == 0:
		return "Created"
	}
	return "Updated"
}

// failed records an error. The same error is not reported again.
func (r *Reporter) failed(key string, before reported, o observation) {
	if before.failure == o.err.Error() {
		return
	}
	before.failure = o.err.Error()
	r.owners[key] = before
	name := "Update"
	switch {
	case o.absent:
		name = "Delete"
	case len(before.resources) == 0:
		name = "Create"
	}
	r.add(rde.Change{Errors: []rde.Entry{r.entry(o, name+"LoadbalancerError", before.failure)}})
}

func (r *Reporter) entry(o observation, name, detail string) rde.Entry {
	return rde.Entry{Name: name, OccurredAt: r.opts.Clock.Now(), ResourceName: o.owner.String(), Detail: detail}
}

func contains(all []rde.Resource, r rde.Resource) bool {
	return slices.ContainsFunc(all, func(x rde.Resource) bool { return x.Type == r.Type && x.ID == r.ID })
}

func (r *Reporter) inUse(address string) bool {
	for _, o := range r.owners {
		if slices.Contains(o.addresses, address) {
			return true
		}
	}
	return false
}

// add adds changes to the next write. Later changes replace earlier ones.
func (r *Reporter) add(next rde.Change) {
	c := &r.change
	is := func(all []rde.Resource) func(rde.Resource) bool {
		return func(r rde.Resource) bool { return contains(all, r) }
	}
	in := func(all []string) func(string) bool { return func(s string) bool { return slices.Contains(all, s) } }
	c.Put = append(slices.DeleteFunc(c.Put, is(slices.Concat(next.Put, next.Drop))), next.Put...)
	c.Drop = append(slices.DeleteFunc(c.Drop, is(slices.Concat(next.Put, next.Drop))), next.Drop...)
	c.AddIPs = append(slices.DeleteFunc(c.AddIPs, in(slices.Concat(next.AddIPs, next.DropIPs))), next.AddIPs...)
	c.DropIPs = append(slices.DeleteFunc(c.DropIPs, in(slices.Concat(next.AddIPs, next.DropIPs))), next.DropIPs...)
	c.Healed = append(slices.DeleteFunc(c.Healed, in(next.Healed)), next.Healed...)
	c.Errors = slices.DeleteFunc(c.Errors,
		func(e rde.Entry) bool { return slices.Contains(next.Healed, e.ResourceName) })
	c.Errors = last(append(c.Errors, next.Errors...), keptEntries)
	c.Events = last(append(c.Events, next.Events...), keptEntries)
	c.Drop = last(c.Drop, keptDrops)
	c.DropIPs = last(c.DropIPs, keptDrops)
	c.Healed = last(c.Healed, keptDrops)
	r.dirty = true
}

func last[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// write writes the changes since the last write, if there are any.
func (r *Reporter) write(ctx context.Context) error {
	change, ok := r.take()
	if !ok {
		return nil
	}
	err := r.update(ctx, change)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.pause = 0
		return nil
	case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrForbidden), errors.Is(err, rde.ErrOtherType):
		r.off = r.opts.Clock.Now().Add(reportPauseMax)
	case errors.Is(err, vcd.ErrInvalid):
		if r.pause == 0 {
			klog.FromContext(ctx).Error(err, "VCD rejects the report of load balancers: if the site has its own schema for the type of the entity, ask the provider to allow the section status.cpi",
				"entity", r.opts.ID)
		}
		r.pause = min(max(2*r.pause, minRejectionPause), reportPauseMax)
		r.off = r.opts.Clock.Now().Add(r.pause)
	}
	since := r.change // changes in the meantime follow those that could not be written
	r.change = change
	r.add(since)
	return err
}

func (r *Reporter) take() (rde.Change, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dirty || r.opts.Clock.Now().Before(r.off) {
		return rde.Change{}, false
	}
	change := r.change
	r.change = rde.Change{}
	r.dirty = false
	return change, true
}

// update changes the entity, unless it is up to date.
func (r *Reporter) update(ctx context.Context, change rde.Change) error {
	change.Version = r.opts.Version
	session, err := r.opts.Session(ctx)
	if err != nil {
		return err
	}
	writer := rde.Writer{In: session.Entities, Tries: reportTries, Pause: reportPause}
	_, _, err = writer.Update(ctx, r.opts.ID, func(entity vcd.Entity) (json.RawMessage, error) {
		return rde.Merge(entity.Type, entity.Content, change)
	})
	return err
}

var resourceTypes = map[loadbalancer.Kind]string{
	lb.KindService: rde.VirtualService,
	lb.KindPool:    rde.Pool,
	lb.KindRule:    rde.NATRule,
	lb.KindProfile: rde.ApplicationPortProfile,
}

// resourcesOf returns the objects of the types that VMware's CPI also wrote. Cleanup tools search for these.
func resourcesOf(objects []loadbalancer.Object) []rde.Resource {
	var out []rde.Resource
	for _, o := range objects {
		if resourceTypes[o.Kind] == "" {
			continue
		}
		r := rde.Resource{Type: resourceTypes[o.Kind], ID: o.ID, Name: o.Name}
		if o.Kind == lb.KindService && len(o.Addresses) > 0 {
			r.VirtualIP = o.Addresses[0].String()
		}
		out = append(out, r)
	}
	return out
}

func addressesOf(addresses []netip.Addr) []string {
	var out []string
	for _, a := range addresses {
		out = append(out, a.String())
	}
	return out
}
