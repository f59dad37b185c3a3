package lb

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Make plans what leads from what is there to what is wanted. It is pure and total: any input gives a plan.
func Make(d Desired, o Observed, c Capabilities) Plan {
	p := newPlanner(d, o, c)
	if p.own.unread {
		p.need(FullPools)
	}
	if d.Absent {
		return removal{p}.absent()
	}
	validator{p}.validate()
	if p.stuck() {
		return p.result()
	}
	p.noteDoubtful()
	if p.noteStrays(); p.stuck() {
		return p.result()
	}
	for _, plan := range []func(){
		addressPlanner{p}.decideScope, addressPlanner{p}.addresses, listenerPlanner{p}.match, listenerPlanner{p}.checkPorts,
		poolPlanner{p}.memberSet, certificatePlanner{p}.certificates, (&enginePlanner{planner: p}).engines,
		servicePlanner{p}.build, firewallPlanner{p}.rules,
	} {
		if plan(); len(p.plan.Refusals) > 0 || p.needs&(Addresses|Forwardings) != 0 {
			return p.result() // without an address the rest would be guessed
		}
	}
	if p.stuck() {
		return p.result()
	}
	removal{p}.leftovers()
	claimPlanner{p}.claims()
	claimPlanner{p}.intent()
	return p.result()
}

// A phase is a part of the plan. Their order is that of the steps.
type phase int

const (
	phaseClaim    phase = iota // addresses are allocated and marked
	phasePrepare               // certificates, IP sets
	phasePool                  // pools are made, or follow what is wanted
	phaseFirewall              // the firewall keeps away who may not come before anything can be reached
	phaseFree                  // what is in the way goes
	phaseCreate                // virtual services
	phaseSwitch                // virtual services follow
	phaseFollow                // virtual services on what was freed by the switch
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
	// own is what is the owner's and not yet taken by a listener; all is all of it.
	own, all inventory

	families []Family
	// inward says that the load balancer is on an address inside the organisation.
	internal bool
	// external is the address of each family that clients use.
	external map[Family]netip.Addr
	targets  []*target
	// group is the IP set of the members; the zero value for members in each pool.
	group Ref
	// set is that IP set, if it stands.
	set Object
	// fresh says of an address that nothing of the owner is on it yet.
	fresh map[Family]bool

	needs Facts
	steps [phases][]Step
	plan  Plan
}

func newPlanner(d Desired, o Observed, c Capabilities) *planner {
	p := &planner{d: d, o: o, c: c, own: takeInventory(d, o), external: map[Family]netip.Addr{}, fresh: map[Family]bool{}}
	p.all = p.own.clone()
	return p
}

// A target is what should stand for a listener, and what stands.
type target struct {
	listener Listener
	vips     []netip.Addr
	service  owned[VirtualService]
	pool     owned[Pool]
	rule     owned[Rule]
	profile  owned[Profile]
	// certificate and engine of the virtual service; anew says that it is made again rather than changed.
	certificate, engine Ref
	anew                bool
}

func (t *target) hasService() bool { return t.service.base.ID != "" }
func (t *target) hasPool() bool    { return t.pool.base.ID != "" }
func (t *target) hasRule() bool    { return t.rule.base.ID != "" }
func (t *target) hasProfile() bool { return t.profile.base.ID != "" }

// need says whether facts are known, and notes that they are needed if not.
func (p *planner) need(f Facts) bool {
	if p.o.Known.Has(f) {
		return true
	}
	p.needs |= f &^ p.o.Known
	return false
}

func (p *planner) refuse(reason, format string, args ...any) {
	p.plan.Refusals = append(p.plan.Refusals, Finding{reason, fmt.Sprintf(format, args...)})
}

func (p *planner) notice(reason, format string, args ...any) {
	p.plan.Notices = append(p.plan.Notices, Finding{reason, fmt.Sprintf(format, args...)})
}

func (p *planner) step(ph phase, s Step) { p.steps[ph] = append(p.steps[ph], s) }

func (p *planner) remove(ph phase, kind Kind, o Object) {
	p.step(ph, Step{Verb: Delete, Kind: kind, Name: o.Name, ID: o.ID})
}

// update lets an object follow what is wanted.
func (p *planner) update(ph phase, o Object, s Step) {
	s.Verb, s.Name, s.ID, s.Repair = Update, o.Name, o.ID, o.State == Failed
	p.step(ph, s)
}

func (p *planner) marker(t *target) Marker {
	return Marker{Owner: p.d.Owner, Listener: t.listener.Key()}
}

// stuck says that there is no going on.
func (p *planner) stuck() bool { return len(p.plan.Refusals) > 0 || p.needs != 0 }

// result puts the plan together. What is refused or lacks facts has no steps.
func (p *planner) result() Plan {
	p.plan.Notices = slices.Compact(p.plan.Notices)
	switch {
	case len(p.plan.Refusals) > 0:
		p.plan.Intent = nil
	case p.needs != 0:
		return Plan{Needs: p.needs}
	default:
		for _, steps := range p.steps {
			p.plan.Steps = append(p.plan.Steps, steps...)
		}
	}
	statusPlanner{p}.status()
	return p.plan
}

// nat says whether virtual services are reached through DNAT rules.
func (p *planner) nat() bool { return p.d.OneArm != nil && !p.internal }

func (h inventory) clone() inventory {
	h.services, h.pools = slices.Clone(h.services), slices.Clone(h.pools)
	h.rules, h.profiles = slices.Clone(h.rules), slices.Clone(h.profiles)
	h.firewall, h.certificates = slices.Clone(h.firewall), slices.Clone(h.certificates)
	return h
}

// doubts tells of objects that may be the owner's.
func (p *planner) noteDoubtful() {
	if len(p.own.doubtful) > 0 {
		slices.Sort(p.own.doubtful)
		p.notice(NotProvablyOurs, "objects that cloud provider interface 1.6.1 made for a Service of this name may belong to one in another namespace and are left alone: %s; "+
			"remove them in VCD if no Service needs them", listed(p.own.doubtful))
	}
}

// strays tells of what the owner has under another id of its cluster. Who has nothing under this one gets nothing: a second load balancer would take
// another address, and nobody would remove the first.
func (p *planner) noteStrays() {
	if len(p.o.Strays) == 0 {
		return
	}
	var names []string
	for _, s := range p.o.Strays {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	text := fmt.Sprintf("this Service has something under another id of the cluster, %q: %s", p.o.Strays[0].Cluster, listed(slices.Compact(names)))
	if !p.d.Absent && len(p.all.services)+len(p.all.pools) == 0 {
		p.refuse(OtherClusterID, "%s; give the cloud controller manager this id again, or remove that in VCD: then a load balancer is made", text)
		return
	}
	p.notice(OtherClusterID, "%s; remove that in VCD: nobody else does", text)
}

// listed shows the first of some names.
func listed(names []string) string {
	const shown = 4
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", quoted(names[:shown]), len(names)-shown)
	}
	return quoted(names)
}

func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }
