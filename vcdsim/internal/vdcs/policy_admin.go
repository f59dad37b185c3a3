// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const policyReferences = "application/vnd.vmware.vcloud.vdcComputePolicyReferences+xml"

func policyAdminRoutes(add api.AddRoute) {
	for _, v := range []string{"1.0.0", "2.0.0"} {
		add("POST", "/cloudapi/"+v+"/vdcComputePolicies", createPolicy, cloud.LatencyWrite)
		add("PUT", "/cloudapi/"+v+"/vdcComputePolicies/{id}", api.With(writablePolicy, putPolicy), cloud.LatencyWrite)
		add("DELETE", "/cloudapi/"+v+"/vdcComputePolicies/{id}", api.WithCloud(writablePolicy, deletePolicy), cloud.LatencyWrite)
	}
	add("PUT", "/api/admin/vdc/{id}/computePolicies", assignPolicies, cloud.LatencyWrite)
}

// readPolicy applies a policy document. Fields that have no effect in the simulator are stored unchanged.
func readPolicy(p *store.ComputePolicy, body map[string]any) error {
	if store.Text(body, "name") == "" {
		return store.BadRequest("A compute policy needs a name.")
	}
	number := func(field string) int64 {
		f, _ := body[field].(float64)
		return int64(f)
	}
	groups, _ := body["pvdcNamedVmGroupsMap"].([]any)
	logical, _ := body["pvdcLogicalVmGroupsMap"].([]any)
	p.Name = store.Text(body, "name")
	p.Description = store.Text(body, "description")
	p.CPUs = number("cpuCount")
	p.MemoryMiB = number("memory")
	p.Placement = len(groups)+len(logical) > 0
	delete(body, "id")
	delete(body, "isSizingOnly")
	p.Fields = body
	return nil
}

func createPolicy(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("VDC_COMPUTE_POLICY_MANAGE"); err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	p := store.ComputePolicy{ID: r.Cloud.IDs.Next("vdcComputePolicy")}
	if err := readPolicy(&p, body); err != nil {
		return nil, err
	}
	if r.Cloud.Store.PolicyByName(p.Name) != nil {
		return nil, store.DuplicateName(p.Name)
	}
	r.Cloud.Store.Model.Policies = append(r.Cloud.Store.Model.Policies, p)
	return &api.Response{Status: http.StatusCreated, JSON: policyJSON(r, &p)}, nil
}

func writablePolicy(r *api.Request) (*store.ComputePolicy, error) {
	if err := r.ByProvider("VDC_COMPUTE_POLICY_MANAGE"); err != nil {
		return nil, err
	}
	p := r.Cloud.Store.Policy(store.Bare(r.Vars["id"]))
	if p == nil {
		return nil, store.Forbidden("VDC_COMPUTE_POLICY_VIEW", r.Vars["id"])
	}
	return p, nil
}

func putPolicy(r *api.Request, p *store.ComputePolicy) (*api.Response, error) {
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	old := p.Name
	if err := readPolicy(p, body); err != nil {
		return nil, err
	}
	forEachVDC(r.Cloud.Store, func(v *store.VDC) {
		if i := slices.Index(v.Policies, old); i >= 0 {
			v.Policies[i] = p.Name
		}
	})
	return api.JSON(policyJSON(r, p)), nil
}

func forEachVDC(st *store.Store, f func(*store.VDC)) {
	for i := range st.Model.Orgs {
		for j := range st.Model.Orgs[i].VDCs {
			f(&st.Model.Orgs[i].VDCs[j])
		}
	}
}

// deletePolicy removes a policy that no VDC offers.
func deletePolicy(s *cloud.Cloud, p *store.ComputePolicy) (*api.Response, error) {
	used := false
	forEachVDC(s.Store, func(v *store.VDC) { used = used || slices.Contains(v.Policies, p.Name) })
	if used {
		return nil, store.BadRequest("The compute policy %q is assigned to a VDC.", p.Name)
	}
	id := p.ID
	s.Store.Model.Policies = slices.DeleteFunc(slices.Clone(s.Store.Model.Policies),
		func(x store.ComputePolicy) bool { return x.ID == id })
	return api.NoContent(), nil
}

// assignPolicies sets the policies that a VDC offers. The default policy must be among them, and becomes the first.
func assignPolicies(r *api.Request) (*api.Response, error) {
	_, v, tree, err := VDCToChange(r, "VDC_COMPUTE_POLICY_MANAGE")
	if err != nil {
		return nil, err
	}
	path := "/api/admin/vdc/" + v.ID + "/computePolicies"
	out := xmltree.New("VdcComputePolicyReferences", wire.Namespaces(), xmltree.A("href", r.Site.Base()+path),
		xmltree.A("type", policyReferences))
	defaultPolicy := r.Cloud.Store.Policy(r.Cloud.Store.DefaultSizing(v))
	var names []string
	for _, ref := range tree.All("VdcComputePolicyReference") {
		p := r.Cloud.Store.Policy(store.Bare(ref.Attr("href")))
		if p == nil {
			return nil, store.Forbidden("VDC_COMPUTE_POLICY_VIEW", ref.Attr("href"))
		}
		names = append(names, p.Name)
		out.Add(policyRef(r.Site, "VdcComputePolicyReference", p))
	}
	if defaultPolicy != nil {
		i := slices.Index(names, defaultPolicy.Name)
		if i < 0 {
			return nil, store.BadRequest("The default compute policy %q of VDC %q cannot be taken away.", defaultPolicy.Name,
				v.Name)
		}
		names = slices.Insert(slices.Delete(names, i, i+1), 0, defaultPolicy.Name)
	}
	v.Policies = names
	return api.XML(out), nil
}

// policyRef returns a reference to a compute policy.
func policyRef(site wire.Site, element string, p *store.ComputePolicy) *xmltree.Node {
	urn := store.URN("vdcComputePolicy", p.ID)
	return xmltree.New(element, xmltree.A("href", site.Base()+"/cloudapi/2.0.0/vdcComputePolicies/"+urn),
		xmltree.A("id", urn), xmltree.A("name", p.Name),
		xmltree.A("type", "application/json"))
}
