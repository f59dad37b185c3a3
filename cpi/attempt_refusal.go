// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
)

// maxRefusalBackoff is the longest pause before a step that was refused is tried again.
const maxRefusalBackoff = 10 * time.Minute

// A backoff is when something that failed is tried again.
type backoff struct {
	until time.Time
	pause time.Duration
}

// next returns a longer backoff, from now on.
func (b backoff) next(now time.Time) backoff {
	pause := min(max(2*b.pause, later), maxRefusalBackoff)
	return backoff{now.Add(pause), pause}
}

// A refusal is of a step: each try may build something, and remove it again. As long as the wish is the same, tries
// back off.
type refusal struct {
	backoff

	wish [sha256.Size]byte
}

// refused emits why a wish cannot be met, and removes what is there of a load balancer that never was of use. What
// works stays.
func (a *attempt) refused(ctx context.Context, reasons []plan.Finding) error {
	wait := a.awaitUser(reasons)
	err := a.clear(ctx)
	if err == nil {
		err = a.follow(ctx)
	}
	switch {
	case errors.Is(err, plan.ErrBusy):
		return retry(soon, "%s is busy", a.where())
	case err != nil && !errors.Is(err, plan.ErrRefused):
		return err
	}
	return wait
}

// awaitUser emits what a user has to correct, and waits for it.
func (a *attempt) awaitUser(findings []plan.Finding) error {
	a.balancers.events.refusals(a.service, findings)
	reasons := make([]string, 0, len(findings))
	for _, f := range findings {
		reasons = append(reasons, f.Reason)
	}
	return retry(later, "the Service cannot have what it asks for until something is corrected, see its events: %s",
		strings.Join(slices.Compact(reasons), ", "))
}

// follow keeps the members of what stands in step with the nodes, though what is desired now cannot be. A location
// where that fails does not hold up the others; a refusal there waits for a user, as the wish does.
func (a *attempt) follow(ctx context.Context) error {
	if a.blank || a.wish.DryRun || a.wish.Wait != "" {
		return nil
	}
	var failures []error
	for _, location := range a.occupied(ctx) {
		p, err := a.balancers.opts.Balancer.Plan(ctx, location, PlanRequest{Want: a.wish.Desired, Follow: true})
		if err == nil {
			_, err = a.balancers.runSteps(ctx, a.service, location, p.Steps)
		}
		if !errors.Is(err, plan.ErrRefused) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// occupied returns the ids of the locations where something may stand: the stored ones, else that of the wish, else the
// default one, where a predecessor of this program made all. Why one cannot be found was emitted already.
func (a *attempt) occupied(ctx context.Context) []string {
	var ids []string
	for _, id := range a.balancers.locations.resolveKnown(a.balancers.stored(a.service)) {
		if _, ok := unfoundName(id); !ok {
			ids = append(ids, id)
		}
	}
	name := a.wish.Location
	if !a.balancers.locations.has(name) {
		name = a.balancers.opts.Defaults.Locations[0]
	}
	if len(ids) == 0 {
		if id, err := a.balancers.locations.find(ctx, name); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// clear removes a half-built load balancer.
func (a *attempt) clear(ctx context.Context) error {
	if !a.blank || a.wish.DryRun || !a.balancers.locations.has(a.wish.Location) {
		return nil
	}
	if err := a.locate(ctx); err != nil {
		return err
	}
	p, err := a.balancers.planAbsent(ctx, a.service, a.location, PlanRequest{})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(p.Status.Objects, func(o plan.Object) bool { return o.Inherited }) {
		return nil // it was of use before
	}
	_, err = a.balancers.runSteps(ctx, a.service, a.location, p.Steps)
	return err
}

// noteRefusal notes that a step was refused.
func (a *attempt) noteRefusal() {
	wish := a.fingerprint()
	a.balancers.state.change(a.service.UID, func(s *serviceState) {
		if s.refusal.wish != wish {
			s.refusal = refusal{wish: wish}
		}
		s.refusal.backoff = s.refusal.next(a.balancers.opts.Clock.Now())
	})
}

// backOff fails if it is too early to try again what was refused.
func (a *attempt) backOff() error {
	r := a.balancers.state.get(a.service.UID).refusal
	if left := r.until.Sub(a.balancers.opts.Clock.Now()); left > 0 && r.wish == a.fingerprint() && !a.wish.DryRun {
		return retry(left, "the cloud has refused a step, see the events of the Service: it is tried again when the "+
			"Service changes, else after %s", r.pause)
	}
	return nil
}

// fingerprint identifies the wish, without what the core stores itself.
func (a *attempt) fingerprint() [sha256.Size]byte {
	d := a.wish.Desired
	d.Intent = nil
	d.Published = nil
	d.Reserved = nil
	d.Generation = 0
	text, err := json.Marshal(struct {
		Location string
		Desired  plan.Desired
	}{a.location, d})
	if err != nil {
		return [sha256.Size]byte{} // every try counts as the same
	}
	return sha256.Sum256(text)
}
