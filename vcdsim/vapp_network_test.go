// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

const ownScope = `<IpScopes><IpScope><IsInherited>false</IsInherited><Gateway>192.168.0.1</Gateway><Netmask>255.255.255.0</Netmask>` +
	`<IpRanges><IpRange><StartAddress>192.168.0.10</StartAddress><EndAddress>192.168.0.20</EndAddress></IpRange></IpRanges></IpScope></IpScopes>`

// connected sets the networks of a vApp, each with the content of its Configuration, and returns the path of the first.
func (c *client) connected(vapp string, configurations ...string) string {
	section := `<NetworkConfigSection ` + xmlns + `><ovf:Info/>`
	for i, configuration := range configurations {
		section += `<NetworkConfig networkName="n` + string(rune('0'+i)) + `"><Configuration>` + configuration +
			`</Configuration></NetworkConfig>`
	}
	c.ok(http.MethodPut, vapp+"/networkConfigSection", section+`</NetworkConfigSection>`)
	return strings.TrimPrefix(c.get(vapp+"/networkConfigSection").xml.At("NetworkConfig", "Link").Attr("href"), c.sim.URL())
}

func (c *client) parent() string { return `<ParentNetwork href="` + c.network(0) + `"/>` }

// putNetwork writes a network with other services.
func (c *client) putNetwork(network, services string) {
	doc := c.get(network).xml
	features, err := xmltree.Parse([]byte(`<Features>` + services + `</Features>`))
	c.Expect(err).NotTo(HaveOccurred())
	configuration := doc.At("Configuration")
	for i, child := range configuration.Children {
		if child.Name == "Features" {
			configuration.Children[i] = features
		}
	}
	c.ok(http.MethodPut, network, doc.String())
}

func TestConnectedNetworksOfAVAppHaveServices(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	c.connected(vapp, ownScope+c.parent()+`<FenceMode>natRouted</FenceMode>`, c.parent()+`<FenceMode>natRouted</FenceMode>`,
		c.parent()+`<FenceMode>bridged</FenceMode>`, ownScope+`<FenceMode>isolated</FenceMode>`)

	for i, network := range c.sim.State().VApps[0].Networks {
		features := c.get("/api/network/"+network.ID).xml.At("Configuration", "Features")
		c.Expect(features != nil).To(Equal(i < 2), network.Name)
		if features != nil {
			c.Expect(features.Str("FirewallService", "IsEnabled")).To(Equal("true"))
			c.Expect(features.Str("FirewallService", "DefaultAction")).To(Equal("drop"))
			c.Expect(features.Str("FirewallService", "FirewallRule", "SourceIp")).To(Equal("internal"), "outgoing traffic is allowed")
			c.Expect(features.Str("NatService", "Policy")).To(Equal("allowTrafficIn"))
		}
	}
}

func TestANetworkOfAVAppKeepsItsServices(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	network := c.connected(vapp, ownScope+c.parent()+`<FenceMode>natRouted</FenceMode>`)
	before := c.sim.State().VApps[0].Networks[0]

	c.putNetwork(network, `<DhcpService><IsEnabled>true</IsEnabled><DefaultLeaseTime>60</DefaultLeaseTime><MaxLeaseTime>90</MaxLeaseTime>`+
		`<IpRange><StartAddress>192.168.0.30</StartAddress><EndAddress>192.168.0.40</EndAddress></IpRange></DhcpService>`+
		`<FirewallService><IsEnabled>true</IsEnabled><DefaultAction>allow</DefaultAction><LogDefaultAction>true</LogDefaultAction>`+
		`<FirewallRule><IsEnabled>true</IsEnabled><Description>web</Description><Policy>allow</Policy><Protocols><Any>true</Any></Protocols>`+
		`<DestinationPortRange>Any</DestinationPortRange><DestinationIp>Any</DestinationIp><SourcePortRange>Any</SourcePortRange>`+
		`<SourceIp>Any</SourceIp></FirewallRule></FirewallService>`+
		`<StaticRoutingService><IsEnabled>true</IsEnabled><StaticRoute><Name>away</Name><Network>10.9.0.0/24</Network>`+
		`<NextHopIp>192.168.0.9</NextHopIp></StaticRoute></StaticRoutingService>`)

	features := c.get(network).xml.At("Configuration", "Features")
	c.Expect(features.Str("FirewallService", "DefaultAction")).To(Equal("allow"))
	c.Expect(features.Str("FirewallService", "FirewallRule", "Description")).To(Equal("web"))
	c.Expect(features.Str("StaticRoutingService", "StaticRoute", "NextHopIp")).To(Equal("192.168.0.9"))
	c.Expect(features.Str("NatService", "NatType")).To(Equal("ipTranslation"), "the default of an omitted service")
	after := c.sim.State().VApps[0].Networks[0]
	c.Expect(after.DHCP.MaxLease).To(Equal(int64(90)))
	c.Expect(after.Gateway).To(Equal(before.Gateway))
	c.Expect(after.Pool).To(Equal(before.Pool))

	c.putNetwork(network, `<NatService><IsEnabled>false</IsEnabled><NatType>portForwarding</NatType><Policy>allowTraffic</Policy></NatService>`)

	features = c.get(network).xml.At("Configuration", "Features")
	c.Expect(features.Str("NatService", "NatType")).To(Equal("portForwarding"))
	c.Expect(features.Str("FirewallService", "FirewallRule", "SourceIp")).To(Equal("internal"), "the default again")
	c.Expect(features.At("StaticRoutingService")).To(BeNil())
	c.Expect(c.sim.State().VApps[0].Networks[0].DHCP).To(BeNil())
}

func TestAFencedNetworkKeepsTheSubnetOfItsParent(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	network := c.connected(vapp, c.parent()+`<FenceMode>natRouted</FenceMode>`)

	c.putNetwork(network, `<FirewallService><IsEnabled>false</IsEnabled></FirewallService>`)

	c.Expect(c.get(network).xml.Str("Configuration", "IpScopes", "IpScope", "IsInherited")).To(Equal("true"))
	c.ok(http.MethodPut, vapp+"/networkConfigSection", c.get(vapp+"/networkConfigSection").xml.String())
	c.Expect(c.get(network).xml.Str("Configuration", "IpScopes", "IpScope", "IsInherited")).To(Equal("true"))

	bridged := strings.Replace(c.get(network).xml.String(), "natRouted", "bridged", 1)
	c.ok(http.MethodPut, network, bridged)
	c.Expect(c.get(network).xml.At("Configuration", "Features")).To(BeNil(), "a bridged network has no services")
}

func TestUpdatesOfNetworksAreRefused(t *testing.T) {
	c := start(t, withUsers("vApp Author", "other"))
	vapp := c.vapp("cluster")
	network := c.connected(vapp, c.parent()+`<FenceMode>natRouted</FenceMode>`)
	body := c.get(network).xml.String()

	c.refused(http.MethodPut, "/api/network/"+c.model().VDCs[0].Networks[0].ID, body, 403, forbiddenCode)
	c.user("other").refused(http.MethodPut, network, body, 403, forbiddenCode)
	c.refused(http.MethodPut, network, strings.Replace(body, `name="n0"`, `name="renamed"`, 1), 400, "BAD_REQUEST")
	c.refused(http.MethodPut, network, strings.Replace(body, "natRouted", "", 1), 400, "BAD_REQUEST")
	c.refused(http.MethodPut, network, "nonsense", 400, "BAD_REQUEST")
}
