package edge

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// allocate asks an IP Space for one certain address, whose value is written down already where the marker will be taken from. If it
// is allocated already, that was us before the answer got lost, or somebody else: then its mark says so.
func (r *run) allocate(ctx context.Context) error {
	spec := r.step.Address
	space, err := r.space(ctx, spec.Space)
	if err != nil {
		return err
	}
	task, err := r.session.IPSpaces.Allocate(ctx, space.ID, spec.Value)
	task, err = r.wait(ctx, task, err)
	switch {
	case err == nil:
		r.allocated(vcd.AllocatedID(task, spec.Value), space)
		return nil
	case errors.Is(err, vcd.ErrQuota) && r.elsewhere(ctx, space.ID):
		return &failure{lb.ErrBusy, err} // the next plan takes another space
	case !is(err, []error{vcd.ErrInvalid, vcd.ErrConflict}):
		return err
	}
	return r.taken(ctx, err)
}

// allocated notes that the address of the step was allocated, whose id VCD may not tell.
func (r *run) allocated(id string, space vcd.Ref) {
	if id == "" {
		r.gateway.claims.invalidate()
		return
	}
	r.gateway.claims.put(claim{FloatingIP: vcd.FloatingIP{ID: id, Address: r.step.Address.Value, Usage: vcd.Unused}, space: space})
}

// taken finds out who has the address of the step, which VCD does not give. That it is ours is no error.
func (r *run) taken(ctx context.Context, err error) error {
	spec := r.step.Address
	claims, other := r.gateway.claims.get(ctx, r.session, r.fresh())
	if other != nil {
		return other
	}
	i := slices.IndexFunc(claims, func(c claim) bool { return c.Address == spec.Value })
	switch {
	case i < 0: // another organisation has it, which we cannot see
		r.gateway.refuse(spec.Value)
		return &failure{lb.ErrBusy, err}
	case r.foreign(claims[i].Description):
		return failed(lb.ErrBusy, "the address is somebody else's")
	}
	return nil
}

// elsewhere notes that the organisation may have no more addresses of an IP Space, and says whether there is another one to try.
func (r *run) elsewhere(ctx context.Context, space string) bool {
	f, err := r.gateway.fact(ctx, r.session)
	if err != nil || len(f.spaces) < 2 {
		return false
	}
	r.gateway.mu.Lock()
	defer r.gateway.mu.Unlock()
	r.gateway.full[space] = r.gateway.driver.opts.Clock.Now().Add(fullAge)
	return true
}

// isFull says whether the organisation may have no more addresses of an IP Space, as far as that was found out.
func (g *gateway) isFull(space string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.driver.opts.Clock.Now().Before(g.full[space])
}

// foreign says whether what is written of an allocated address names another owner than the step does.
func (r *run) foreign(description string) bool {
	m, ok := lb.ParseMarker(description)
	return ok && !m.Owner.Is(r.owner(r.step.Address.Description))
}

// refuse remembers for a while that an address cannot be had.
func (g *gateway) refuse(a netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused[a] = g.driver.opts.Clock.Now().Add(refusalAge)
}

func (r *run) space(ctx context.Context, to lb.Ref) (vcd.Ref, error) {
	f, err := r.gateway.fact(ctx, r.session)
	if err != nil {
		return vcd.Ref{}, err
	}
	for _, space := range f.spaces {
		if space.ID == to.ID || to.ID == "" && space.Name == to.Name {
			return space.Ref, nil
		}
	}
	return vcd.Ref{}, failed(lb.ErrRefused, "the edge gateway has no IP Space %s", to.Name)
}

// held finds the claim of the step, by its id or, just after it was allocated, by its value.
func (r *run) held(ctx context.Context) (claim, bool, error) {
	find := func(claims []claim) int {
		return slices.IndexFunc(claims, func(c claim) bool {
			return r.step.ID != "" && c.ID == r.step.ID || r.step.ID == "" && r.step.Address != nil && c.Address == r.step.Address.Value
		})
	}
	claims := r.gateway.claims.known()
	if i := find(claims); i >= 0 {
		return claims[i], true, nil
	}
	claims, err := r.gateway.claims.get(ctx, r.session, r.fresh())
	if err != nil {
		return claim{}, false, err
	}
	if i := find(claims); i >= 0 {
		return claims[i], true, nil
	}
	return claim{}, false, nil
}

// mark writes whose an address is. Two who believe that an address is theirs may do so at the same time: whose mark stands in the
// end has it.
func (r *run) mark(ctx context.Context) error {
	c, found, err := r.held(ctx)
	switch {
	case err != nil:
		return err
	case !found:
		return failed(lb.ErrBusy, "the address is not allocated any more")
	}
	spec := r.step.Address
	task, err := r.session.IPSpaces.Mark(ctx, c.space.ID, c.ID, func(now vcd.FloatingIP) (vcd.UsageState, string, error) {
		if now.Description != spec.Former && now.Description != spec.Description {
			return "", "", failed(lb.ErrBusy, "the address is somebody else's")
		}
		return vcd.UsedManual, spec.Description, nil
	})
	if _, err = r.wait(ctx, task, err); err != nil {
		return err
	}
	now, err := r.session.IPSpaces.FloatingIP(ctx, c.space.ID, c.ID)
	if err != nil {
		return err
	}
	r.gateway.claims.put(claim{FloatingIP: now, space: c.space})
	if r.foreign(now.Description) {
		return failed(lb.ErrBusy, "the address is somebody else's")
	}
	return nil
}

// releaseAddress gives an address back that nothing uses. Its mark stays until it is gone: whoever dies in between still finds it.
func (r *run) releaseAddress(ctx context.Context) error {
	c, found, err := r.held(ctx)
	if err != nil || !found {
		return err
	}
	return remove(ctx, r, r.gateway.claims, func() (vcd.Task, error) {
		task, err := r.session.IPSpaces.Mark(ctx, c.space.ID, c.ID, func(now vcd.FloatingIP) (vcd.UsageState, string, error) {
			if now.Usage == vcd.Used {
				return "", "", failed(lb.ErrBusy, "something still uses the address")
			}
			return vcd.Unused, now.Description, nil
		})
		if task, err = r.wait(ctx, task, err); err != nil {
			return task, err
		}
		r.gateway.mu.Lock()
		delete(r.gateway.full, c.space.ID) // there may be room again
		r.gateway.mu.Unlock()
		return r.session.IPSpaces.Release(ctx, c.space.ID, c.ID)
	})
}

func certificateName(c vcd.Certificate) named { return named{c.ID, c.Name, c.Description} }

func (r *run) importCertificate(ctx context.Context) error {
	spec := r.step.Certificate
	return create(ctx, r, creation[vcd.Certificate]{
		part: r.gateway.certificates, description: spec.Description, name: certificateName,
		start: func() (vcd.Task, error) {
			made, err := r.session.Balancers.CreateCertificate(ctx, vcd.CertificateSpec{
				Alias: r.step.Name, Description: spec.Description, Certificate: []byte(spec.Chain), PrivateKey: []byte(spec.Key),
			})
			return vcd.Task{State: vcd.TaskSucceeded, Owner: made.ID}, err
		},
		made: func(id string) vcd.Certificate {
			return vcd.Certificate{Ref: vcd.Ref{ID: id, Name: r.step.Name}, Description: spec.Description}
		},
	})
}

func (r *run) deleteCertificate(ctx context.Context) error {
	return remove(ctx, r, r.gateway.certificates, func() (vcd.Task, error) {
		return vcd.Task{State: vcd.TaskSucceeded}, r.session.Balancers.DeleteCertificate(ctx, r.step.ID)
	})
}

// fullAge is how long it is believed that an IP Space has no more addresses for the organisation, while there are others.
const fullAge = 10 * time.Minute

// refusalAge is how long a refusal is believed that somebody may take back.
const refusalAge = time.Hour
