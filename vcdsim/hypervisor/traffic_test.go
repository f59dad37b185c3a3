// SPDX-License-Identifier: Apache-2.0

package hypervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
)

const cloudAPI = "/cloudapi/1.0.0/"

// make creates an object of the JSON API and returns the ID of the task's owner.
func (s *site) make(path, body string) string {
	res, err := s.http.Do(s.request(http.MethodPost, cloudAPI+path, body))
	s.Expect(err).NotTo(HaveOccurred())
	data, err := io.ReadAll(res.Body)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(res.Body.Close()).To(Succeed())
	s.Expect(res.StatusCode).To(Equal(http.StatusAccepted), string(data))
	task := res.Header.Get("Location")
	s.Eventually(func() string { return s.call(http.MethodGet, task, "").Attr("status") }).Should(Equal("success"))
	return s.call(http.MethodGet, task, "").At("Owner").Attr("id")
}

func (s *site) show(path string) map[string]any {
	res, err := s.http.Do(s.request(http.MethodGet, cloudAPI+path, ""))
	s.Expect(err).NotTo(HaveOccurred())
	out := map[string]any{}
	s.Expect(json.NewDecoder(res.Body).Decode(&out)).To(Succeed())
	s.Expect(res.Body.Close()).To(Succeed())
	return out
}

// outside returns a client that reaches the networks of the VMs through the proxy.
func (s *site) outside(t *testing.T) *http.Client {
	t.Helper()
	server := httptest.NewServer(s.hypervisor.Outside())
	t.Cleanup(server.Close)
	proxy, err := url.Parse(server.URL)
	s.Expect(err).NotTo(HaveOccurred())
	return &http.Client{Transport: &http.Transport{
		Proxy:             http.ProxyURL(proxy),
		DisableKeepAlives: true,
		TLSClientConfig:   s.http.Transport.(*http.Transport).TLSClientConfig,
	}}
}

func (s *site) follow(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.hypervisor.Follow(ctx, s.sim)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestTheEdgeGatewayCarriesTraffic(t *testing.T) {
	s := start(t, stateDir(t))
	s.follow(t)
	_, vm := s.vm("web", "POOL")
	data := s.data(s.state("web"))
	data["userdata"] = "#cloud-config\nruncmd:\n- [systemd-run, --working-directory=/srv, python3, -m, http.server, \"8080\"]\n" +
		"- [sh, -c, 'echo from the VM > /srv/index.html; curl --insecure --silent --output /srv/site https://192.0.2.1/api/versions']\n"
	s.inform(vm, data)
	s.ok(http.MethodPost, vm+"/power/action/powerOn", "")

	gateway := vcdsim.URN("gateway", s.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].ID)
	address := s.state("web").NICs[0].Address
	pool := s.make("loadBalancer/pools", fmt.Sprintf(`{"name":"web","gatewayRef":{"id":%q},"healthMonitors":[{"type":"HTTP"}],
"members":[{"ipAddress":%q,"port":8080},{"ipAddress":"192.168.100.99","port":8080}]}`, gateway, address))
	engines := s.show("loadBalancer/serviceEngineGroups/assignments")["values"].([]any)[0].(map[string]any)
	s.make("loadBalancer/virtualServices", fmt.Sprintf(`{"enabled":true,"name":"web","gatewayRef":{"id":%q},
"loadBalancerPoolRef":{"id":%q},"serviceEngineGroupRef":{"id":%q},"virtualIpAddress":"203.0.113.20","servicePorts":[{"portStart":80}],
"applicationProfile":{"type":"L4"}}`, gateway, pool, engines["serviceEngineGroupRef"].(map[string]any)["id"]))
	s.make("edgeGateways/"+gateway+"/nat/rules", fmt.Sprintf(`{"name":"web","type":"DNAT","externalAddresses":"203.0.113.21",
"internalAddresses":%q,"dnatExternalPort":"8080"}`, address))

	outside := s.outside(t)
	get := func(url string) func() string {
		return func() string {
			res, err := outside.Get(url)
			if err != nil {
				return err.Error()
			}
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			s.Expect(err).NotTo(HaveOccurred())
			return string(body)
		}
	}
	s.Eventually(get("http://203.0.113.20/"), bootWithin).Should(Equal("from the VM\n"), func() string { return s.console("web") })
	s.Eventually(get("http://203.0.113.21:8080/")).Should(Equal("from the VM\n"))
	s.Eventually(func() any { return s.show("loadBalancer/pools/" + pool)["members"] }, bootWithin).Should(HaveExactElements(
		HaveKeyWithValue("healthStatus", "UP"), HaveKeyWithValue("healthStatus", "DOWN")))
	s.Eventually(func() string { return s.inVM("web", "srv/site") }, bootWithin).Should(ContainSubstring("SupportedVersions"),
		"VMs reach VCD at its listener")
	s.Expect(get("https://192.0.2.1/api/versions")()).To(ContainSubstring("SupportedVersions"), "through CONNECT, verified")

	s.ok(http.MethodPost, vm+"/power/action/powerOff", "")
	s.Eventually(func() any { return s.show("loadBalancer/pools/" + pool)["healthStatus"] }, bootWithin).Should(Equal("DOWN"))
}

func TestIndependentDisksOutliveTheirVMs(t *testing.T) {
	s := start(t, stateDir(t))
	s.follow(t)
	vapp, vm := s.vm("node", "POOL")
	vdc := s.sim.State().Model.Orgs[1].VDCs[0].ID
	s.ok(http.MethodPost, "/api/vdc/"+vdc+"/disk", `<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="64"/></DiskCreateParams>`)
	disk := s.sim.State().Disks[0].ID
	attached := `<DiskAttachOrDetachParams ` + xmlns + `><Disk href="` + s.sim.URL() + `/api/disk/` + disk + `"/></DiskAttachOrDetachParams>`
	s.ok(http.MethodPost, vm+"/disk/action/attach", attached)
	data := s.data(s.state("node"))
	data["userdata"] = "#cloud-config\nruncmd:\n- [sh, -c, 'echo kept | dd of=/dev/sdb conv=fsync; vmware-rpctool \"info-set guestinfo.done yes\"']\n"
	s.inform(vm, data)
	s.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	s.Eventually(func() map[string]string { return s.state("node").ExtraConfig }, bootWithin).
		Should(HaveKeyWithValue("guestinfo.done", "yes"), func() string { return s.console("node") })

	s.ok(http.MethodPost, vapp+"/action/undeploy", "")
	s.ok(http.MethodPost, vm+"/disk/action/detach", attached)
	s.ok(http.MethodDelete, vapp, "")
	file := filepath.Join(s.dir, "disks", disk+".img")
	content, err := os.ReadFile(file)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(string(content)).To(HavePrefix("kept\n"))
	s.ok(http.MethodDelete, "/api/disk/"+disk, "")
	s.Eventually(func() []string { return hypervisor.Left(s.dir) }, bootWithin).Should(BeEmpty())
}

// inside is the address of the simulator's API for VMs.
var inside = netip.MustParseAddrPort("192.0.2.1:443")
