// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func (c *client) dump() *bytes.Buffer {
	var out bytes.Buffer
	c.Expect(c.sim.Dump(&out)).To(Succeed())
	return &out
}

func TestAnHourOldDumpRestoresItsState(t *testing.T) {
	guest := &fakeGuest{}
	c := start(t, manual, func(cfg *vcdsim.Config) { cfg.Guest = guest })
	vapp := c.vapp("cluster")
	kept := c.vm(vapp, "kept")
	running := c.vm(vapp, "running")
	c.ok(http.MethodPost, running+"/action/reconfigureVm", userdata)
	c.ok(http.MethodPost, running+"/power/action/powerOn", "")
	c.advance(time.Minute)
	c.Eventually(func() bool { return c.state("running").Boot.Up }).Should(BeTrue())
	c.advance(time.Minute)
	task := c.call(http.MethodPost, kept+"/action/reconfigureVm", userdata).xml

	dump := c.dump()
	c.finish(task)
	c.ok(http.MethodDelete, kept, "")
	lost := c.vm(vapp, "lost")
	later := c.login("capvcd", "acme", "password").header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	c.advance(time.Hour)
	before := c.sim.Clock().Now()
	c.Expect(c.sim.Restore(dump)).To(Succeed())

	c.Expect(c.sim.Clock().Now()).To(Equal(before), "time does not move back")
	c.refused(http.MethodGet, lost, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.Expect(c.get(kept).xml.Attr("name")).To(Equal("kept"))
	c.Expect(c.finish(task).Attr("status")).To(Equal("success"), "a task that would have ended ends now")
	c.Expect(c.state("kept").ExtraConfig).To(HaveKey("guestinfo.userdata"))
	c.Expect(c.vm(vapp, "new")).NotTo(Equal(lost), "an ID of a lost object would be reused")
	c.Expect(c.state("running").Boot.Up).To(BeTrue())
	c.Eventually(guest.counts).Should(Equal([3]int{1, 0, 2}),
		"the guest that ran runs on; the deleted VM and the lost one are gone")
	c.token = later
	c.Expect(c.call(http.MethodGet, "/api/org", "").status).To(Equal(401), "the session is newer than the dump")
}

func TestADumpContinuesInAnotherSimulator(t *testing.T) {
	c := start(t, manual)
	c.sim.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].RuntimeLease = vcdsim.Duration(2 * time.Hour) })
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "node")
	c.ok(http.MethodPost, vm+"/action/reconfigureVm", userdata)
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.ok(http.MethodPost, vapp+"/metadata",
		`<Metadata `+xmlns+` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><MetadataEntry><Key>k</Key><TypedValue xsi:type="MetadataStringValue"><Value>v</Value></TypedValue></MetadataEntry></Metadata>`)
	certificate, err := json.Marshal(map[string]string{"alias": "mine", "certificate": string(c.sim.CA())})
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(c.call(http.MethodPost, "/cloudapi/1.0.0/ssl/certificateLibrary",
		string(certificate)).status).To(Equal(201))
	c.advance(time.Hour)
	dump := c.dump()

	guest := &fakeGuest{}
	other := start(t, func(cfg *vcdsim.Config) {
		cfg.Model = vcdsim.K8sTenant()
		cfg.Guest = guest
		cfg.Profile = vcdsim.Recorded
		cfg.Clock = vcdsim.NewManualClock(time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC))
	})
	c.Expect(other.sim.Restore(bytes.NewReader(dump.Bytes()))).To(Succeed())

	c.Expect(other.sim.Clock().Now()).To(Equal(c.sim.Clock().Now()))
	other.token = c.token
	c.Expect(other.get(vm).xml.Attr("name")).To(Equal("node"))
	c.Expect(other.state("node").PoweredOn).To(BeTrue())
	c.Expect(string(other.get("/cloudapi/1.0.0/ssl/certificateLibrary").body)).To(ContainSubstring(`"mine"`))
	other.advance(time.Minute)
	c.Eventually(func() bool { return other.state("node").Boot.Up }).Should(BeTrue(), "the guest boots here")
	other.advance(2 * time.Hour)
	c.Expect(other.state("node").PoweredOn).To(BeFalse(), "the lease ends here")
	c.Expect(c.state("node").PoweredOn).To(BeTrue())
}

func TestADumpSurvivesARoundTrip(t *testing.T) {
	c := start(t, manual)
	c.vm(c.vapp("cluster"), "node")
	first := c.dump().String()
	c.Expect(c.sim.Restore(strings.NewReader(first))).To(Succeed())
	c.Expect(c.dump().String()).To(Equal(first))

	c.Expect(string(c.get("/_sim/dump").body)).To(Equal(first))
	c.Expect(c.call(http.MethodPost, "/_sim/restore", first).status).To(Equal(204))
	c.Expect(c.call(http.MethodPost, "/_sim/restore", "{}").status).To(Equal(400))
	c.Expect(c.dump().String()).To(Equal(first))
}

func TestAnInvalidDumpChangesNothing(t *testing.T) {
	c := start(t, manual)
	c.vapp("cluster")
	good := c.dump().String()
	for _, tc := range []struct{ name, dump, message string }{
		{name: "something else", dump: `{"kind": "List"}`, message: "it is not a dump of vcdsim"},
		{name: "not JSON", dump: `<xml/>`, message: "reading the dump"},
		{name: "half a dump", dump: good[:len(good)/2], message: "reading the dump"},
		{name: "a dump of another version", dump: strings.Replace(good, `"version":3`, `"version":99`, 1), message: "version 99 is not 3"},
		{
			name:    "a store with an unknown field",
			dump:    strings.Replace(good, `"store":{`, `"store":{"colour":1,`, 1),
			message: `unknown field "colour"`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(c.sim.Restore(strings.NewReader(tc.dump))).To(MatchError(ContainSubstring(tc.message)))
			g.Expect(c.dump().String()).To(Equal(good))
		})
	}
}
