// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheLegacyAPIShowsEdgeGateways(t *testing.T) {
	c := start(t)
	row := c.records("type=edgeGateway&filter=name==acme-vdc-gateway")[0]
	gateway := c.get(row.Attr("href"))
	c.Expect(gateway.xml.Attr("id")).To(Equal(c.gatewayURN()))
	kinds := map[string]string{}
	for _, i := range gateway.xml.At("Configuration", "GatewayInterfaces").All("GatewayInterface") {
		kinds[i.Str("Name")] = i.Str("InterfaceType")
	}
	c.Expect(kinds).To(And(HaveKeyWithValue("internet", "uplink"), HaveKeyWithValue("nodes", "internal")))

	network := c.get(c.records("type=orgVdcNetwork&filter=name==nodes")[0].Attr("href"))
	c.Expect(network.xml.At("EdgeGateway").Attr("href")).To(Equal(row.Attr("href")))
	c.refused(http.MethodGet, "/api/admin/edgeGateway/00000000-0000-4000-8000-000000000000", "", 403,
		"ACCESS_TO_RESOURCE_IS_FORBIDDEN")
}

func TestViewingALegacyGatewayRequiresARight(t *testing.T) {
	c := start(t, withRoles(map[string][]string{"nothing": nil}))
	href := c.records("type=edgeGateway")[0].Attr("href")
	c.user("nothing").refused(http.MethodGet, href, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
}
