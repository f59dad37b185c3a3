package vcd

import (
	"context"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
)

const (
	// ledgerFirstLook is when the record is first held against what stands: who started has looked at all Services by then, so that little is left
	// to be asked for.
	ledgerFirstLook = 2 * time.Minute
	// ledgerLook is how often it is after that.
	ledgerLook = time.Hour
	// ledgerDrops bounds what is to be taken out of a record that cannot be written. The next look finds the rest.
	ledgerDrops = 1000
)

// Flush writes what was noted, if this ledger was started: at the end of the process.
func (l *Ledger) Flush(ctx context.Context) error {
	l.mu.Lock()
	started := l.started
	l.mu.Unlock()
	if !started {
		return nil
	}
	return l.write(ctx)
}

// look notes what the entity lists and is gone: who was told of it may have ended before it was written. VCD is asked only if something is listed
// that no owner is known to have.
func (l *Ledger) look(ctx context.Context) error {
	if !l.lookDue() {
		return nil
	}
	session, err := l.opts.Session(ctx)
	if err != nil {
		return err
	}
	entity, err := session.Entities.Get(ctx, l.opts.ID)
	if err != nil {
		return err
	}
	resources, addresses := rde.Listed(entity.Type, entity.Content)
	doubtful := l.unknown(resources, addresses)
	if len(doubtful.Drop)+len(doubtful.DropIPs) == 0 {
		return nil
	}
	standing, err := l.opts.Standing(ctx, kindsOf(doubtful.Drop))
	if err != nil {
		return err
	}
	seen := resourcesOf(standing)
	resources = slices.DeleteFunc(doubtful.Drop, func(r rde.Resource) bool { return contains(seen, r) })
	addresses = slices.DeleteFunc(doubtful.DropIPs, func(a string) bool {
		return slices.ContainsFunc(standing, func(o lb.ObjectStatus) bool { return o.Address.IsValid() && o.Address.String() == a })
	})
	if gone := l.unknown(resources, addresses); len(gone.Drop)+len(gone.DropIPs) > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.add(gone)
	}
	return nil
}

// kindsOf returns what kinds resources are of, and virtual services, which have addresses. Others that are translated have a rule among the resources.
func kindsOf(resources []rde.Resource) []lb.Kind {
	kinds := []lb.Kind{lb.KindService}
	for kind, name := range resourceTypes {
		if kind != lb.KindService && slices.ContainsFunc(resources, func(r rde.Resource) bool { return r.Type == name }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// lookDue says whether it is time to look, and when it will be again.
func (l *Ledger) lookDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Clock.Now()
	if l.opts.Standing == nil || now.Before(l.next) || now.Before(l.off) {
		return false
	}
	l.next = now.Add(ledgerLook)
	return true
}

// unknown keeps of resources and addresses what no owner is known to have.
func (l *Ledger) unknown(resources []rde.Resource, addresses []string) rde.Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := func(r rde.Resource) bool {
		for _, o := range l.owners {
			if contains(o.resources, r) {
				return true
			}
		}
		return false
	}
	return rde.Change{Drop: slices.DeleteFunc(slices.Clone(resources), known), DropIPs: slices.DeleteFunc(slices.Clone(addresses), l.inUse)}
}
