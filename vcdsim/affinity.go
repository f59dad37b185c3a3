// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func affinityRoutes(add addRoute) {
	add("GET", "/api/vdc/{id}/vmAffinityRules", with2(ownVDC, listAffinityRules), latencyLegacy)
	add("POST", "/api/vdc/{id}/vmAffinityRules", with2(ownVDC, createAffinityRule), latencyWrite)
	add("GET", "/api/vmAffinityRule/{id}", with(affinityRule, getAffinityRule), latencyLegacy)
	add("PUT", "/api/vmAffinityRule/{id}", with(idleAffinity, putAffinityRule), latencyWrite)
	add("DELETE", "/api/vmAffinityRule/{id}", with(idleAffinity, deleteAffinityRule), latencyWrite)
}

func affinityRule(r *request) (*store.AffinityRule, error) {
	a := r.cloud.store.Affinity[store.Bare(r.vars["id"])]
	if a == nil || !r.session.Sees(a.OrgID) {
		return nil, store.Forbidden("VAPP_VM_VIEW_AFFINITY_RULE", r.vars["id"])
	}
	return a, nil
}

func affinityNode(site wire.Site, st *store.Store, a *store.AffinityRule, root bool) *xmltree.Node {
	n := wire.Element("VmAffinityRule", root)
	path := "/api/vmAffinityRule/" + a.ID
	n.Add([]xmltree.Attr{
		xmltree.A("id", store.URN("vmAffinityRule", a.ID)),
		xmltree.A("href", site.Base()+path),
		xmltree.A("type", wire.Mime("vmaffinityrule")),
	})
	refs := xmltree.New("VmReferences")
	for _, id := range a.VMs {
		if vm := st.VMs[id]; vm != nil {
			refs.Add(site.Ref("VmReference", vm.Entity()))
		}
	}
	n.Add([]*xmltree.Node{
		site.Link("up", "/api/vdc/"+a.VDCID, wire.Mime("vdc")),
		site.Link("edit", path, wire.Mime("vmaffinityrule")),
		site.Link("remove", path, ""),
		xmltree.T("Name", a.Name),
		xmltree.T("IsEnabled", a.Enabled),
		xmltree.T("IsMandatory", a.Mandatory),
		xmltree.T("Polarity", a.Polarity),
		xmltree.T("Scope", "Host"),
		refs,
	})
	return n
}

func listAffinityRules(r *request, _ *store.Org, vdc *store.VDC) (*response, error) {
	n := xmltree.New("VmAffinityRules", wire.Namespaces(), xmltree.A("href", r.site.Href("vdc", vdc.ID)+"/vmAffinityRules/"),
		xmltree.A("type", wire.Mime("vmaffinityrules")),
		r.site.Link("add", "/api/vdc/"+vdc.ID+"/vmAffinityRules/", wire.Mime("vmaffinityrule")))
	for _, a := range store.Sorted(r.cloud.store.Affinity) {
		if a.VDCID == vdc.ID {
			n.Add(affinityNode(r.site, r.cloud.store, a, false))
		}
	}
	return xmlOK(n), nil
}

func getAffinityRule(r *request, a *store.AffinityRule) (*response, error) {
	return xmlOK(affinityNode(r.site, r.cloud.store, a, true)), nil
}

// readAffinity reads a rule into a.
func readAffinity(r *request, a *store.AffinityRule) error {
	tree, err := r.tree()
	if err != nil {
		return err
	}
	a.Name = tree.Str("Name")
	a.Polarity = tree.Str("Polarity")
	a.Enabled = tree.Bool("IsEnabled")
	a.Mandatory = tree.Bool("IsMandatory")
	a.VMs = nil
	if err := checkName("affinity rule", a.Name); err != nil {
		return err
	}
	if a.Polarity != store.PolarityTogether && a.Polarity != store.PolarityApart {
		return store.BadRequest("The polarity %q is invalid.", a.Polarity)
	}
	for _, refs := range tree.All("VmReferences") {
		if err := readAffinityMembers(r, a, refs); err != nil {
			return err
		}
	}
	if len(a.VMs) < 2 {
		return store.BadRequest("The affinity rule %q has fewer than two VMs.", a.Name)
	}
	return vmsFreeOfAffinity(r.cloud.store, a)
}

// readAffinityMembers adds the VMs of a list to a rule.
func readAffinityMembers(r *request, a *store.AffinityRule, refs *xmltree.Node) error {
	for _, ref := range refs.All("VmReference") {
		vm, err := vmByID(r, store.Bare(ref.Attr("href")))
		if err != nil || r.cloud.store.VApps[vm.VAppID].VDCID != a.VDCID {
			return store.Forbidden("VAPP_VM_EDIT_AFFINITY_RULE", store.Bare(ref.Attr("href")))
		}
		if slices.Contains(a.VMs, vm.ID) {
			return store.BadRequest("The VM %q is named twice.", vm.Name)
		}
		a.VMs = append(a.VMs, vm.ID)
	}
	return nil
}

// vmsFreeOfAffinity refuses VMs that one rule keeps together and another apart, and those that are in a rule of the
// same polarity: VMware's programming guide says that a VM is in one of each at most.
func vmsFreeOfAffinity(st *store.Store, a *store.AffinityRule) error {
	for _, o := range store.Sorted(st.Affinity) {
		if o.ID != a.ID && o.Polarity == a.Polarity && shared(a.VMs, o.VMs) > 0 {
			return store.BadRequest("A VM of the affinity rule %q is in the rule %q already.", a.Name, o.Name)
		}
		if o.ID == a.ID || !o.Enabled || !a.Enabled || o.Polarity == a.Polarity {
			continue
		}
		if shared(a.VMs, o.VMs) > 1 {
			return store.BadRequest("The affinity rule %q conflicts with the rule %q.", a.Name, o.Name)
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

// codePlacement is the code of a VM that no host can run.
const codePlacement = "NO_FEASIBLE_PLACEMENT_SOLUTION"

// hostFor refuses to start a VM that a mandatory rule keeps apart from as many running VMs as the VDC has hosts.
func (m vms) hostFor(vm *store.VM) error {
	v := m.cloud.store.VApps[vm.VAppID]
	if v == nil {
		return nil
	}
	_, vdc := m.cloud.store.VDC(v.VDCID)
	if vdc == nil || vdc.Hosts == 0 {
		return nil
	}
	for _, a := range store.Sorted(m.cloud.store.Affinity) {
		if a.MustSeparate(vm.ID) && m.running(a.VMs, vm.ID) >= vdc.Hosts {
			return store.Refuse(http.StatusInternalServerError, codePlacement,
				"There is no feasible placement for VM %q: it would violate the anti-affinity rule %q.", vm.Name,
				a.Name)
		}
	}
	return nil
}

// running counts the VMs of a list that run, but for one.
func (m vms) running(ids []string, except string) int {
	n := 0
	for _, id := range ids {
		if other := m.cloud.store.VMs[id]; other != nil && id != except && other.Status == store.PoweredOn {
			n++
		}
	}
	return n
}

func createAffinityRule(r *request, org *store.Org, vdc *store.VDC) (*response, error) {
	a := &store.AffinityRule{OrgID: org.ID, VDCID: vdc.ID}
	if err := readAffinity(r, a); err != nil {
		return nil, err
	}
	a.ID = r.cloud.ids.Next("vmAffinityRule")
	return startAffinity(r, opCreateAffinity, a, a), nil
}

func startAffinity(r *request, op string, a, spec *store.AffinityRule) *response {
	return r.start(store.Work{Op: op, Document: a.ID, Affinity: spec}, a.Entity(), []string{a.ID})
}

func idleAffinity(r *request) (*store.AffinityRule, error) {
	a, err := affinityRule(r)
	if err != nil {
		return nil, err
	}
	return a, r.cloud.tasks.checkIdle(a.ID)
}

func putAffinityRule(r *request, a *store.AffinityRule) (*response, error) {
	spec := a.Clone()
	if err := readAffinity(r, &spec); err != nil {
		return nil, err
	}
	return startAffinity(r, opUpdateAffinity, a, &spec), nil
}

func deleteAffinityRule(r *request, a *store.AffinityRule) (*response, error) {
	return startAffinity(r, opDeleteAffinity, a, nil), nil
}

// commitAffinity creates, changes or removes a rule.
func commitAffinity(s *cloud, t *store.Task) error {
	if t.Work.Op != opCreateAffinity && s.store.Affinity[t.Work.Document] == nil {
		return gone("vmAffinityRule", t.Work.Document)
	}
	if t.Work.Affinity == nil {
		delete(s.store.Affinity, t.Work.Document)
		return nil
	}
	rule := t.Work.Affinity.Clone()
	s.store.Affinity[rule.ID] = &rule
	return nil
}

// AffinityRules returns all rules, to be changed.
func (e *Editor) AffinityRules() []*store.AffinityRule { return store.Sorted(e.cloud.store.Affinity) }

// DeleteAffinityRules removes all rules.
func (e *Editor) DeleteAffinityRules() { clear(e.cloud.store.Affinity) }

// AddAffinityRule makes a rule that keeps VMs of one vApp, or several of a VDC, apart.
func (e *Editor) AddAffinityRule(name string, vms ...*store.VM) {
	vapp := e.cloud.store.VApps[vms[0].VAppID]
	rule := &store.AffinityRule{
		ID:       e.cloud.ids.Next("vmAffinityRule"),
		Name:     name,
		OrgID:    vapp.OrgID,
		VDCID:    vapp.VDCID,
		Enabled:  true,
		Polarity: store.PolarityApart,
	}
	for _, vm := range vms {
		rule.VMs = append(rule.VMs, vm.ID)
	}
	e.cloud.store.Affinity[rule.ID] = rule
}
