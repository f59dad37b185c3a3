// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// addressExecutor allocates, marks and releases floating IPs.
type addressExecutor struct{ *executor }

// create asks an IP Space for one certain address, which was stored where the marker will be taken from. If it is
// allocated already, its marker shows whether a former run did that, or another owner; without one, it was a former run
// only if the address was stored before.
func (e *addressExecutor) create(ctx context.Context) error {
	want := e.step.Address
	space, err := e.space(ctx, want.Space)
	if err != nil {
		return err
	}
	task, err := e.session.IPSpaces.Allocate(ctx, space.ID, want.Value)
	task, err = e.wait(ctx, task, err)
	switch {
	case err == nil:
		if id := vcd.AllocatedID(task, want.Value); id != "" {
			e.gateway.allocated.Store(id, true)
			e.gateway.claims.put(lb.Claim{ID: id, Value: want.Value, Space: space})
		} else {
			e.gateway.claims.invalidate()
		}
		return nil
	case errors.Is(err, vcd.ErrQuota) && e.hasOtherSpace(ctx):
		e.gateway.refusals.fill(space.ID, true)
		return &failure{lb.ErrBusy, err} // the next plan takes another space
	case !is(err, []error{vcd.ErrInvalid, vcd.ErrConflict}):
		return err
	}
	return e.taken(ctx, err)
}

// taken finds out who has the address of the step, which VCD does not give. That it is the owner's is no error.
func (e *addressExecutor) taken(ctx context.Context, err error) error {
	want := e.step.Address
	claims, other := e.gateway.claims.get(ctx, e.session, e.fresh())
	if other != nil {
		return other
	}
	i := slices.IndexFunc(claims, func(c lb.Claim) bool { return c.Value == want.Value })
	if i < 0 { // another organization has it, which is not listed
		e.gateway.refusals.refuse(want.Value)
		return &failure{lb.ErrBusy, err}
	}
	if c := claims[i]; c.Description == "" && !e.step.Stored {
		m, _ := lb.ParseMarker(want.Description)
		e.gateway.refusals.disown(m.Owner, c.ID)
		return failed(lb.ErrBusy, "the address was allocated by another meanwhile")
	}
	return e.ownedBy(claims[i].Description)
}

// hasOtherSpace reports whether there is another IP Space to try.
func (e *addressExecutor) hasOtherSpace(ctx context.Context) bool {
	f, err := e.gateway.fact(ctx, e.session)
	return err == nil && len(f.spaces) > 1
}

// ownedBy returns an error if the description of an allocated address names another owner than the step.
func (e *addressExecutor) ownedBy(description string) error {
	if _, marked := lb.ParseMarker(description); marked && !sameOwner(description, e.step.Address.Description) {
		return failed(lb.ErrBusy, "the address belongs to another owner")
	}
	return nil
}

func (e *addressExecutor) space(ctx context.Context, to lb.Ref) (lb.Ref, error) {
	f, err := e.gateway.fact(ctx, e.session)
	if err != nil {
		return lb.Ref{}, err
	}
	for _, space := range f.spaces {
		if space.ID == to.ID || to.ID == "" && space.Name == to.Name {
			return ref(space.Ref), nil
		}
	}
	return lb.Ref{}, failed(lb.ErrRefused, "the edge gateway has no IP Space %s", to.Name)
}

// find finds the claim of the step, by its id or, just after it was allocated, by its value.
func (e *addressExecutor) find(ctx context.Context) (lb.Claim, bool, error) {
	id := e.step.ID
	want := e.step.Address
	match := func(c lb.Claim) bool {
		return id != "" && c.ID == id || id == "" && want != nil && c.Value == want.Value
	}
	claims := e.gateway.claims.known()
	i := slices.IndexFunc(claims, match)
	if i < 0 {
		var err error
		if claims, err = e.gateway.claims.get(ctx, e.session, e.fresh()); err != nil {
			return lb.Claim{}, false, err
		}
		if i = slices.IndexFunc(claims, match); i < 0 {
			return lb.Claim{}, false, nil
		}
	}
	return claims[i], true, nil
}

// update marks an address. Two owners that take an unmarked one for theirs may do so at the same time: the mark that
// stands in the end counts. What was allocated here no other owner takes.
func (e *addressExecutor) update(ctx context.Context) error {
	c, found, err := e.find(ctx)
	switch {
	case err != nil:
		return err
	case !found:
		return failed(lb.ErrBusy, "the address is not allocated any more")
	}
	former := e.step.FormerDescription
	want := e.step.Address.Description
	task, err := e.session.IPSpaces.Mark(ctx, c.Space.ID, c.ID,
		func(now vcd.FloatingIP) (vcd.UsageState, string, error) {
			if now.Description != former && now.Description != want {
				return "", "", failed(lb.ErrBusy, "the address belongs to another owner")
			}
			return vcd.UsedManual, want, nil
		})
	if _, err = e.wait(ctx, task, err); err != nil {
		return err
	}
	if _, here := e.gateway.allocated.LoadAndDelete(c.ID); here {
		c.Description = want
		c.Used = true
		e.gateway.claims.put(c)
		return nil
	}
	now, err := e.session.IPSpaces.FloatingIP(ctx, c.Space.ID, c.ID)
	if err != nil {
		return err
	}
	e.gateway.claims.put(claimOf(now, c.Space))
	return e.ownedBy(now.Description)
}

// remove releases an address that nothing uses. Its mark stays until it is gone, so that an interrupted release is
// found.
func (e *addressExecutor) remove(ctx context.Context) error {
	c, found, err := e.find(ctx)
	if err != nil || !found {
		return err
	}
	return remove(ctx, e.executor, e.gateway.claims, func() (vcd.Task, error) {
		task, err := e.session.IPSpaces.Mark(ctx, c.Space.ID, c.ID,
			func(now vcd.FloatingIP) (vcd.UsageState, string, error) {
				if now.Usage == vcd.Used {
					return "", "", failed(lb.ErrBusy, "something still uses the address")
				}
				return vcd.Unused, now.Description, nil
			})
		if task, err = e.wait(ctx, task, err); err != nil {
			return task, err
		}
		e.gateway.refusals.fill(c.Space.ID, false)
		return e.session.IPSpaces.Release(ctx, c.Space.ID, c.ID)
	})
}
