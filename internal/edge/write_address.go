// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// allocateAddress allocates a specific address of an IP Space. The caller must have recorded the address for the owner
// in the marker. If the address is already allocated, its marker shows whether a previous run or another owner
// allocated it. Without a marker, it was a previous run only if the address was recorded before.
func allocateAddress(ctx context.Context, w writer, step lb.Step) error {
	want := step.Address
	f, err := w.gateway.fact(ctx, w.session)
	if err != nil {
		return err
	}
	space, err := findSpace(f.spaces, want.Space)
	if err != nil {
		return err
	}
	m, _ := lb.ParseMarker(want.Description)
	disowned := w.gateway.refusals.try(m.Owner, want.Value)
	task, err := w.session.IPSpaces.Allocate(ctx, space.ID, want.Value)
	task, err = w.wait(ctx, task, err)
	switch {
	case err == nil:
		noteAllocated(w.gateway, lb.Claim{
			ID:    vcd.AllocatedID(task, want.Value),
			Value: want.Value,
			Space: space,
		})
		return nil
	case errors.Is(err, vcd.ErrQuota) && hasOtherAddresses(ctx, w):
		w.gateway.refusals.fill(space.ID, true)
		return &failure{loadbalancer.ErrBusy, err} // the next plan uses another space, or omits a family that is optional
	case !is(err, []error{vcd.ErrInvalid, vcd.ErrConflict}):
		return err
	}
	return takenAddress(ctx, w, takenStep{
		address: want,
		owner:   m.Owner,
		stored:  step.Stored && !disowned,
	}, err)
}

// A takenStep is a step that VCD refused because its address is allocated.
type takenStep struct {
	address *lb.Claim
	owner   loadbalancer.Owner
	stored  bool // a previous run of the step may have allocated it
}

// findSpace finds the IP Space that a step refers to.
func findSpace(spaces []vcd.IPSpace, to lb.Ref) (lb.Ref, error) {
	for _, space := range spaces {
		if space.ID == to.ID || to.ID == "" && space.Name == to.Name {
			return ref(space.Ref), nil
		}
	}
	return lb.Ref{}, failed(loadbalancer.ErrRefused, "the edge gateway has no IP Space %s", to.Name)
}

// noteAllocated caches a new claim. Its ID is empty if VCD does not show it.
func noteAllocated(g *gateway, c lb.Claim) {
	if c.ID == "" {
		g.claims.invalidate()
		return
	}
	g.allocated.Store(c.ID, true)
	g.claims.put(c)
}

// hasOtherAddresses reports whether the gateway has addresses in another IP Space or outside IP Spaces.
func hasOtherAddresses(ctx context.Context, w writer) bool {
	f, err := w.gateway.fact(ctx, w.session)
	return err == nil && (len(f.spaces) > 1 || f.hasPlainUplink())
}

// takenAddress determines who owns the allocated address of a step. It returns nil if the owner of the step does.
func takenAddress(ctx context.Context, w writer, step takenStep, refusal error) error {
	claims, err := w.gateway.claims.get(ctx, w.session, w.fresh())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(claims, func(c lb.Claim) bool { return c.Value == step.address.Value })
	if i < 0 { // another organization, whose claims are not visible, or another program
		w.gateway.refusals.refuse(step.address.Value)
		w.gateway.refusals.disown(step.owner, step.address.Value)
		return &failure{loadbalancer.ErrBusy, refusal}
	}
	if claims[i].Description == "" && !step.stored {
		w.gateway.refusals.disown(step.owner, step.address.Value)
		return failed(loadbalancer.ErrBusy, "another client allocated the address in the meantime")
	}
	return ownedBy(claims[i].Description, step.address.Description)
}

// ownedBy returns an error if the description of an allocated address names another owner than the desired one.
func ownedBy(description, want string) error {
	if _, marked := lb.ParseMarker(description); marked && !sameOwner(description, want) {
		return failed(loadbalancer.ErrBusy, "the address belongs to another owner")
	}
	return nil
}

// markAddress writes the description of an address. Two owners that consider an unmarked address theirs may do so at
// the same time: the last marker counts. No other owner considers an address that this process allocated.
func markAddress(ctx context.Context, w writer, step lb.Step) error {
	c, found, err := findClaim(ctx, w, step)
	switch {
	case err != nil:
		return err
	case !found:
		return failed(loadbalancer.ErrBusy, "the address is no longer allocated")
	}
	former := step.FormerDescription
	want := step.Address.Description
	task, err := w.session.IPSpaces.Mark(ctx, c.Space.ID, c.ID,
		func(now vcd.FloatingIP) (vcd.UsageState, string, error) {
			if now.Description != former && now.Description != want {
				return "", "", failed(loadbalancer.ErrBusy, "the address belongs to another owner")
			}
			return vcd.UsedManual, want, nil
		})
	if _, err = w.wait(ctx, task, err); err != nil {
		return err
	}
	if _, here := w.gateway.allocated.LoadAndDelete(c.ID); here {
		c.Description = want
		c.Used = true
		w.gateway.claims.put(c)
		return nil
	}
	now, err := w.session.IPSpaces.FloatingIP(ctx, c.Space.ID, c.ID)
	if err != nil {
		return err
	}
	w.gateway.claims.put(claimOf(now, c.Space))
	return ownedBy(now.Description, want)
}

// releaseAddress releases an address that nothing uses. The marker remains until the address is released, so that an
// interrupted release is found. Afterwards, the address may belong to others, although it may still be recorded as
// intended.
func releaseAddress(ctx context.Context, w writer, step lb.Step) error {
	c, found, err := findClaim(ctx, w, step)
	if err != nil || !found {
		return err
	}
	err = remove(ctx, w, w.gateway.claims, step.ID, func() (vcd.Task, error) {
		task, err := w.session.IPSpaces.Mark(ctx, c.Space.ID, c.ID,
			func(now vcd.FloatingIP) (vcd.UsageState, string, error) {
				if now.Usage == vcd.Used {
					return "", "", failed(loadbalancer.ErrBusy, "the address is still in use")
				}
				return vcd.Unused, now.Description, nil
			})
		if task, err = w.wait(ctx, task, err); err != nil {
			return task, err
		}
		w.gateway.refusals.fill(c.Space.ID, false)
		return w.session.IPSpaces.Release(ctx, c.Space.ID, c.ID)
	})
	if m, marked := lb.ParseMarker(c.Description); err == nil && marked {
		w.gateway.refusals.disown(m.Owner, c.Value)
	}
	return err
}

// findClaim finds the claim of a step by its ID or, right after the allocation, by its value.
func findClaim(ctx context.Context, w writer, step lb.Step) (c lb.Claim, found bool, err error) {
	match := func(c lb.Claim) bool {
		if step.ID != "" {
			return c.ID == step.ID
		}
		return step.Address != nil && c.Value == step.Address.Value
	}
	claims := w.gateway.claims.known()
	if i := slices.IndexFunc(claims, match); i >= 0 {
		return claims[i], true, nil
	}
	claims, err = w.gateway.claims.get(ctx, w.session, w.fresh())
	if err != nil {
		return lb.Claim{}, false, err
	}
	if i := slices.IndexFunc(claims, match); i >= 0 {
		return claims[i], true, nil
	}
	return lb.Claim{}, false, nil
}
