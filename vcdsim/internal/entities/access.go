// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"net/http"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// grants serves the access controls of entities or of entity types. Those of entity types have no effect: they are only
// stored and shown.
type grants struct {
	path string
	find func(*api.Request) (*store.Object, error)
}

func grantRoutes(add api.AddRoute) {
	for _, g := range []grants{
		{access.EntitiesPath, entityByID},
		{access.TypesPath, func(r *api.Request) (*store.Object, error) { return rdeType(r.Cloud.Store, r.Vars["id"]) }},
	} {
		base := "/cloudapi/" + g.path + "/{id}/accessControls"
		add("GET", base, g.list, cloud.LatencyCloudAPI)
		add("POST", base, g.create, cloud.LatencyWrite)
		add("GET", base+"/{grant}", g.get, cloud.LatencyCloudAPI)
		add("PUT", base+"/{grant}", g.put, cloud.LatencyWrite)
		add("DELETE", base+"/{grant}", g.remove, cloud.LatencyWrite)
	}
}

// target returns the entity or entity type in the path, and the key of its access controls in the store.
func (g grants) target(r *api.Request) (*store.Object, string, error) {
	d, err := g.find(r)
	if err != nil {
		return nil, "", err
	}
	return d, g.path + "/" + d.ID() + "/accessControls", nil
}

func (g grants) list(r *api.Request) (*api.Response, error) {
	_, key, err := g.target(r)
	if err != nil {
		return nil, err
	}
	return r.PageOf(r.Cloud.Store.Documents[key])
}

// read reads an access control from the body, and sets the fields that the server controls.
func (g grants) read(r *api.Request, target *store.Object) (map[string]any, error) {
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	for _, field := range []string{"grantType", "accessLevelId"} {
		if store.Text(body, field) == "" {
			return nil, store.BadRequest("The field %s must not be empty.", field)
		}
	}
	body["objectId"] = target.ID()
	body["tenant"] = api.Ref("org", r.Session.OrgID, r.Session.Org)
	return body, nil
}

func (g grants) create(r *api.Request) (*api.Response, error) {
	target, key, err := g.target(r)
	if err != nil {
		return nil, err
	}
	body, err := g.read(r, target)
	if err != nil {
		return nil, err
	}
	body["id"] = store.URN("accessControl", r.Cloud.IDs.Next("accessControl"))
	r.Cloud.Store.Documents.Add(key, r.Session.OrgID, body)
	return &api.Response{Status: http.StatusCreated, JSON: body}, nil
}

// grantInPath returns the access control in the path, its entity or entity type, and its key in the store.
func (g grants) grantInPath(r *api.Request) (target, grant *store.Object, key string, err error) {
	target, key, err = g.target(r)
	if err != nil {
		return nil, nil, "", err
	}
	for _, d := range r.Cloud.Store.Documents[key] {
		if store.Bare(d.ID()) == store.Bare(r.Vars["grant"]) {
			return target, d, key, nil
		}
	}
	return nil, nil, "", store.Forbidden("ACCESS_CONTROL_VIEW", r.Vars["grant"])
}

func (g grants) get(r *api.Request) (*api.Response, error) {
	_, d, _, err := g.grantInPath(r)
	if err != nil {
		return nil, err
	}
	return api.JSON(d.Body), nil
}

func (g grants) put(r *api.Request) (*api.Response, error) {
	target, d, _, err := g.grantInPath(r)
	if err != nil {
		return nil, err
	}
	body, err := g.read(r, target)
	if err != nil {
		return nil, err
	}
	body["id"] = d.ID()
	d.Body = body
	return api.JSON(body), nil
}

func (g grants) remove(r *api.Request) (*api.Response, error) {
	_, d, key, err := g.grantInPath(r)
	if err != nil {
		return nil, err
	}
	r.Cloud.Store.Documents[key] = slices.DeleteFunc(slices.Clone(r.Cloud.Store.Documents[key]),
		func(x *store.Object) bool { return x == d })
	return api.NoContent(), nil
}
