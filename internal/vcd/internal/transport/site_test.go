// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

func TestOperation(t *testing.T) {
	tests := []struct {
		name, method, url, want string
	}{
		{
			name:   "IDs are removed",
			method: "GET",
			url:    "https://h/api/vApp/vm-22222222-2222-4222-8222-222222222222",
			want:   "GET /api/vApp/vm-{id}",
		},
		{
			name:   "actions are kept",
			method: "POST",
			url:    "https://h/api/vApp/vapp-22222222-2222-4222-8222-222222222222/action/recomposeVApp",
			want:   "POST /api/vApp/vapp-{id}/action/recomposeVApp",
		},
		{
			name:   "URNs are removed",
			method: "GET",
			url:    "https://h/cloudapi/1.0.0/orgVdcNetworks/urn:vcloud:network:22222222-2222-4222-8222-222222222222/dhcp",
			want:   "GET /cloudapi/1.0.0/orgVdcNetworks/{id}/dhcp",
		},
		{
			name:   "a query keeps its type, also with semicolons",
			method: "GET",
			url:    "https://h/api/query?filter=a==b;c==d&type=vm",
			want:   "GET /api/query?type=vm",
		},
		{name: "organizations are removed", method: "POST", url: "https://h/oauth/tenant/acme/token", want: "POST /oauth/tenant/{org}/token"},
		{name: "trailing slashes make no difference", method: "PUT", url: "https://h/api/x/", want: "PUT /api/x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			u, err := url.Parse(tt.url)
			g.Expect(err).NotTo(HaveOccurred())

			g.Expect(Operation(tt.method, u)).To(Equal(tt.want))
		})
	}
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

			got, err := ParseSite(tt.address)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestParseSiteRejectsInvalidInput(t *testing.T) {
	for _, address := range []string{
		"", "vcd.example.com", "http://vcd.example.com",
		"https://u:canary@vcd.example.com", "https://vcd/x?y=z",
	} {
		t.Run(address, func(t *testing.T) {
			g := NewWithT(t)

			_, err := ParseSite(address)

			g.Expect(err).To(MatchError(failure.ErrInvalid))
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

	s := &Site{Clock: RealClock{}, refused: map[string]time.Time{}}
	g.Expect(s.agree(document("36.3", "38.1", "37.2", "37.3"))).To(Equal("37.2"))
	g.Expect(s.agree(document("38.1", "39.0", "40.0"))).To(Equal("38.1"))
	_, err := s.agree(document("36.3", "39.0.0-alpha"))
	g.Expect(err).To(MatchError(failure.ErrInvalid))
	g.Expect(err.Error()).To(ContainSubstring("36.3, 39.0.0-alpha"))
	_, err = s.agree([]byte("hello"))
	g.Expect(err).To(MatchError(failure.ErrUnavailable))
}

func TestOnlyVersionsAreQuotedFromAListOfVersions(t *testing.T) {
	g := NewWithT(t)
	document := "<SupportedVersions><VersionInfo><Version>5.5</Version></VersionInfo><VersionInfo><Version>41.0.0-alpha</Version></VersionInfo><VersionInfo><Version>canary of another server</Version></VersionInfo></SupportedVersions>"

	_, err := offeredVersions([]byte(document))

	g.Expect(err).To(MatchError(HaveSuffix("which supports: 5.5, 41.0.0-alpha")))
}
