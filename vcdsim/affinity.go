package vcdsim

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// An AffinityRule keeps VMs of a VDC on one host, or apart.
type AffinityRule struct {
	ID        string
	Name      string
	OrgID     string
	VDCID     string
	Enabled   bool
	Mandatory bool
	Polarity  string   // Affinity, Anti-Affinity
	VMs       []string // at least two, less when VMs were deleted since
}

// Polarities of affinity rules.
const (
	polarityTogether = "Affinity"
	polarityApart    = "Anti-Affinity"
)

func affinityRoutes(add addRoute) {
	add("GET", "/api/vdc/{id}/vmAffinityRules", (*request).listAffinityRules, latencyLegacy)
	add("POST", "/api/vdc/{id}/vmAffinityRules", (*request).createAffinityRule, latencyWrite)
	add("GET", "/api/vmAffinityRule/{id}", (*request).getAffinityRule, latencyLegacy)
	add("PUT", "/api/vmAffinityRule/{id}", (*request).putAffinityRule, latencyWrite)
	add("DELETE", "/api/vmAffinityRule/{id}", (*request).deleteAffinityRule, latencyWrite)
}

func (a *AffinityRule) entity() Entity { return Entity{Kind: "vmAffinityRule", ID: a.ID, Name: a.Name} }

func (a *AffinityRule) clone() AffinityRule {
	c := *a
	c.VMs = slices.Clone(a.VMs)
	return c
}

func (r *request) affinityRule() (*AffinityRule, error) {
	a := r.sim.store.affinity[bare(r.vars["id"])]
	if a == nil || !r.sees(a.OrgID) {
		return nil, forbidden("VAPP_VM_VIEW_AFFINITY_RULE", r.vars["id"])
	}
	return a, nil
}

func (r *request) affinityNode(a *AffinityRule, root bool) *xmltree.Node {
	n := xmltree.New("VmAffinityRule")
	if root {
		n.Add(namespaces())
	}
	path := "/api/vmAffinityRule/" + a.ID
	n.Add([]xmltree.Attr{
		xmltree.A("id", URN("vmAffinityRule", a.ID)), xmltree.A("href", r.base()+path), xmltree.A("type", mime("vmaffinityrule")),
	})
	refs := xmltree.New("VmReferences")
	for _, id := range a.VMs {
		if vm := r.sim.store.vms[id]; vm != nil {
			refs.Add(r.ref("VmReference", vm.entity()))
		}
	}
	n.Add([]*xmltree.Node{
		r.link("up", "/api/vdc/"+a.VDCID, mime("vdc")), r.link("edit", path, mime("vmaffinityrule")), r.link("remove", path, ""),
		xmltree.T("Name", a.Name), xmltree.T("IsEnabled", a.Enabled), xmltree.T("IsMandatory", a.Mandatory), xmltree.T("Polarity", a.Polarity), refs,
	})
	return n
}

func (r *request) listAffinityRules() (*response, error) {
	_, vdc, err := r.ownVDC()
	if err != nil {
		return nil, err
	}
	n := xmltree.New("VmAffinityRules", namespaces(), xmltree.A("href", r.href("vdc", vdc.ID)+"/vmAffinityRules/"),
		xmltree.A("type", mime("vmaffinityrules")), r.link("add", "/api/vdc/"+vdc.ID+"/vmAffinityRules/", mime("vmaffinityrule")))
	for _, a := range sorted(r.sim.store.affinity) {
		if a.VDCID == vdc.ID {
			n.Add(r.affinityNode(a, false))
		}
	}
	return xmlOK(n), nil
}

func (r *request) getAffinityRule() (*response, error) {
	a, err := r.affinityRule()
	if err != nil {
		return nil, err
	}
	return xmlOK(r.affinityNode(a, true)), nil
}

// readAffinity reads a rule into a.
func (r *request) readAffinity(a *AffinityRule) error {
	tree, err := r.tree()
	if err != nil {
		return err
	}
	a.Name, a.Polarity = tree.Str("Name"), tree.Str("Polarity")
	a.Enabled, a.Mandatory, a.VMs = tree.Bool("IsEnabled"), tree.Bool("IsMandatory"), nil
	if err := checkName("affinity rule", a.Name); err != nil {
		return err
	}
	if a.Polarity != polarityTogether && a.Polarity != polarityApart {
		return badRequest("The polarity %q is invalid.", a.Polarity)
	}
	for _, refs := range tree.All("VmReferences") {
		if err := r.readMembers(a, refs); err != nil {
			return err
		}
	}
	if len(a.VMs) < 2 {
		return badRequest("The affinity rule %q has fewer than two VMs.", a.Name)
	}
	return r.freeOfRules(a)
}

// readMembers adds the VMs of a list to a rule.
func (r *request) readMembers(a *AffinityRule, refs *xmltree.Node) error {
	for _, ref := range refs.All("VmReference") {
		vm, err := r.vmByID(bare(ref.Attr("href")))
		if err != nil || r.sim.store.vapps[vm.VAppID].VDCID != a.VDCID {
			return forbidden("VAPP_VM_EDIT_AFFINITY_RULE", bare(ref.Attr("href")))
		}
		if slices.Contains(a.VMs, vm.ID) {
			return badRequest("The VM %q is named twice.", vm.Name)
		}
		a.VMs = append(a.VMs, vm.ID)
	}
	return nil
}

// freeOfRules refuses VMs that are to be together by one rule and apart by another.
func (r *request) freeOfRules(a *AffinityRule) error {
	for _, o := range sorted(r.sim.store.affinity) {
		if o.ID == a.ID || !o.Enabled || !a.Enabled || o.Polarity == a.Polarity {
			continue
		}
		if shared(a.VMs, o.VMs) > 1 {
			return badRequest("The affinity rule %q conflicts with the rule %q.", a.Name, o.Name)
		}
	}
	return nil
}

// shared counts what two lists have in common.
func shared(a, b []string) int {
	n := 0
	for _, x := range a {
		if slices.Contains(b, x) {
			n++
		}
	}
	return n
}

func (r *request) createAffinityRule() (*response, error) {
	org, vdc, err := r.ownVDC()
	if err != nil {
		return nil, err
	}
	a := &AffinityRule{OrgID: org.ID, VDCID: vdc.ID}
	if err := r.readAffinity(a); err != nil {
		return nil, err
	}
	a.ID = r.sim.ids.next("vmAffinityRule")
	return r.startAffinity(opCreateAffinity, a, a), nil
}

func (r *request) startAffinity(op string, a, spec *AffinityRule) *response {
	return r.accepted(r.sim.startTask(r, Work{Op: op, Document: a.ID, Affinity: spec}, a.entity(), []string{a.ID}))
}

func (r *request) idleAffinity() (*AffinityRule, error) {
	a, err := r.affinityRule()
	if err != nil {
		return nil, err
	}
	return a, r.sim.busyCheck(a.ID)
}

func (r *request) putAffinityRule() (*response, error) {
	a, err := r.idleAffinity()
	if err != nil {
		return nil, err
	}
	spec := a.clone()
	if err := r.readAffinity(&spec); err != nil {
		return nil, err
	}
	return r.startAffinity(opUpdateAffinity, a, &spec), nil
}

func (r *request) deleteAffinityRule() (*response, error) {
	a, err := r.idleAffinity()
	if err != nil {
		return nil, err
	}
	return r.startAffinity(opDeleteAffinity, a, nil), nil
}

// commitAffinity makes a rule what it was asked to be, or takes it away.
func (s *Simulator) commitAffinity(t *Task) error {
	if t.Work.Op != opCreateAffinity && s.store.affinity[t.Work.Document] == nil {
		return gone("vmAffinityRule", t.Work.Document)
	}
	if t.Work.Affinity == nil {
		delete(s.store.affinity, t.Work.Document)
		return nil
	}
	rule := t.Work.Affinity.clone()
	s.store.affinity[rule.ID] = &rule
	return nil
}
