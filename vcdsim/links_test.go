// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// What is read by following links: clients find most addresses so.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	tenant := start(t)
	tenant.vm(tenant.vapp("cluster"), "node")
	for name, c := range map[string]*client{"tenant": tenant.user("admin"), "provider": tenant.provider()} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			waiting := []string{"/api/session", "/api/org", "/api/admin"}
			var nowhere []string
			for ; len(waiting) > 0; waiting = waiting[1:] {
				path := strings.TrimPrefix(waiting[0], c.sim.URL())
				if seen[path] || !strings.HasPrefix(path, "/api/") {
					continue
				}
				seen[path] = true
				a := c.call(http.MethodGet, path, "")
				if a.status == http.StatusNotFound || a.status >= http.StatusInternalServerError {
					nowhere = append(nowhere, path)
				}
				if a.status == http.StatusOK && a.xml != nil {
					waiting = append(waiting, readable(a.xml)...)
				}
			}

			slices.Sort(nowhere)
			NewWithT(t).Expect(nowhere).To(BeEmpty())
			NewWithT(t).Expect(len(seen)).To(BeNumerically(">", 50))
		})
	}
}

// readable are the addresses in a document that a client may GET: references, sections, and links that say so.
func readable(n *xmltree.Node) []string {
	var out []string
	rel := n.Attr("rel")
	if href := n.Attr("href"); href != "" && (rel == "" || rel == "down" || rel == "up" || rel == "alternate") {
		out = append(out, href)
	}
	for _, child := range n.Children {
		out = append(out, readable(child)...)
	}
	return out
}
