// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func affinityRoutes(add api.AddRoute) {
	add("GET", "/api/vdc/{id}/vmAffinityRules", api.With2(vdcs.OwnVDC, listAffinityRules), cloud.LatencyLegacy)
	add("POST", "/api/vdc/{id}/vmAffinityRules", api.With2(vdcs.OwnVDC, createAffinityRule), cloud.LatencyWrite)
	add("GET", "/api/vmAffinityRule/{id}", api.With(affinityRule, getAffinityRule), cloud.LatencyLegacy)
	add("PUT", "/api/vmAffinityRule/{id}", api.With(idleAffinity, putAffinityRule), cloud.LatencyWrite)
	add("DELETE", "/api/vmAffinityRule/{id}", api.With(idleAffinity, deleteAffinityRule), cloud.LatencyWrite)
}

func affinityRule(r *api.Request) (*store.AffinityRule, error) {
	a := r.Cloud.Store.Affinity[store.Bare(r.Vars["id"])]
	if a == nil || !r.Session.Sees(a.OrgID) {
		return nil, store.Forbidden("VAPP_VM_VIEW_AFFINITY_RULE", r.Vars["id"])
	}
	return a, nil
}

func affinityNode(site wire.Site, st *store.Store, a *store.AffinityRule, root bool) *xmltree.Node {
	n := wire.Element("VmAffinityRule", root)
	path := "/api/vmAffinityRule/" + a.ID
	n.Add([]xmltree.Attr{
		xmltree.A("id", a.ID), // without a URN prefix, unlike all other entities
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

func listAffinityRules(r *api.Request, _ *store.Org, vdc *store.VDC) (*api.Response, error) {
	n := xmltree.New("VmAffinityRules", wire.Namespaces(), xmltree.A("href", r.Site.Href("vdc", vdc.ID)+"/vmAffinityRules/"),
		xmltree.A("type", wire.Mime("vmaffinityrules")),
		r.Site.Link("add", "/api/vdc/"+vdc.ID+"/vmAffinityRules/", wire.Mime("vmaffinityrule")))
	for _, a := range store.Sorted(r.Cloud.Store.Affinity) {
		if a.VDCID == vdc.ID {
			n.Add(affinityNode(r.Site, r.Cloud.Store, a, false))
		}
	}
	return api.XML(n), nil
}

func getAffinityRule(r *api.Request, a *store.AffinityRule) (*api.Response, error) {
	return api.XML(affinityNode(r.Site, r.Cloud.Store, a, true)), nil
}

// readAffinity reads the rule in the request body into a and validates it.
func readAffinity(r *api.Request, a *store.AffinityRule) error {
	tree, err := r.Tree()
	if err != nil {
		return err
	}
	a.Name = tree.Str("Name")
	a.Polarity = tree.Str("Polarity")
	a.Enabled = tree.Bool("IsEnabled")
	a.Mandatory = tree.Bool("IsMandatory")
	a.VMs = nil
	if err := api.CheckName("affinity rule", a.Name); err != nil {
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
	return checkAffinityConflicts(r.Cloud.Store, a)
}

// readAffinityMembers adds the VMs of a VmReferences element to a rule.
func readAffinityMembers(r *api.Request, a *store.AffinityRule, refs *xmltree.Node) error {
	for _, ref := range refs.All("VmReference") {
		vm, err := vmByID(r, store.Bare(ref.Attr("href")))
		if err != nil || r.Cloud.Store.VApps[vm.VAppID].VDCID != a.VDCID {
			return store.Forbidden("VAPP_VM_EDIT_AFFINITY_RULE", store.Bare(ref.Attr("href")))
		}
		if slices.Contains(a.VMs, vm.ID) {
			return store.BadRequest("The VM %q is named twice.", vm.Name)
		}
		a.VMs = append(a.VMs, vm.ID)
	}
	return nil
}

// checkAffinityConflicts refuses a rule that contradicts another enabled rule: one keeps two VMs together, the other
// keeps them apart. It also refuses a VM that is already in a rule of the same polarity. According to VMware's
// programming guide, a VM can be in at most one rule of each polarity.
func checkAffinityConflicts(st *store.Store, a *store.AffinityRule) error {
	for _, o := range store.Sorted(st.Affinity) {
		if o.ID != a.ID && o.Polarity == a.Polarity && machines.Shared(a.VMs, o.VMs) > 0 {
			return store.BadRequest("A VM of the affinity rule %q is in the rule %q already.", a.Name, o.Name)
		}
		if o.ID == a.ID || !o.Enabled || !a.Enabled || o.Polarity == a.Polarity {
			continue
		}
		if machines.Shared(a.VMs, o.VMs) > 1 {
			return store.BadRequest("The affinity rule %q conflicts with the rule %q.", a.Name, o.Name)
		}
	}
	return nil
}

func createAffinityRule(r *api.Request, org *store.Org, vdc *store.VDC) (*api.Response, error) {
	a := &store.AffinityRule{OrgID: org.ID, VDCID: vdc.ID}
	if err := readAffinity(r, a); err != nil {
		return nil, err
	}
	a.ID = r.Cloud.IDs.Next("vmAffinityRule")
	return startAffinity(r, cloud.OpCreateAffinity, a, a), nil
}

func startAffinity(r *api.Request, op string, a, spec *store.AffinityRule) *api.Response {
	return r.Start(store.Work{Op: op, Document: a.ID, Affinity: spec}, a.Entity(), []string{a.ID})
}

func idleAffinity(r *api.Request) (*store.AffinityRule, error) {
	a, err := affinityRule(r)
	if err != nil {
		return nil, err
	}
	return a, r.Cloud.Tasks.CheckIdle(a.ID)
}

func putAffinityRule(r *api.Request, a *store.AffinityRule) (*api.Response, error) {
	spec := a.Clone()
	if err := readAffinity(r, &spec); err != nil {
		return nil, err
	}
	return startAffinity(r, cloud.OpUpdateAffinity, a, &spec), nil
}

func deleteAffinityRule(r *api.Request, a *store.AffinityRule) (*api.Response, error) {
	return startAffinity(r, cloud.OpDeleteAffinity, a, nil), nil
}
