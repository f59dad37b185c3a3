// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func twoCells(cfg *vcdsim.Config) { cfg.Cells = 2 }

// statuses sends requests to the site's address and returns the statuses. 0 means no response.
func (c *client) statuses(n int) []int {
	out := make([]int, 0, n)
	for range n {
		out = append(out, c.status(c.sim.URL()+"/api/org"))
	}
	return out
}

func (c *client) status(url string) int {
	res, err := c.http.Do(c.request(http.MethodGet, url, ""))
	if err != nil {
		return 0
	}
	c.Expect(res.Body.Close()).To(Succeed())
	return res.StatusCode
}

func TestTheLoadBalancerDistributesRequestsAmongCells(t *testing.T) {
	c := start(t, twoCells)
	cells := c.sim.Cells()
	c.Expect(cells).To(HaveLen(2))
	c.Expect([]string{c.sim.URL(), cells[0].URL(), cells[1].URL()}).To(HaveLen(3))

	c.sim.Faults().Add(vcdsim.Fault{Cell: 2, Status: 500})
	c.Expect(slices.Sorted(slices.Values(c.statuses(4)))).To(Equal([]int{200, 200, 500, 500}))
	c.Expect(c.status(cells[0].URL() + "/api/org")).To(Equal(200))
	c.Expect(c.status(cells[1].URL() + "/api/org")).To(Equal(500))
	c.sim.Faults().Clear()

	cells[1].Maintain(true)
	c.Expect(c.statuses(4)).To(ContainElements(200, 503))
	c.Expect(string(c.call(http.MethodGet, cells[1].URL()+"/api/versions",
		"").body)).To(ContainSubstring("maintenance"))
	cells[1].Maintain(false)

	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().CellStopEndsSessions = false })
	cells[1].Crash()
	c.Expect(c.statuses(4)).To(ContainElements(200, 502), "the load balancer has not noticed")
	c.Expect(c.status(cells[1].URL() + "/api/org")).To(Equal(0))
	cells[1].Start()
	cells[1].Stop()
	c.Expect(c.statuses(4)).To(HaveEach(200))
	c.Expect(cells[1].Status().InRotation).To(BeFalse())
	cells[0].Stop()
	c.Expect(c.statuses(2)).To(HaveEach(503))
}

func TestAStoppedCellLosesItsSessionsAndTasks(t *testing.T) {
	c := start(t, manual, twoCells, func(cfg *vcdsim.Config) { cfg.Profile = vcdsim.Recorded })
	session := func(cell int) string {
		req := c.request(http.MethodPost, c.sim.Cells()[cell].URL()+"/cloudapi/1.0.0/sessions", "")
		req.SetBasicAuth("capvcd@acme", "password")
		return c.do(req).header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	}
	first := session(0)
	second := session(1)
	c.token = second
	task := c.call(http.MethodPost, c.sim.Cells()[0].URL()+c.vdc()+"/action/composeVApp",
		c.compose("a", "")).xml.At("Tasks", "Task").Attr("href")
	other := c.call(http.MethodPost, c.sim.Cells()[1].URL()+c.vdc()+"/action/composeVApp",
		c.compose("b", "")).xml.At("Tasks", "Task").Attr("href")

	c.sim.Cells()[0].Restart(time.Minute)
	c.Expect(c.sim.Cells()[0].Status().Up).To(BeFalse())
	c.advance(time.Minute)
	c.Expect(c.sim.Cells()[0].Status().Up).To(BeTrue())
	c.Expect(c.get(task).xml.Attr("status")).To(Equal("aborted"))
	c.Expect(c.get(other).xml.Attr("status")).To(Equal("success"))
	c.token = first
	c.Expect(c.statuses(2)).To(HaveEach(401))

	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().CellStopEndsSessions = false })
	c.token = session(0)
	c.sim.Cells()[0].Restart(0)
	c.Expect(c.statuses(2)).To(HaveEach(200))
}

func TestAnUpgradedCellServesNewVersions(t *testing.T) {
	c := start(t, twoCells, func(cfg *vcdsim.Config) { cfg.Version = vcdsim.Version104 })
	c.Expect(c.sim.Cells()[1].Upgrade(vcdsim.Version106)).To(Succeed())
	c.Expect(c.sim.Cells()[1].Upgrade("1.0")).NotTo(Succeed())
	highest := func(cell int) string {
		infos := c.get(c.sim.Cells()[cell].URL() + "/api/versions").xml.All("VersionInfo")
		return infos[len(infos)-1].Str("Version")
	}
	c.Expect(highest(0)).To(Equal("37.3"))
	c.Expect(highest(1)).To(Equal("39.0"))
}

func TestACertificateChanges(t *testing.T) {
	c := start(t, twoCells)
	c.Expect(c.sim.RenewCertificate(false)).To(Succeed())
	c.Expect(c.statuses(1)).To(Equal([]int{200}), "signed by the same CA")
	c.Expect(c.sim.Cells()[0].RenewCertificate(true)).To(Succeed())
	c.Expect(c.status(c.sim.Cells()[0].URL() + "/api/org")).To(Equal(0))
	c.Expect(c.sim.RenewCertificate(true)).To(Succeed())
	c.Expect(c.statuses(1)).To(Equal([]int{0}), "an untrusted CA")

	pool := x509.NewCertPool()
	c.Expect(pool.AppendCertsFromPEM(c.sim.CA())).To(BeTrue())
	c.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	c.Expect(c.statuses(2)).To(HaveEach(200))
	c.Expect(c.status(c.sim.Cells()[0].URL() + "/api/org")).To(Equal(200))
}

func TestTheOnlyCellRestarts(t *testing.T) {
	c := start(t)
	cell := c.sim.Cells()[0]
	c.Expect(cell.URL()).To(Equal(c.sim.URL()))
	c.sim.Faults().Add(vcdsim.Fault{Hang: true, Count: 1})
	hung := make(chan int, 1)
	go func() { hung <- c.status(c.sim.URL() + "/api/org") }()
	c.Eventually(c.sim.Faults().List).Should(BeEmpty())
	cell.Stop()
	c.Eventually(hung).Should(Receive(Equal(0)), "requests in flight are interrupted")
	c.Expect(c.statuses(1)).To(Equal([]int{0}))
	c.Expect(c.call(http.MethodGet, "/_sim/counters", "").status).To(Equal(200), "the control API is not from VCD's")
	cell.Start()
	c.Expect(c.login("capvcd", "acme", "password").status).To(Equal(200))
	c.Expect(cell.RenewCertificate(true)).To(Succeed())
	c.Expect(c.statuses(1)).To(Equal([]int{0}))
}

func TestHrefsStartWithThePublicAddress(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) { cfg.PublicURL = "https://vcd.example.com/" })
	c.Expect(c.get("/api/org").xml.At("Org").Attr("href")).To(HavePrefix("https://vcd.example.com/api/org/"))
	c.Expect(c.sim.URL()).To(HavePrefix("https://127.0.0.1:"))
	_, err := vcdsim.New(vcdsim.Config{PublicURL: "nowhere"})
	c.Expect(err).To(MatchError(`the public address "nowhere" is not a URL`))
}

func TestATaskFailsOnTheCellInTheRule(t *testing.T) {
	c := start(t, twoCells)
	c.sim.Faults().Add(vcdsim.Fault{Cell: 2, FailTask: true})
	for i, cell := range c.sim.Cells() {
		made := c.call(http.MethodPost, cell.URL()+c.vdc()+"/disk",
			`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1"/></DiskCreateParams>`).xml
		task := c.get(made.At("Tasks", "Task").Attr("href")).xml
		c.Expect(task.Attr("status")).To(Equal([]string{"success", "error"}[i]))
	}
}
