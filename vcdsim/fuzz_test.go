// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A fuzzed simulator is called without a network: a panic ends the test.
func fuzzed(tb testing.TB) *direct {
	tb.Helper()
	m := vcdsim.K8sTenant()
	m.Orgs[1].VDCs[0].Fleet = vcdsim.Fleet{VApps: 1, VMsPerVApp: 2, PoweredOff: true, Owner: "capvcd"}
	sim, err := vcdsim.New(vcdsim.Config{Model: m, Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	d := &direct{sim: sim}
	req := httptest.NewRequest(http.MethodPost, "https://vcd/cloudapi/1.0.0/sessions/provider", nil)
	req.SetBasicAuth("administrator@System", "password")
	d.token = d.do(req).Header().Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	if d.token == "" {
		tb.Fatal("no session")
	}
	return d
}

// raw calls with an unmodified path and query, which may be invalid.
func (d *direct) raw(method, path, query, body string) {
	req := httptest.NewRequest(http.MethodGet, "https://vcd/", strings.NewReader(body))
	req.Method = method
	req.URL.RawPath = path
	req.URL.Path = path
	req.URL.RawQuery = query
	d.do(req)
}

// prepared returns paths with IDs of existing objects.
func (d *direct) prepared() []string {
	s := d.sim.State()
	org := s.Model.Orgs[1]
	vdc := org.VDCs[0]
	vm := "/api/vApp/vm-" + s.VMs[0].ID
	vapp := "/api/vApp/vapp-" + s.VApps[0].ID
	return []string{
		vm,
		vapp,
		vm + "/action/reconfigureVm",
		vapp + "/action/recomposeVApp",
		"/api/vdc/" + vdc.ID + "/action/composeVApp",
		"/api/vdc/" + vdc.ID + "/action/instantiateVAppTemplate",
		"/api/vdc/" + vdc.ID + "/disk",
		vm + "/disk/action/attach",
		vm + "/action/deploy",
		vm + "/action/undeploy",
		vm + "/networkConnectionSection",
		vm + "/guestCustomizationSection",
		vm + "/virtualHardwareSection",
		vm + "/virtualHardwareSection/cpu",
		vm + "/virtualHardwareSection/disks",
		"/api/network/" + s.VApps[0].Networks[0].ID,
		"/api/admin/catalog/" + org.Catalogs[0].ID + "/action/publish",
		vm + "/productSections",
		vm + "/metadata",
		vapp + "/metadata/k",
		vapp + "/networkConfigSection",
		vapp + "/leaseSettingsSection",
		vapp + "/action/controlAccess",
		"/api/admin/orgs",
		"/api/admin/org/" + org.ID,
		"/api/admin/org/" + org.ID + "/users",
		"/api/admin/org/" + org.ID + "/catalogs",
		"/api/admin/vdc/" + vdc.ID + "/computePolicies",
		"/cloudapi/1.0.0/roles",
		"/cloudapi/1.0.0/entityTypes",
		"/cloudapi/1.0.0/entityTypes/urn:vcloud:type:vmware:capvcdCluster:1.1.0",
		"/cloudapi/1.0.0/interfaces",
		"/cloudapi/2.0.0/vdcComputePolicies",
		"/cloudapi/1.0.0/ssl/certificateLibrary",
		"/oauth/tenant/acme/register",
		"/oauth/tenant/acme/token",
		"/cloudapi/1.0.0/sessions",
		"/api/query",
		"/cloudapi/1.0.0/orgs",
		"/api/vApp/vm-",
		"/api//vApp/%zz",
		"/api/vAppTemplate/vm-x",
		"/",
	}
}

func FuzzPath(f *testing.F) {
	d := fuzzed(f)
	for _, p := range d.prepared() {
		f.Add("GET", p, "type=vm&filter=name==x")
		f.Add("DELETE", p, "recursive=true&force=true")
	}
	f.Fuzz(func(_ *testing.T, method, path, query string) {
		if strings.HasPrefix(path, "/_sim") {
			return
		}
		d.raw(method, path, query, "")
	})
}

func FuzzFilter(f *testing.F) {
	d := fuzzed(f)
	for _, s := range []string{
		"name==x", "(name==a,name==b);vdc==urn:vcloud:vdc:11111111-2222-3333-4444-555555555555", "metadata:k==STRING:v",
		"status!=POWERED_ON;",
		"dateCreated=gt=2026-01-01T00:00:00.000Z", "numberOfCpus=le=4", "((", "name==*a*b*", "_context==x", "id==", "%",
		"metadata@SYSTEM:k==NUMBER:1",
	} {
		f.Add("vm", s, "name", "1", "25")
		f.Add("task", s, "startDate", "-1", "0")
		f.Add("", s, "id", "99999999999", "99999999999")
	}
	f.Fuzz(func(_ *testing.T, kind, filter, sort, page, size string) {
		query := "type=" + kind + "&filter=" + filter + "&sortAsc=" + sort + "&page=" + page + "&pageSize=" + size
		d.raw(http.MethodGet, "/api/query", query, "")
		d.raw(http.MethodGet, "/cloudapi/1.0.0/orgVdcNetworks", query, "")
		d.raw(http.MethodGet, "/cloudapi/1.0.0/rights", query, "")
	})
}

func FuzzBody(f *testing.F) {
	d := fuzzed(f)
	paths := d.prepared()
	bodies := []string{
		userdata,
		`<RecomposeVAppParams ` + xmlns +
			` name="x"><SourcedItem><Source href="x"/></SourcedItem><DeleteItem href=""/></RecomposeVAppParams>`,
		`<ComposeVAppParams ` + xmlns +
			` name="y"><InstantiationParams><NetworkConfigSection><NetworkConfig networkName="n"><Configuration><IpScopes><IpScope>` +
			`<Gateway>10.0.0.1</Gateway><Netmask>255.255.255.0</Netmask></IpScope></IpScopes><FenceMode>isolated</FenceMode></Configuration></NetworkConfig>` +
			`</NetworkConfigSection></InstantiationParams></ComposeVAppParams>`,
		`<DiskCreateParams ` + xmlns + `><Disk name="d" sizeMb="1"/></DiskCreateParams>`,
		`<Metadata ` + xmlns + `><MetadataEntry/></Metadata>`,
		`<Vm ` + xmlns + ` name="z"><VmSpecSection Modified="true"><DiskSection><DiskSettings><SizeMb>-1</SizeMb></DiskSettings></DiskSection></VmSpecSection></Vm>`,
		nic("MANUAL", "10.0.0.300"),
		hardware(hardwareItem("17", "2000", `<rasd:HostResource vcloud:capacity="-1"/>`), hardwareItem("17", "x", quantity("9")),
			hardwareItem("3", "", quantity("-4")), hardwareItem("10", "0", "")),
		`<InstantiateVAppTemplateParams ` + xmlns + ` name="i"><Source href="x"/><SourcedItem sourceDelete="true"/></InstantiateVAppTemplateParams>`,
		`<VAppNetwork ` + xmlns + ` name="nodes"><Configuration><FenceMode>natRouted</FenceMode><Features><NatService/></Features></Configuration></VAppNetwork>`,
		`<PublishCatalogParams ` + xmlns + `><IsPublished>true</IsPublished></PublishCatalogParams>`,
		`<AdminOrg ` + xmlns + ` name="o"/>`,
		`<Task/>`,
		`<a><b`,
		`{}`,
		`[]`,
		`null`,
		`{"name":"n","values":[{"id":1}]}`,
		`{"name":"e","entity":{"spec":null},"vendor":"v","nss":"n","version":"1.0.0","schema":{"type":["x"]},"interfaces":[1,null]}`,
		"grant_type=refresh_token&%zz",
		`{"client_name":"c","software_id":"s","scope":""}`,
		`{"alias":"a","certificate":"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----"}`,
	}
	for i := range paths {
		for j, b := range bodies {
			f.Add(uint8(i), uint8(j%3), b)
		}
	}
	methods := []string{http.MethodPost, http.MethodPut, http.MethodDelete}
	f.Fuzz(func(_ *testing.T, path, method uint8, body string) {
		d.raw(methods[int(method)%len(methods)], paths[int(path)%len(paths)], "", body)
		d.raw(http.MethodGet, "/api/query", "type=vm", "")
	})
}
