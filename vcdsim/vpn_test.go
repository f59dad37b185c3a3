// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func (c *client) ipsecPath() string { return "edgeGateways/" + c.gatewayURN() + "/ipsec/tunnels" }

func (c *client) l2Path() string { return "edgeGateways/" + c.gatewayURN() + "/l2vpn/tunnels" }

// ipsec creates an IPsec tunnel to a remote address and returns its path.
func (c *client) ipsec(name, remote string) string {
	c.make(c.ipsecPath(), ipsecBody(name, remote, `"preSharedKey":"secret"`))
	all := c.values(c.ipsecPath())
	return cloudAPI + c.ipsecPath() + "/" + all[len(all)-1]["id"].(string)
}

func ipsecBody(name, remote, more string) string {
	return fmt.Sprintf(`{"name":%q,"localEndpoint":{"localAddress":"203.0.113.10","localNetworks":["192.168.100.0/24"]},`+
		`"remoteEndpoint":{"remoteAddress":%q,"remoteNetworks":["10.9.0.0/24"]},%s}`, name, remote, more)
}

// l2Tunnel creates an L2 VPN server and returns its path.
func (c *client) l2Tunnel(name string) string {
	network := "urn:vcloud:network:" + c.model().VDCs[0].Networks[0].ID
	body := fmt.Sprintf(`{"name":%q,"sessionMode":"SERVER","localEndpointIP":"203.0.113.10","remoteEndpointIP":"198.51.100.7",`+
		`"preSharedKey":"secret","stretchedNetworks":[{"networkRef":{"id":%q}}]}`, name, network)
	made := c.ok(http.MethodPost, cloudAPI+c.l2Path(), body)
	return cloudAPI + c.l2Path() + "/" + c.get(made.header.Get("Location")).xml.Str("Details")
}

func TestAnIPsecTunnelKeepsCustomConnectionPropertiesUntilReset(t *testing.T) {
	c := start(t).user("admin")
	path := c.ipsec("site-b", "198.51.100.7")
	tunnel := c.get(path).json
	c.Expect(tunnel).To(And(
		HaveKeyWithValue("securityType", "DEFAULT"), HaveKeyWithValue("authenticationMode", "PSK"),
		HaveKeyWithValue("localEndpoint", HaveKeyWithValue("localId", "203.0.113.10")),
		HaveKeyWithValue("remoteEndpoint", HaveKeyWithValue("remoteId", "198.51.100.7")),
		Not(HaveKey("connectionProperties"))))
	standard := c.get(path + "/connectionProperties").json
	c.Expect(standard).To(Equal(c.get(cloudAPI + c.ipsecPath() + "/defaultConnectionProperties").json))

	c.ok(http.MethodPut, path+"/connectionProperties", `{"securityType":"CUSTOM","dpdConfiguration":{"probeInterval":5}}`)
	c.Expect(c.get(path + "/connectionProperties").json).To(And(
		HaveKeyWithValue("securityType", "CUSTOM"),
		HaveKeyWithValue("dpdConfiguration", HaveKeyWithValue("probeInterval", 5.0)),
		HaveKeyWithValue("ikeConfiguration", standard["ikeConfiguration"])))
	tunnel = c.get(path).json
	c.Expect(tunnel).To(HaveKeyWithValue("securityType", "CUSTOM"))

	c.ok(http.MethodPut, path, with(tunnel, map[string]any{"securityType": "DEFAULT"}))
	c.Expect(c.get(path + "/connectionProperties").json).To(Equal(standard))
	c.refused(http.MethodPut, path+"/connectionProperties",
		`{"securityType":"CUSTOM","ikeConfiguration":{"ikeVersion":"IKE_V9"}}`, 400, "BAD_REQUEST")
}

func TestInvalidIPsecTunnels(t *testing.T) {
	c := start(t).user("admin")
	c.ipsec("site-b", "198.51.100.7")
	for reason, body := range map[string]string{
		"already in use":     ipsecBody("other", "198.51.100.7", `"preSharedKey":"secret"`),
		"needs a pre-shared": ipsecBody("other", "198.51.100.8", `"logging":true`),
		"needs two certif":   ipsecBody("other", "198.51.100.8", `"authenticationMode":"CERTIFICATE"`),
		"is not an IPv4":     ipsecBody("other", "site-b.example", `"preSharedKey":"secret"`),
		"initiation mode":    ipsecBody("other", "198.51.100.8", `"preSharedKey":"s","connectorInitiationMode":"NEVER"`),
		`security type "TOP`: ipsecBody("other", "198.51.100.8", `"preSharedKey":"s","securityType":"TOP"`),
	} {
		c.Expect(c.refused(http.MethodPost, cloudAPI+c.ipsecPath(), body, 400, "BAD_REQUEST")).To(ContainSubstring(reason))
	}
}

func TestATunnelUsesItsAddressAndCertificates(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) { cfg.Model = vcdsim.CloudProvider() }).user("admin")
	certificate := c.values("ssl/certificateLibrary")[0]["id"].(string)
	c.make(c.ipsecPath(), ipsecBody("site-b", "198.51.100.7", fmt.Sprintf(
		`"authenticationMode":"CERTIFICATE","certificateRef":{"id":%q},"caCertificateRef":{"id":%q}`, certificate, certificate)))

	c.Expect(c.refused(http.MethodDelete, cloudAPI+"ssl/certificateLibrary/"+certificate, "", 400,
		"VALIDATION_ERROR")).To(ContainSubstring("IPSec VPN tunnel site-b"))
	c.Expect(c.values("edgeGateways/" + c.gatewayURN() + "/usedIpAddresses")).To(ContainElement(And(
		HaveKeyWithValue("ipAddress", "203.0.113.10"), HaveKeyWithValue("category", "IPsec_VPN"))))
}

func TestAnL2VPNServerGeneratesThePeerCodeAndNumbersItsNetworks(t *testing.T) {
	c := start(t)
	path := c.l2Tunnel("stretch")
	server := c.get(path).json
	c.Expect(server).To(And(
		HaveKeyWithValue("preSharedKey", "******"), HaveKeyWithValue("peerCode", Not(BeEmpty())),
		HaveKeyWithValue("stretchedNetworks", ConsistOf(HaveKeyWithValue("tunnelId", 1.0)))))

	c.ok(http.MethodPut, path, with(server, map[string]any{"description": "changed"}))
	c.Expect(c.get(path).json).To(And(
		HaveKeyWithValue("description", "changed"), HaveKeyWithValue("peerCode", server["peerCode"])),
		"the masked key is not the new one")
	c.refused(http.MethodPut, path, with(server, map[string]any{"sessionMode": "CLIENT", "version": nil}), 400, "BAD_REQUEST")
	c.refused(http.MethodPost, cloudAPI+c.l2Path(),
		`{"name":"client","sessionMode":"CLIENT","localEndpointIP":"203.0.113.10","remoteEndpointIP":"198.51.100.7"}`, 400,
		"BAD_REQUEST")
}
