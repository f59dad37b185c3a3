// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestURNOf(t *testing.T) {
	const id = "22222222-2222-4222-8222-222222222222"
	tests := []struct {
		name, kind, ref, want string
	}{
		{"a URN stays", kindVM, "urn:vcloud:vm:" + id, "urn:vcloud:vm:" + id},
		{"a bare UUID gets the kind", kindVM, strings.ToUpper(id), "urn:vcloud:vm:" + id},
		{"an href says its kind", "", "https://other.example/api/vApp/vapp-" + id, "urn:vcloud:vapp:" + id},
		{"an href to a template's VM", "", "https://x/api/vAppTemplate/vm-" + id, "urn:vcloud:vm:" + id},
		{"an href to an administrator's view", "", "https://x/api/admin/vdc/" + id, "urn:vcloud:vdc:" + id},
		{
			"a storage profile is no VDC",
			"",
			"https://x/api/vdcStorageProfile/" + id,
			"urn:vcloud:vdcstorageProfile:" + id,
		},
		{"nothing is nothing", kindVM, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(urnOf(tt.kind, tt.ref)).To(Equal(tt.want))
		})
	}
}

func TestOperation(t *testing.T) {
	tests := []struct {
		name, method, url, want string
	}{
		{
			"ids are taken out",
			"GET",
			"https://h/api/vApp/vm-22222222-2222-4222-8222-222222222222",
			"GET /api/vApp/vm-{id}",
		},
		{
			"actions stay",
			"POST",
			"https://h/api/vApp/vapp-22222222-2222-4222-8222-222222222222/action/recomposeVApp",
			"POST /api/vApp/vapp-{id}/action/recomposeVApp",
		},
		{
			"URNs are taken out",
			"GET",
			"https://h/cloudapi/1.0.0/orgVdcNetworks/urn:vcloud:network:22222222-2222-4222-8222-222222222222/dhcp",
			"GET /cloudapi/1.0.0/orgVdcNetworks/{id}/dhcp",
		},
		{
			"a query has its type, also with semicolons",
			"GET",
			"https://h/api/query?filter=a==b;c==d&type=vm",
			"GET /api/query?type=vm",
		},
		{"organizations are taken out", "POST", "https://h/oauth/tenant/acme/token", "POST /oauth/tenant/{org}/token"},
		{"slashes at the end make no difference", "PUT", "https://h/api/x/", "PUT /api/x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			u, err := url.Parse(tt.url)
			g.Expect(err).NotTo(HaveOccurred())

			g.Expect(operation(tt.method, u)).To(Equal(tt.want))
		})
	}
}

func TestFilters(t *testing.T) {
	g := NewWithT(t)

	g.Expect(allOf(is("name", "my vApp+1&x"),
		is("isVAppTemplate", "false"))).To(Equal("name==my%20vApp%2B1%26x;isVAppTemplate==false"))
	g.Expect(anyOf(is("id", "a"), is("id", "b"))).To(Equal("(id==a,id==b)"))
	for _, name := range []string{"a;b", "a,b", "a(b", "a*", "a=b", "a!b", "a<b", `a"b`, ""} {
		g.Expect(checkName("vApp", name, "")).To(MatchError(ErrInvalid), name)
	}
	g.Expect(checkName("vApp", "Prod cluster_1.a-b", "")).To(Succeed())
}

func TestFiltersAreCutIntoChunks(t *testing.T) {
	g := NewWithT(t)
	values := []string{strings.Repeat("a", 30), strings.Repeat("b", 30), strings.Repeat("c", 30)}

	chunks := anyOfChunks("n", values, 70)

	g.Expect(chunks).To(HaveLen(2))
	g.Expect(chunks[0]).To(HaveLen(2))
	g.Expect(anyOfChunks("n", nil, 70)).To(BeEmpty())
	g.Expect(anyOfChunks("n", []string{strings.Repeat("x", 100)}, 70)).To(HaveLen(1))
}

func TestParseSite(t *testing.T) {
	tests := []struct {
		name, address, want string
	}{
		{"plain", "https://vcd.example.com", "https://vcd.example.com"},
		{"with port, slash and capitals", "https://VCD.example.com:8443/", "https://vcd.example.com:8443"},
		{"with /api, as other tools want it", "https://vcd.example.com/api", "https://vcd.example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			got, err := parseSite(tt.address)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestParseSiteRefuses(t *testing.T) {
	for _, address := range []string{
		"", "vcd.example.com", "http://vcd.example.com",
		"https://u:canary@vcd.example.com", "https://vcd/x?y=z",
	} {
		t.Run(address, func(t *testing.T) {
			g := NewWithT(t)

			_, err := parseSite(address)

			g.Expect(err).To(MatchError(ErrInvalid))
			g.Expect(err.Error()).NotTo(ContainSubstring("canary"))
		})
	}
}

func TestChooseVersion(t *testing.T) {
	document := func(versions ...string) []byte {
		out := `<SupportedVersions xmlns="http://www.vmware.com/vcloud/versions">`
		for _, v := range versions {
			out += "<VersionInfo><Version>" + v + "</Version></VersionInfo>"
		}
		return []byte(out + "</SupportedVersions>")
	}
	g := NewWithT(t)

	s := &site{clock: newFakeClock(), refused: map[string]time.Time{}}
	g.Expect(s.agree(document("36.3", "38.1", "37.2", "37.3"))).To(Equal("37.2"))
	g.Expect(s.agree(document("38.1", "39.0", "40.0"))).To(Equal("38.1"))
	_, err := s.agree(document("36.3", "39.0.0-alpha"))
	g.Expect(err).To(MatchError(ErrInvalid))
	g.Expect(err.Error()).To(ContainSubstring("36.3, 39.0.0-alpha"))
	_, err = s.agree([]byte("hello"))
	g.Expect(err).To(MatchError(ErrUnavailable))
}
