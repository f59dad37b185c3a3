// SPDX-License-Identifier: Apache-2.0

package sites_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
)

func TestSitesAreComparedByHostAndPort(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		site string
		want string
	}{
		{"the port of https is the default", "https://vcd.example.com", "vcd.example.com:443"},
		{"a trailing slash does not count", "https://vcd.example.com:443/", "vcd.example.com:443"},
		{"nor does upper case", "https://VCD.example.com:8443", "vcd.example.com:8443"},
		{"plain HTTP is not a site", "http://vcd.example.com", ""},
		{"nor is a URL with a path", "https://vcd.example.com/cloud", ""},
		{"nor is a URL with a user", "https://admin@vcd.example.com", ""},
		{"nor is a host name only", "vcd.example.com", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(sites.Normal(tt.site)).To(Equal(tt.want))
		})
	}
}
