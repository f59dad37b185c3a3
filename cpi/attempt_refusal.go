// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// refused emits why a Service cannot be implemented, and removes the objects of a load balancer that was never usable.
// A working load balancer is kept.
func (a *attempt) refused(ctx context.Context, reasons []loadbalancer.Finding) error {
	wait := a.awaitUser(reasons)
	err := a.clear(ctx)
	if err == nil {
		err = a.follow(ctx)
	}
	switch {
	case errors.Is(err, loadbalancer.ErrBusy):
		return retry(soon, "%s is busy", a.where())
	case err != nil && !errors.Is(err, loadbalancer.ErrRefused):
		return err
	}
	return wait
}

// awaitUser emits events for the findings that a user must correct, and returns a retry error.
func (a *attempt) awaitUser(findings []loadbalancer.Finding) error {
	a.events.refusals(a.service, findings)
	reasons := make([]string, 0, len(findings))
	for _, f := range findings {
		reasons = append(reasons, f.Reason)
	}
	return retry(later, "the Service needs a correction, see its events: %s",
		strings.Join(slices.Compact(reasons), ", "))
}

// clear removes a partially created load balancer.
func (a *attempt) clear(ctx context.Context) error {
	if !a.neverReady || a.request.DryRun || !a.locations.has(a.request.Location) {
		return nil
	}
	if err := a.locate(ctx); err != nil {
		return err
	}
	p, err := a.planner.planAbsent(ctx, a.service, a.location, PlanRequest{})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(p.Status.Objects, func(o loadbalancer.Object) bool { return o.Inherited }) {
		return nil // it was usable before
	}
	_, err = a.planner.runSteps(ctx, a.service, a.location, p.Steps)
	return err
}

// follow keeps the members of the existing load balancer in sync with the nodes, although the current request is
// refused. A failure at one location does not block the others. A refusal there waits for a user, as the request does.
func (a *attempt) follow(ctx context.Context) error {
	if a.neverReady || a.request.DryRun || a.request.Wait != "" {
		return nil
	}
	var failures []error
	for _, location := range a.occupied(ctx) {
		p, err := a.planner.balancer.Plan(ctx, location, PlanRequest{Want: a.request.Desired, Follow: true})
		if err == nil {
			a.noteChangedMembers()
			_, err = a.planner.runSteps(ctx, a.service, location, p.Steps)
		}
		if !errors.Is(err, loadbalancer.ErrRefused) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// occupied returns the IDs of the locations where the Service may have objects: the recorded ones, else the requested
// one. If that is not in the configuration, it returns the default location, where predecessors of this program created
// all load balancers. Errors are ignored, because they were emitted before.
func (a *attempt) occupied(ctx context.Context) []string {
	var ids []string
	for _, id := range a.locations.resolveKnown(a.records.locations(a.service)) {
		if _, ok := unresolvedName(id); !ok {
			ids = append(ids, id)
		}
	}
	name := a.request.Location
	if !a.locations.has(name) {
		name = a.planner.defaults.Locations[0]
	}
	if len(ids) == 0 {
		if id, err := a.locations.find(ctx, name); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// noteRefusal records that a step was refused.
func (a *attempt) noteRefusal() {
	fingerprint := a.fingerprint()
	a.states.change(a.service.UID, func(s *serviceState) {
		if s.refusal.request != fingerprint {
			s.refusal = refusal{request: fingerprint}
		}
		s.refusal.backoff = s.refusal.next(a.planner.clock.Now())
	})
}

// backOff returns a retry error if it is too early to retry a refused step.
func (a *attempt) backOff() error {
	r := a.states.get(a.service.UID).refusal
	if left := r.until.Sub(a.planner.clock.Now()); left > 0 && r.request == a.fingerprint() && !a.request.DryRun {
		return retry(left, "the cloud rejected a step, see the events of the Service; the controller retries when the Service changes, or after %s", r.pause)
	}
	return nil
}

// fingerprint identifies the request, without the fields that this package stores itself.
func (a *attempt) fingerprint() [sha256.Size]byte {
	d := a.request.Desired
	d.Intent = nil
	d.Published = nil
	d.Reserved = nil
	d.Generation = 0
	text, err := json.Marshal(struct {
		Location string
		Desired  service.Desired
	}{a.location, d})
	if err != nil {
		return [sha256.Size]byte{} // all requests count as the same
	}
	return sha256.Sum256(text)
}
