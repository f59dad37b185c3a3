// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/route"
)

const (
	id  = "0946827a-1a9e-4b9f-8ea3-732b3afe47c6"
	urn = "urn:vcloud:vdc:" + id
)

func table() *route.Table[string] {
	t := &route.Table[string]{}
	t.Add("GET", "/api/org", "orgs")
	t.Add("GET", "/api/org/{id}", "org")
	t.Add("GET", "/api/vApp/vm-{vm}", "vm")
	t.Add("GET", "/api/vApp/vapp-{vapp}", "vapp")
	t.Add("POST", "/api/vApp/vm-{vm}/action/reconfigureVm", "reconfigure")
	t.Add("GET", "/cloudapi/1.0.0/vdcs/{id}", "vdc")
	t.Add("GET", "/cloudapi/1.0.0/sessions/current", "current")
	t.Add("GET", "/cloudapi/1.0.0/sessions/{id}", "session")
	return t
}

func TestFind(t *testing.T) {
	for _, tc := range []struct {
		name, method, path string
		result             route.Result
		value, operation   string
		vars               map[string]string
	}{
		{"a plain path", "GET", "/api/org", route.Found, "orgs", "GET /api/org", map[string]string{}},
		{"a trailing slash", "GET", "/api/org/", route.Found, "orgs", "GET /api/org", map[string]string{}},
		{"an id", "GET", "/api/org/" + id, route.Found, "org", "GET /api/org", map[string]string{"id": id}},
		{
			"a prefix before the ID",
			"GET",
			"/api/vApp/vm-" + id,
			route.Found,
			"vm",
			"GET /api/vApp/vm",
			map[string]string{"vm": id},
		},
		{
			"another prefix",
			"GET",
			"/api/vApp/vapp-" + id,
			route.Found,
			"vapp",
			"GET /api/vApp/vapp",
			map[string]string{"vapp": id},
		},
		{
			"an action",
			"POST",
			"/api/vApp/vm-" + id + "/action/reconfigureVm",
			route.Found,
			"reconfigure",
			"POST /api/vApp/vm/action/reconfigureVm",
			map[string]string{"vm": id},
		},
		{
			"a URN",
			"GET",
			"/cloudapi/1.0.0/vdcs/" + urn,
			route.Found,
			"vdc",
			"GET /cloudapi/1.0.0/vdcs",
			map[string]string{"id": urn},
		},
		{
			"an escaped URN",
			"GET",
			"/cloudapi/1.0.0/vdcs/urn%3Avcloud%3Avdc%3A" + id,
			route.Found,
			"vdc",
			"GET /cloudapi/1.0.0/vdcs",
			map[string]string{"id": urn},
		},
		{
			"a literal takes precedence over a variable",
			"GET",
			"/cloudapi/1.0.0/sessions/current",
			route.Found,
			"current",
			"GET /cloudapi/1.0.0/sessions/current",
			map[string]string{},
		},
		{"another method", "PUT", "/api/org", route.WrongMethod, "", "PUT /api/org", nil},
		{"an unknown path loses its IDs", "GET", "/api/media/" + id, route.Unknown, "", "GET /api/media", nil},
		{
			"an unknown path with a URN",
			"GET",
			"/cloudapi/1.0.0/edges/" + urn + "/x",
			route.Unknown,
			"",
			"GET /cloudapi/1.0.0/edges/x",
			nil,
		},
		{"an empty ID", "GET", "/api/vApp/vm-", route.Unknown, "", "GET /api/vApp/vm-", nil},
		{"a broken escape", "GET", "/api/org/%zz", route.Unknown, "", "GET /api/org/%zz", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			m, result := table().Find(tc.method, tc.path)
			g.Expect(result).To(Equal(tc.result))
			g.Expect(m).To(Equal(route.Match[string]{Value: tc.value, Vars: tc.vars, Operation: tc.operation}))
		})
	}
}

func FuzzFind(f *testing.F) {
	f.Add("GET", "/api/vApp/vm-"+id)
	f.Fuzz(func(_ *testing.T, method, path string) { table().Find(method, path) })
}
