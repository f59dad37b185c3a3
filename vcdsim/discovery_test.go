// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// found follows the link of an organization to a query, as clients do that find VDCs and catalogs by links. It returns the
// names in the result.
func (c *client) found(org, kind string) []string {
	var names []string
	for _, link := range c.get("/api/org/" + org).xml.All("Link") {
		href, err := url.QueryUnescape(link.Attr("href"))
		c.Expect(err).NotTo(HaveOccurred())
		if link.Attr("type") != "application/vnd.vmware.vcloud.query.records+xml" || link.Attr("rel") != "down" ||
			!strings.Contains(strings.ToLower(href), kind) {
			continue
		}
		for _, record := range c.get(href).xml.Children {
			if record.Name != "Link" {
				names = append(names, record.Attr("name"))
			}
		}
		return names
	}
	return nil
}

func TestAnOrganizationLinksToItsVDCsAndCatalogs(t *testing.T) {
	c := start(t, withOtherOrg)
	acme := c.model().ID

	for user, c := range map[string]*client{"tenant": c, "provider": c.provider()} {
		c.Expect(c.found(acme, "vdc")).To(Equal([]string{"acme-vdc"}), user)
		c.Expect(c.found(acme, "catalog")).To(Equal([]string{"kubernetes"}), user)
	}
}

func TestTheReleaseSetsWhichVersionsAreDeprecated(t *testing.T) {
	current := map[vcdsim.Version]string{
		vcdsim.Version103:  "36.0",
		vcdsim.Version1042: "37.0",
		vcdsim.Version104:  "37.0",
		vcdsim.Version105:  "37.0",
		vcdsim.Version106:  "37.0",
	}
	for release, first := range current {
		t.Run(release.Release(), func(t *testing.T) {
			c := start(t, func(cfg *vcdsim.Config) { cfg.Version = release })
			infos := c.call(http.MethodGet, "/api/versions", "").xml.All("VersionInfo")

			for _, info := range infos {
				deprecated := info.Str("Version") < first
				c.Expect(info.Attr("deprecated")).To(Equal(strconv.FormatBool(deprecated)), info.Str("Version"))
			}
			c.Expect(infos[len(infos)-1].Str("Version")).To(Equal(string(release)))
		})
	}
}
