// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// refusalAge is how long a refusal is cached that can be lifted at any time.
	refusalAge = time.Hour
	// fullAge is how long an IP Space counts as exhausted for the organization, if there are other IP Spaces.
	fullAge = 10 * time.Minute
	// foreignAge is how long the fact that an address does not belong to an owner is kept after the last plan for the
	// owner.
	foreignAge = 24 * time.Hour
	// maxFree is the maximum number of free addresses of a space that are offered.
	maxFree = 16
)

// refusals are the refusals of VCD that lists do not show, each with the time of the next attempt.
type refusals struct {
	clock vcd.Clock

	mu                  sync.Mutex
	setsForbiddenUntil  time.Time                // IP sets are forbidden
	movesForbiddenUntil time.Time                // virtual services cannot change a shared address
	addresses           map[netip.Addr]time.Time // floating IPs of other organizations
	full                map[string]time.Time     // IP Spaces, by ID, with an exhausted quota
	// foreign are the owners that were refused an address because it belongs to others.
	foreign map[netip.Addr][]foreigner
}

// A foreigner is an owner that has not allocated an address, although it may be recorded as intended.
type foreigner struct {
	owner loadbalancer.Owner
	until time.Time // extended by each plan for the owner
}

func newRefusals(clock vcd.Clock) refusals {
	return refusals{
		clock:     clock,
		addresses: map[netip.Addr]time.Time{},
		full:      map[string]time.Time{},
		foreign:   map[netip.Addr][]foreigner{},
	}
}

func (r *refusals) forbidSets() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setsForbiddenUntil = r.clock.Now().Add(refusalAge)
}

func (r *refusals) setsAllowed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Now().After(r.setsForbiddenUntil)
}

func (r *refusals) forbidMoves() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.movesForbiddenUntil = r.clock.Now().Add(refusalAge)
}

func (r *refusals) movesAllowed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Now().After(r.movesForbiddenUntil)
}

func (r *refusals) refuse(a netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addresses[a] = r.clock.Now().Add(refusalAge)
}

// disown records that an address does not belong to an owner, although it may be recorded as intended. The entry
// remains until the owner tries to allocate the address again, because the actual owner may change.
func (r *refusals) disown(owner loadbalancer.Owner, a netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(owner, a)
	r.foreign[a] = append(r.foreign[a], foreigner{owner, r.clock.Now().Add(foreignAge)})
}

// try records that an owner is about to allocate an address, and reports whether the address was disowned before.
func (r *refusals) try(owner loadbalancer.Owner, a netip.Addr) (disowned bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forget(owner, a)
}

func (r *refusals) forget(owner loadbalancer.Owner, a netip.Addr) (known bool) {
	before := len(r.foreign[a])
	r.foreign[a] = slices.DeleteFunc(r.foreign[a], func(f foreigner) bool { return f.owner.Is(owner) })
	known = len(r.foreign[a]) < before
	if len(r.foreign[a]) == 0 {
		delete(r.foreign, a)
	}
	return known
}

// disowned returns the IDs of those claims that are known not to belong to an owner.
func (r *refusals) disowned(owner loadbalancer.Owner, claims []lb.Claim) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	var out []string
	for a, all := range r.foreign {
		for i := range all {
			if all[i].owner.Is(owner) {
				all[i].until = now.Add(foreignAge)
				out = append(out, idsOn(claims, a)...)
			}
		}
		r.foreign[a] = slices.DeleteFunc(all, func(f foreigner) bool { return now.After(f.until) })
	}
	maps.DeleteFunc(r.foreign, func(_ netip.Addr, all []foreigner) bool { return len(all) == 0 })
	return out
}

// idsOn returns the IDs of the claims of an address.
func idsOn(claims []lb.Claim, a netip.Addr) []string {
	var out []string
	for _, c := range claims {
		if c.Value == a {
			out = append(out, c.ID)
		}
	}
	return out
}

// fill records whether the quota of the organization in a space is exhausted.
func (r *refusals) fill(space string, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.full, space)
	if full {
		r.full[space] = r.clock.Now().Add(fullAge)
	}
}

func (r *refusals) isFull(space string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Now().Before(r.full[space])
}

// taken returns the floating IPs that are known to belong to other organizations.
func (r *refusals) taken() []loadbalancer.Use {
	r.mu.Lock()
	defer r.mu.Unlock()
	var uses []loadbalancer.Use
	for a, until := range r.addresses {
		if r.clock.Now().Before(until) {
			uses = append(uses, loadbalancer.Use{Address: a, Kind: lb.KindAddress, Name: "another organization"})
		} else {
			delete(r.addresses, a)
		}
	}
	return uses
}

// free returns addresses of a space that appear unallocated. Allocations of other organizations are not visible, so
// once an address was found taken, the search starts at a random address. in restricts addresses of its family, if it
// is valid.
func (r *refusals) free(space vcd.IPSpace, claims []lb.Claim, in netip.Prefix) []netip.Addr {
	if r.isFull(space.ID) {
		return nil
	}
	taken := map[netip.Addr]bool{}
	for _, c := range claims {
		taken[c.Value] = true
	}
	others := r.taken()
	for _, u := range others {
		taken[u.Address] = true
	}
	var out []netip.Addr
	for _, of := range space.Ranges {
		part := lb.Range{First: of.From, Last: of.To}.Within(in)
		out = append(out, freeIn(vcd.AddressRange{From: part.First, To: part.Last}, taken, len(others) > 0)...)
		if len(out) >= maxFree {
			return out[:maxFree]
		}
	}
	return out
}

// freeIn returns free addresses of a range.
func freeIn(r vcd.AddressRange, taken map[netip.Addr]bool, atRandom bool) []netip.Addr {
	var out []netip.Addr
	start := r.From
	if atRandom {
		start = randomIn(r)
	}
	for a := start; r.Contains(a) && len(out) < maxFree; a = a.Next() {
		if !taken[a] {
			out = append(out, a)
		}
	}
	for a := r.From; a.Less(start) && len(out) < maxFree; a = a.Next() {
		if !taken[a] {
			out = append(out, a)
		}
	}
	return out
}

// randomIn returns a random address of a range, among its first 65,536 addresses.
func randomIn(r vcd.AddressRange) netip.Addr {
	from := r.From.As16()
	to := r.To.As16()
	low := binary.BigEndian.Uint64(from[8:])
	size := min(binary.BigEndian.Uint64(to[8:])-low, 1<<16-1) + 1
	binary.BigEndian.PutUint64(from[8:], low+rand.Uint64N(size)) //nolint:gosec // spreads load, protects nothing
	a := netip.AddrFrom16(from)
	if r.From.Is4() {
		a = a.Unmap()
	}
	if !r.Contains(a) {
		return r.From
	}
	return a
}

const (
	// firstPause is how long an object that VCD failed to realize is not written after another attempt. The pause
	// doubles each time, up to longestPause. It starts short, because a cluster's IP set that fails twice in a row
	// blocks all load balancers.
	firstPause   = 5 * time.Second
	longestPause = 30 * time.Minute
)

// repairs are backoffs of objects that VCD failed to realize and that were written again.
type repairs struct {
	clock vcd.Clock

	mu   sync.Mutex
	byID map[string]repair
}

type repair struct {
	until time.Time // it is not written before
	pause time.Duration
}

func newRepairs(clock vcd.Clock) repairs { return repairs{clock: clock, byID: map[string]repair{}} }

// begin records that an object is written again.
func (r *repairs) begin(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := min(max(2*r.byID[id].pause, firstPause), longestPause)
	r.byID[id] = repair{r.clock.Now().Add(pause), pause}
}

func (r *repairs) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// judge changes Failed to Broken for an object that was recently written again, and drops the backoff of an object that
// stayed realized.
func (r *repairs) judge(o *lb.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, tried := r.byID[o.ID]
	switch early := r.clock.Now().Before(last.until); {
	case !tried:
	case o.State == lb.Failed && early:
		o.State = lb.Broken
	case o.State == lb.Realized && !early:
		delete(r.byID, o.ID)
	}
}
