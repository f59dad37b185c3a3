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
	// refusalAge is how long a refusal is believed that can be lifted any time.
	refusalAge = time.Hour
	// fullAge is how long an IP Space is believed to have no more addresses for the organization, while there are
	// others.
	fullAge = 10 * time.Minute
	// maxFree is how many free addresses of a space are offered.
	maxFree = 16
)

// refusals are what VCD has refused and lists do not show, each until it is tried again.
type refusals struct {
	clock vcd.Clock

	mu        sync.Mutex
	noSets    time.Time                // IP sets are forbidden
	noMoves   time.Time                // virtual services keep the address that they share
	addresses map[netip.Addr]time.Time // floating IPs that other organizations have
	full      map[string]time.Time     // IP Spaces, by id, of which the organization may have no more
	// foreign are owners that were refused an address, by the id of the claim that others had made of it.
	foreign map[string][]loadbalancer.Owner
}

func newRefusals(clock vcd.Clock) refusals {
	return refusals{
		clock:     clock,
		addresses: map[netip.Addr]time.Time{},
		full:      map[string]time.Time{},
		foreign:   map[string][]loadbalancer.Owner{},
	}
}

func (r *refusals) forbidSets() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noSets = r.clock.Now().Add(refusalAge)
}

func (r *refusals) setsAllowed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Now().After(r.noSets)
}

func (r *refusals) forbidMoves() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noMoves = r.clock.Now().Add(refusalAge)
}

func (r *refusals) movesAllowed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Now().After(r.noMoves)
}

func (r *refusals) refuse(a netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addresses[a] = r.clock.Now().Add(refusalAge)
}

// disown notes that a claim is not an owner's, though its address is stored as intended.
func (r *refusals) disown(owner loadbalancer.Owner, claim string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.foreign[claim] = append(r.foreign[claim], owner)
}

// notOurs returns the ids of the given claims that are known not to be an owner's, and forgets all others.
func (r *refusals) notOurs(owner loadbalancer.Owner, claims []lb.Claim) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.foreign, func(id string, _ []loadbalancer.Owner) bool {
		return !slices.ContainsFunc(claims, func(c lb.Claim) bool { return c.ID == id })
	})
	var out []string
	for claim, owners := range r.foreign {
		if slices.ContainsFunc(owners, owner.Is) {
			out = append(out, claim)
		}
	}
	return out
}

// fill notes that the organization may have no more addresses of a space, or that it may again.
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

// taken are the floating IPs that other organizations are known to have.
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

// free offers addresses of a space that are not allocated as far as the organization can see. It cannot see those
// of others: once one was found taken, the search begins at random. Of the family of a valid subnet only addresses in
// that are offered.
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

// freeIn offers addresses of a range.
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

// randomIn is an address of a range, among its first 65,536.
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
	// firstPause is how long an object that VCD failed to realize is left alone after it was written again; the
	// pause doubles each time, up to longestPause. The first ones are short: a cluster's IP set that fails twice in
	// a row holds up all load balancers.
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
	until time.Time // it is left alone
	pause time.Duration
}

func newRepairs(clock vcd.Clock) repairs { return repairs{clock: clock, byID: map[string]repair{}} }

// begin notes that an object is written again.
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

// judge turns Failed into Broken for an object that was written again just now, and forgets one that has stayed
// realized.
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
