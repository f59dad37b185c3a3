// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A visitor calls a simulator without a network, so that a panic ends the test.
type visitor struct {
	sim   *Simulator
	token string
	there map[string]bool // requested paths, and whether they exist
}

func (v *visitor) call(method, path, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "https://vcd/", strings.NewReader(body))
	req.URL.Path = path
	req.URL.RawPath = path
	req.Header.Set("Accept", "application/*;version=39.0")
	if v.token == "" {
		req.SetBasicAuth("administrator@System", "password")
	} else {
		req.Header.Set("Authorization", "Bearer "+v.token)
	}
	w := httptest.NewRecorder()
	v.sim.ServeHTTP(w, req)
	return w
}

// ids returns the IDs of all objects, and of one document of each kind.
func (v *visitor) ids() []string {
	s := v.sim.State()
	org := s.Model.Orgs[1]
	vdc := org.VDCs[0]
	tpl := org.Catalogs[0].Templates[0]
	out := []string{
		org.ID, org.Users[0].ID, vdc.ID, vdc.StorageProfiles[0].ID, vdc.Networks[0].ID, vdc.EdgeGateways[0].ID,
		org.Catalogs[0].ID,
		tpl.ID, tpl.ItemID, tpl.VMs[0].ID, s.VApps[0].ID, s.VMs[0].ID, s.Disks[0].ID,
	}
	kinds := map[string]bool{}
	for _, d := range s.Documents {
		if !kinds[d.Path] {
			kinds[d.Path] = true
			out = append(out, d.ID)
		}
	}
	return out
}

// fill replaces the first variable of a pattern by IDs that lead to an existing object, and then the other variables.
func (v *visitor) fill(pattern string, ids []string) []string {
	from := strings.Index(pattern, "{")
	to := strings.Index(pattern, "}")
	if from < 0 {
		return []string{pattern}
	}
	var out []string
	for _, id := range ids {
		base := pattern[:from] + id
		there, found := v.there[base]
		if !found {
			there = v.call(http.MethodGet, base, "").Code < 300
			v.there[base] = there
		}
		if there {
			rest, _, _ := strings.Cut(pattern[to+1:], "{")
			if _, more, variable := strings.Cut(pattern[to+1:], "}"); variable {
				rest += id + more
			}
			out = append(out, base+rest)
		}
	}
	return out
}

func TestNoRouteFailsOnAnEmptyBody(t *testing.T) {
	g := NewWithT(t)
	m := K8sTenant()
	m.Orgs[1].VDCs[0].Fleet = store.Fleet{VApps: 1, VMsPerVApp: 2, PoweredOff: true, Owner: "capvcd"}
	sim, err := New(Config{Model: m, Seed: 1})
	g.Expect(err).NotTo(HaveOccurred())
	v := &visitor{sim: sim, there: map[string]bool{}}
	v.token = v.call(http.MethodPost, "/cloudapi/1.0.0/sessions/provider",
		"").Header().Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	made := v.call(http.MethodPost, "/api/vdc/"+sim.State().Model.Orgs[1].VDCs[0].ID+"/disk",
		`<DiskCreateParams><Disk name="d" sizeMb="1"/></DiskCreateParams>`)
	g.Expect(made.Code).To(Equal(http.StatusCreated))
	ids := v.ids()

	var routes [][2]string
	for _, group := range routeGroups() {
		group(func(method, pattern string, _ api.Handler, _ time.Duration) {
			if method != http.MethodGet && method != http.MethodDelete {
				routes = append(routes, [2]string{method, pattern})
			}
		})
	}
	called := map[string]bool{}
	for _, body := range []string{
		"null", " null\n", "{}", "[]",
		`{"values": [null], "name": 1, "ownerRef": null, "gatewayRef": "x"}`, "<x/>", "",
	} {
		for _, route := range routes {
			for _, path := range v.fill(route[1], ids) {
				w := v.call(route[0], path, body)
				called[route[1]] = true
				g.Expect(w.Code).To(BeNumerically("<", 500), "%s %s: %s", route[0], path, w.Body)
			}
		}
	}
	g.Expect(len(called)).To(BeNumerically(">", 150), "the minimum number of routes")
}
