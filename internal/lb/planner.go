// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Make plans what leads from what is observed to what is desired. It is pure and total: any input gives a plan.
func Make(d Desired, o Observed, c Capabilities) Plan {
	p := newPlanner(d, o, c)
	if p.own.unread {
		p.need(FullPools)
	}
	if d.Absent {
		return removal{p}.absent()
	}
	validator{p}.validate()
	if p.blocked() {
		return p.result()
	}
	p.noteDoubtful()
	if p.noteStrays(); p.blocked() {
		return p.result()
	}
	for _, plan := range []func(){
		addressPlanner{p}.plan, listenerPlanner{p}.plan, poolPlanner{p}.planSet, certificatePlanner{p}.plan,
		(&enginePlanner{planner: p}).plan, servicePlanner{p}.plan, firewallPlanner{p}.plan,
	} {
		if plan(); len(p.out.Refusals) > 0 || p.needs&(Addresses|Forwardings|Hosts) != 0 {
			return p.result() // without an address the rest would be guessed
		}
	}
	if p.blocked() {
		return p.result()
	}
	removal{p}.leftovers()
	claimPlanner{p}.plan()
	return p.result()
}

// A phase is a group of steps; phases run in this order.
type phase int

const (
	phaseClaim    phase = iota // addresses are allocated and marked
	phasePrepare               // certificates, IP sets
	phasePool                  // pools are created and updated
	phaseFirewall              // the firewall drops what is not admitted, before anything can be reached
	phaseFree                  // what is in the way is removed
	phaseCreate                // virtual services are created
	phaseUpdate                // virtual services are updated
	phaseReplace               // virtual services are created on what the updates freed
	phaseForward               // port profiles and NAT rules
	phaseRemove                // what is not wanted any more
	phaseRelease               // addresses and IP sets that nothing uses
	phases
)

// A planner holds what all parts of one plan share: the input, what is decided so far, and the steps.
type planner struct {
	d Desired
	o Observed
	c Capabilities
	// all is everything of the owner; own is the part of it that no listener has taken.
	all, own inventory

	families []Family
	// internal is set if the load balancer is on an address inside the organization.
	internal bool
	// external is the address of each family that clients use; unused families have nothing of the owner on theirs yet.
	external map[Family]netip.Addr
	unused   map[Family]bool
	targets  []*target
	// group is the IP set of the members, and set the same if it exists; the zero value for members in each pool.
	group Ref
	set   Object

	needs Facts
	steps [phases][]Step
	out   Plan
}

// A target is a listener with its objects; those that do not exist are zero.
type target struct {
	listener Listener
	vips     []netip.Addr
	service  owned[VirtualService]
	pool     owned[Pool]
	rule     owned[Rule]
	profile  owned[Profile]
	// certificate and engine of the virtual service; replace is set if it is created anew rather than updated, and
	// move if it is, one after the other, because it shares its address and VCD does not let it have another one.
	certificate, engine Ref
	replace, move       bool
}

func newPlanner(d Desired, o Observed, c Capabilities) *planner {
	inv := takeInventory(d, o)
	return &planner{
		d:        d,
		o:        o,
		c:        c,
		all:      inv.clone(),
		own:      inv,
		external: map[Family]netip.Addr{},
		unused:   map[Family]bool{},
	}
}

// need reports whether facts are known, and asks for them if not.
func (p *planner) need(f Facts) bool {
	p.needs |= f &^ p.o.Known
	return p.o.Known.Has(f)
}

func (p *planner) refuse(reason, format string, args ...any) {
	p.out.Refusals = append(p.out.Refusals, Finding{reason, fmt.Sprintf(format, args...)})
}

func (p *planner) notice(reason, format string, args ...any) {
	p.out.Notices = append(p.out.Notices, Finding{reason, fmt.Sprintf(format, args...)})
}

func (p *planner) step(ph phase, s Step) { p.steps[ph] = append(p.steps[ph], s) }

func (p *planner) remove(ph phase, kind Kind, o Object) {
	p.step(ph, Step{Verb: Delete, Kind: kind, Name: o.Name, ID: o.ID})
}

func (p *planner) update(ph phase, o Object, s Step) {
	s.Verb = Update
	s.Name = o.Name
	s.ID = o.ID
	s.Repair = o.State == Failed
	p.step(ph, s)
}

func (p *planner) marker(t *target) Marker {
	return Marker{Owner: p.d.Owner, Listener: t.listener.Key()}
}

// nat reports whether virtual services are reached through DNAT rules.
func (p *planner) nat() bool { return p.d.OneArm != nil && !p.internal }

// blocked reports whether there cannot be any steps.
func (p *planner) blocked() bool { return len(p.out.Refusals) > 0 || p.needs != 0 }

// result returns the plan. Without steps if something is refused or not known.
func (p *planner) result() Plan {
	p.out.Notices = slices.Compact(p.out.Notices)
	switch {
	case len(p.out.Refusals) > 0:
		p.out.Intent = nil
	case p.needs != 0:
		return Plan{Needs: p.needs}
	default:
		p.out.Steps = slices.DeleteFunc(slices.Concat(p.steps[:]...), p.deferred)
	}
	statusPlanner{p}.plan()
	return p.out
}

// deferred reports whether a step is left until nothing of the owner is at other gateways.
func (p *planner) deferred(s Step) bool {
	return p.d.Elsewhere && s.Deferrable() && (s.Kind == KindAddress || !p.d.Unseen)
}

// noteDoubtful names objects that may be the owner's.
func (p *planner) noteDoubtful() {
	if len(p.own.doubtful) > 0 {
		slices.Sort(p.own.doubtful)
		p.notice(NotProvablyOurs, "objects that cloud provider interface 1.6.1 made for a Service of this name may "+
			"belong to one in another namespace, or in a cluster with a similar id, and are left alone: %s; "+
			"remove them in VCD if no Service needs them", listed(p.own.doubtful))
	}
}

// noteStrays names what the owner has under another id of its cluster. An owner that has nothing under this one
// gets nothing: a second load balancer would take another address, and the first would never be removed.
func (p *planner) noteStrays() {
	if len(p.o.Strays) == 0 {
		return
	}
	var names []string
	for _, s := range p.o.Strays {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	text := fmt.Sprintf("this Service has something under another id of the cluster, %q: %s", p.o.Strays[0].Cluster,
		listed(slices.Compact(names)))
	if !p.d.Absent && len(p.all.services)+len(p.all.pools) == 0 {
		p.refuse(OtherClusterID,
			"%s; give the cloud controller manager this id again, or remove that in VCD: then a load balancer is made",
			text)
		return
	}
	p.notice(OtherClusterID, "%s; remove that in VCD: nothing else does", text)
}

// listed shows the first of some names.
func listed(names []string) string {
	more := ""
	if n := len(names) - 4; n > 0 {
		names = names[:4]
		more = fmt.Sprintf(" and %d more", n)
	}
	return `"` + strings.Join(names, `", "`) + `"` + more
}
