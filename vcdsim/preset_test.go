// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func preset(name string) func(*vcdsim.Config) {
	return func(cfg *vcdsim.Config) {
		model, ok := vcdsim.PresetByName(name)
		if !ok {
			panic("no preset " + name)
		}
		cfg.Model = model
	}
}

func TestPresetForCloudProviders(t *testing.T) {
	c := start(t, preset("cloud-provider")).user("ccm")
	c.Expect(c.values("edgeGateways")).To(HaveLen(2))
	c.Expect(c.values("ssl/certificateLibrary?filter=alias==tls")).To(HaveLen(1))
	c.Expect(c.values("loadBalancer/serviceEngineGroups/assignments?filter=gatewayRef.id==" +
		c.gatewayURN())).To(HaveLen(2))
	c.Expect(c.get(cloudAPI + "edgeGateways/" + c.gatewayURN() +
		"/loadBalancer").json).To(HaveKeyWithValue("transparentModeEnabled", true))
	pool := c.pool("six", "fd00:100::11")
	six := with(c.body(c.service("six", pool, "203.0.113.20", 80)),
		map[string]any{"ipv6VirtualIpAddress": "2001:db8::20"})
	c.make("loadBalancer/virtualServices", six)
	c.Expect(c.used()).To(ConsistOf("203.0.113.10 PRIMARY_IP", "203.0.113.20 Load_Balancer",
		"2001:db8::20 Load_Balancer"))
	space := c.values("ipSpaces/floatingIpSuggestions?filter=gatewayId==urn:vcloud:gateway:" +
		c.model().VDCs[0].EdgeGateways[1].ID)
	c.Expect(space).To(ConsistOf(HaveKeyWithValue("ipSpaceRef", HaveKeyWithValue("name", "public"))))
}

func TestPresetWithTwoGateways(t *testing.T) {
	c := start(t, preset("two-gateways"), manual)
	second := "urn:vcloud:gateway:" + c.model().VDCs[0].EdgeGateways[1].ID
	c.Expect(c.values("orgVdcNetworks?filter=name==nodes-2")).To(ConsistOf(HaveKeyWithValue("connection",
		HaveKeyWithValue("routerRef", HaveKeyWithValue("id", second)))))
	for _, gateway := range []string{c.gatewayURN(), second} {
		a := c.call(http.MethodPost, cloudAPI+"loadBalancer/pools", `{"name":"p","gatewayRef":{"id":"`+gateway+`"}}`)
		c.Expect(a.status).To(Equal(http.StatusAccepted), "gateways do not block each other")
	}
	c.refused(http.MethodPost, cloudAPI+"loadBalancer/pools", `{"name":"q","gatewayRef":{"id":"`+second+`"}}`, 400,
		"BUSY_ENTITY")
}

func TestPresetWithFullClones(t *testing.T) {
	c := start(t, preset("full-clones"))
	fast := c.records("type=orgVdc&filter=name==acme-vdc")[0]
	full := c.records("type=orgVdc&filter=name==acme-vdc-full")[0]
	c.Expect([]string{fast.Attr("isFastProvisioned"), full.Attr("isFastProvisioned")}).To(Equal([]string{"true", "false"}))
	network := c.sim.URL() + "/api/network/" + c.model().VDCs[1].Networks[0].ID
	vapp := c.ok(http.MethodPost, full.Attr("href")+"/action/composeVApp", `<ComposeVAppParams `+xmlns+
		` name="full"><InstantiationParams><NetworkConfigSection><ovf:Info/><NetworkConfig networkName="nodes-full"><Configuration>`+
		`<ParentNetwork href="`+network+`"/><FenceMode>bridged</FenceMode></Configuration></NetworkConfig></NetworkConfigSection>`+
		`</InstantiationParams></ComposeVAppParams>`).xml.Attr("href")
	nics := strings.Replace(nic("POOL", ""), `network="nodes"`, `network="nodes-full"`, 1)
	c.ok(http.MethodPost, vapp+"/action/recomposeVApp", recompose(c.item("node", nics, "")))

	c.ok(http.MethodPost, "/api/vApp/vm-"+c.state("node").ID+"/action/reconfigureVm", grown())
	c.Expect(c.state("node").Disks[0].SizeMiB).To(Equal(int64(30720)))
}

func TestPresetCertificatesAreStable(t *testing.T) {
	g := NewWithT(t)
	g.Expect(vcdsim.NewCertificate("tls")).To(Equal(vcdsim.NewCertificate("tls")))
	g.Expect(vcdsim.NewCertificate("tls").PEM).NotTo(Equal(vcdsim.NewCertificate("tls-other").PEM))
}
