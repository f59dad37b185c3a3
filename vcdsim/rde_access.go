// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// grants are the access controls of entities, or of entity types; the latter are only stored and shown.
type grants struct {
	path string
	find func(*request) (*store.Object, error)
}

func grantRoutes(add addRoute) {
	for _, g := range []grants{
		{entitiesPath, entityByID},
		{typesPath, func(r *request) (*store.Object, error) { return rdeType(r.cloud.store, r.vars["id"]) }},
	} {
		base := "/cloudapi/" + g.path + "/{id}/accessControls"
		add("GET", base, g.list, latencyCloudAPI)
		add("POST", base, g.create, latencyWrite)
		add("GET", base+"/{grant}", g.get, latencyCloudAPI)
		add("PUT", base+"/{grant}", g.put, latencyWrite)
		add("DELETE", base+"/{grant}", g.remove, latencyWrite)
	}
}

// of returns what is shared, and the key of its grants.
func (g grants) of(r *request) (*store.Object, string, error) {
	d, err := g.find(r)
	if err != nil {
		return nil, "", err
	}
	return d, g.path + "/" + d.ID() + "/accessControls", nil
}

func (g grants) list(r *request) (*response, error) {
	_, key, err := g.of(r)
	if err != nil {
		return nil, err
	}
	return r.pageOf(r.cloud.store.Documents[key])
}

// read takes a grant from the body, without the fields that the server sets.
func (g grants) read(r *request, of *store.Object) (map[string]any, error) {
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	for _, field := range []string{"grantType", "accessLevelId"} {
		if store.Text(body, field) == "" {
			return nil, store.BadRequest("The field %s must not be empty.", field)
		}
	}
	body["objectId"] = of.ID()
	body["tenant"] = jsonRef("org", r.session.OrgID, r.session.Org)
	return body, nil
}

func (g grants) create(r *request) (*response, error) {
	of, key, err := g.of(r)
	if err != nil {
		return nil, err
	}
	body, err := g.read(r, of)
	if err != nil {
		return nil, err
	}
	body["id"] = store.URN("accessControl", r.cloud.ids.Next("accessControl"))
	r.cloud.store.Documents.Add(key, r.session.OrgID, body)
	return &response{status: http.StatusCreated, json: body}, nil
}

func (g grants) one(r *request) (of, grant *store.Object, key string, err error) {
	of, key, err = g.of(r)
	if err != nil {
		return nil, nil, "", err
	}
	for _, d := range r.cloud.store.Documents[key] {
		if store.Bare(d.ID()) == store.Bare(r.vars["grant"]) {
			return of, d, key, nil
		}
	}
	return nil, nil, "", store.Forbidden("ACCESS_CONTROL_VIEW", r.vars["grant"])
}

func (g grants) get(r *request) (*response, error) {
	_, d, _, err := g.one(r)
	if err != nil {
		return nil, err
	}
	return jsonOK(d.Body), nil
}

func (g grants) put(r *request) (*response, error) {
	of, d, _, err := g.one(r)
	if err != nil {
		return nil, err
	}
	body, err := g.read(r, of)
	if err != nil {
		return nil, err
	}
	body["id"] = d.ID()
	d.Body = body
	return jsonOK(body), nil
}

func (g grants) remove(r *request) (*response, error) {
	_, d, key, err := g.one(r)
	if err != nil {
		return nil, err
	}
	r.cloud.store.Documents[key] = slices.DeleteFunc(slices.Clone(r.cloud.store.Documents[key]),
		func(x *store.Object) bool { return x == d })
	return noContent(), nil
}
