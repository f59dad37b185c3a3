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
		{name: "a plain path", method: "GET", path: "/api/org", result: route.Found, value: "orgs", operation: "GET /api/org", vars: map[string]string{}},
		{name: "a trailing slash", method: "GET", path: "/api/org/", result: route.Found, value: "orgs", operation: "GET /api/org", vars: map[string]string{}},
		{name: "an id", method: "GET", path: "/api/org/" + id, result: route.Found, value: "org", operation: "GET /api/org", vars: map[string]string{"id": id}},
		{
			name:      "a prefix before the ID",
			method:    "GET",
			path:      "/api/vApp/vm-" + id,
			result:    route.Found,
			value:     "vm",
			operation: "GET /api/vApp/vm",
			vars:      map[string]string{"vm": id},
		},
		{
			name:      "another prefix",
			method:    "GET",
			path:      "/api/vApp/vapp-" + id,
			result:    route.Found,
			value:     "vapp",
			operation: "GET /api/vApp/vapp",
			vars:      map[string]string{"vapp": id},
		},
		{
			name:      "an action",
			method:    "POST",
			path:      "/api/vApp/vm-" + id + "/action/reconfigureVm",
			result:    route.Found,
			value:     "reconfigure",
			operation: "POST /api/vApp/vm/action/reconfigureVm",
			vars:      map[string]string{"vm": id},
		},
		{
			name:      "a URN",
			method:    "GET",
			path:      "/cloudapi/1.0.0/vdcs/" + urn,
			result:    route.Found,
			value:     "vdc",
			operation: "GET /cloudapi/1.0.0/vdcs",
			vars:      map[string]string{"id": urn},
		},
		{
			name:      "an escaped URN",
			method:    "GET",
			path:      "/cloudapi/1.0.0/vdcs/urn%3Avcloud%3Avdc%3A" + id,
			result:    route.Found,
			value:     "vdc",
			operation: "GET /cloudapi/1.0.0/vdcs",
			vars:      map[string]string{"id": urn},
		},
		{
			name:      "a literal takes precedence over a variable",
			method:    "GET",
			path:      "/cloudapi/1.0.0/sessions/current",
			result:    route.Found,
			value:     "current",
			operation: "GET /cloudapi/1.0.0/sessions/current",
			vars:      map[string]string{},
		},
		{name: "another method", method: "PUT", path: "/api/org", result: route.WrongMethod, operation: "PUT /api/org"},
		{name: "an unknown path loses its IDs", method: "GET", path: "/api/media/" + id, result: route.Unknown, operation: "GET /api/media"},
		{
			name:      "an unknown path with a URN",
			method:    "GET",
			path:      "/cloudapi/1.0.0/edges/" + urn + "/x",
			result:    route.Unknown,
			operation: "GET /cloudapi/1.0.0/edges/x",
		},
		{name: "an empty ID", method: "GET", path: "/api/vApp/vm-", result: route.Unknown, operation: "GET /api/vApp/vm-"},
		{name: "a broken escape", method: "GET", path: "/api/org/%zz", result: route.Unknown, operation: "GET /api/org/%zz"},
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
