// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const policyReferences = "application/vnd.vmware.vcloud.vdcComputePolicyReferences+xml"

func policyAdminRoutes(add addRoute) {
	for _, v := range []string{"1.0.0", "2.0.0"} {
		add("POST", "/cloudapi/"+v+"/vdcComputePolicies", createPolicy, latencyWrite)
		add("PUT", "/cloudapi/"+v+"/vdcComputePolicies/{id}", with(writablePolicy, putPolicy), latencyWrite)
		add("DELETE", "/cloudapi/"+v+"/vdcComputePolicies/{id}", with(writablePolicy, deletePolicy), latencyWrite)
	}
	add("PUT", "/api/admin/vdc/{id}/computePolicies", assignPolicies, latencyWrite)
}

// readPolicy applies a policy document. Fields without effect in the simulator are stored as they were sent.
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

func createPolicy(r *request) (*response, error) {
	if err := r.byProvider("VDC_COMPUTE_POLICY_MANAGE"); err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	p := store.ComputePolicy{ID: r.cloud.ids.Next("vdcComputePolicy")}
	if err := readPolicy(&p, body); err != nil {
		return nil, err
	}
	if r.cloud.store.PolicyByName(p.Name) != nil {
		return nil, store.DuplicateName(p.Name)
	}
	r.cloud.store.Model.Policies = append(r.cloud.store.Model.Policies, p)
	return &response{status: http.StatusCreated, json: policyJSON(r, &p)}, nil
}

func writablePolicy(r *request) (*store.ComputePolicy, error) {
	if err := r.byProvider("VDC_COMPUTE_POLICY_MANAGE"); err != nil {
		return nil, err
	}
	p := r.cloud.store.Policy(store.Bare(r.vars["id"]))
	if p == nil {
		return nil, store.Forbidden("VDC_COMPUTE_POLICY_VIEW", r.vars["id"])
	}
	return p, nil
}

func putPolicy(r *request, p *store.ComputePolicy) (*response, error) {
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	old := p.Name
	if err := readPolicy(p, body); err != nil {
		return nil, err
	}
	eachVDC(r.cloud.store, func(v *store.VDC) {
		if i := slices.Index(v.Policies, old); i >= 0 {
			v.Policies[i] = p.Name
		}
	})
	return jsonOK(policyJSON(r, p)), nil
}

func eachVDC(st *store.Store, f func(*store.VDC)) {
	for i := range st.Model.Orgs {
		for j := range st.Model.Orgs[i].VDCs {
			f(&st.Model.Orgs[i].VDCs[j])
		}
	}
}

// deletePolicy removes a policy that no VDC offers.
func deletePolicy(r *request, p *store.ComputePolicy) (*response, error) {
	used := false
	eachVDC(r.cloud.store, func(v *store.VDC) { used = used || slices.Contains(v.Policies, p.Name) })
	if used {
		return nil, store.BadRequest("The compute policy %q is assigned to a VDC.", p.Name)
	}
	id := p.ID
	r.cloud.store.Model.Policies = slices.DeleteFunc(slices.Clone(r.cloud.store.Model.Policies),
		func(x store.ComputePolicy) bool { return x.ID == id })
	return noContent(), nil
}

// assignPolicies sets the policies a VDC offers. The default stays, and stays first.
func assignPolicies(r *request) (*response, error) {
	_, v, tree, err := vdcToChange(r, "VDC_COMPUTE_POLICY_MANAGE")
	if err != nil {
		return nil, err
	}
	path := "/api/admin/vdc/" + v.ID + "/computePolicies"
	out := xmltree.New("VdcComputePolicyReferences", wire.Namespaces(), xmltree.A("href", r.site.Base()+path),
		xmltree.A("type", policyReferences))
	standard := r.cloud.store.Policy(r.cloud.store.DefaultSizing(v))
	var names []string
	for _, ref := range tree.All("VdcComputePolicyReference") {
		p := r.cloud.store.Policy(store.Bare(ref.Attr("href")))
		if p == nil {
			return nil, store.Forbidden("VDC_COMPUTE_POLICY_VIEW", ref.Attr("href"))
		}
		names = append(names, p.Name)
		out.Add(policyRef(r.site, "VdcComputePolicyReference", p))
	}
	if standard != nil {
		i := slices.Index(names, standard.Name)
		if i < 0 {
			return nil, store.BadRequest("The default compute policy %q of VDC %q cannot be taken away.", standard.Name,
				v.Name)
		}
		names = slices.Insert(slices.Delete(names, i, i+1), 0, standard.Name)
	}
	v.Policies = names
	return xmlOK(out), nil
}

// policyRef is a reference to a compute policy.
func policyRef(site wire.Site, element string, p *store.ComputePolicy) *xmltree.Node {
	urn := store.URN("vdcComputePolicy", p.ID)
	return xmltree.New(element, xmltree.A("href", site.Base()+"/cloudapi/2.0.0/vdcComputePolicies/"+urn),
		xmltree.A("id", urn), xmltree.A("name", p.Name),
		xmltree.A("type", "application/json"))
}
