// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

// A client is a small VCD client. It was written without knowledge of the server's code for the wire format.
type client struct {
	*WithT

	sim     *vcdsim.Simulator
	http    *http.Client
	token   string
	version string // of the API; empty is 37.2
}

// An answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   []byte
	xml    *xmltree.Node
	json   map[string]any
}

// start runs a simulator and logs in as the Kubernetes tenant's user.
func start(t *testing.T, mods ...func(*vcdsim.Config)) *client {
	t.Helper()
	cfg := vcdsim.Config{Model: vcdsim.K8sTenant(), Seed: 1}
	for _, m := range mods {
		m(&cfg)
	}
	c := &client{WithT: NewWithT(t)}
	if cfg.Version == vcdsim.Version103 {
		c.version = string(cfg.Version) // without fields of newer versions
	}
	if cfg.Observe == nil {
		observe, err := record.To(os.Getenv("VCDSIM_RECORD"))
		c.Expect(err).NotTo(HaveOccurred())
		cfg.Observe = observe
	}
	sim, err := vcdsim.New(cfg)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	pool := x509.NewCertPool()
	c.Expect(pool.AppendCertsFromPEM(sim.CA())).To(BeTrue())
	c.sim = sim
	c.http = &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
		Timeout:   time.Minute,
	}
	c.token = c.login("capvcd", "acme", "password").header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	return c
}

// unrecorded excludes the requests of a test from the exchanges that are compared with VMware's documents, because the
// test writes values that no client would.
func unrecorded(cfg *vcdsim.Config) {
	cfg.Observe = func(vcdsim.Exchange) {}
}

func manual(cfg *vcdsim.Config) {
	cfg.Clock = vcdsim.NewManualClock(time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC))
	cfg.Profile = vcdsim.Recorded
	cfg.TokenLifetime = 10000 * time.Hour
}

func (c *client) login(user, org, password string) answer {
	req := c.request(http.MethodPost, "/cloudapi/1.0.0/sessions", "")
	req.SetBasicAuth(user+"@"+org, password)
	return c.do(req)
}

func (c *client) request(method, path, body string) *http.Request {
	if !strings.HasPrefix(path, "https://") {
		path = c.sim.URL() + path
	}
	req, err := http.NewRequest(method, path, strings.NewReader(body))
	c.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Accept", "application/*;version="+cmp.Or(c.version, "37.2"))
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req
}

func (c *client) do(req *http.Request) answer {
	res, err := c.http.Do(req)
	c.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	c.Expect(err).NotTo(HaveOccurred())
	a := answer{status: res.StatusCode, header: res.Header, body: body}
	switch {
	case bytes.HasPrefix(body, []byte("<?xml")):
		a.xml, err = xmltree.Parse(body)
	case bytes.HasPrefix(body, []byte("{")):
		err = json.Unmarshal(body, &a.json)
	}
	c.Expect(err).NotTo(HaveOccurred(), string(body))
	return a
}

func (c *client) call(method, path, body string) answer {
	return c.do(c.request(method, path, body))
}

func (c *client) get(path string) answer {
	a := c.call(http.MethodGet, path, "")
	c.Expect(a.status).To(Equal(http.StatusOK), "%s: %s", path, a.body)
	return a
}

// ok sends a write and waits for its task, which must succeed.
func (c *client) ok(method, path, body string) answer {
	a := c.call(method, path, body)
	c.Expect(a.status).To(BeElementOf(http.StatusAccepted, http.StatusCreated), "%s %s: %s", method, path, a.body)
	task := a.xml
	if task == nil {
		task = c.get(a.header.Get("Location")).xml
	}
	if task.Name != "Task" {
		task = task.At("Tasks", "Task")
	}
	c.Expect(c.finish(task).Attr("status")).To(Equal("success"), "%s %s", method, path)
	return a
}

// finish waits for a task to end. It advances a manual clock.
func (c *client) finish(task *xmltree.Node) *xmltree.Node {
	for range 100 {
		t := c.get(task.Attr("href")).xml
		if s := t.Attr("status"); s != "queued" && s != "running" {
			return t
		}
		c.advance(5 * time.Second)
	}
	c.Expect(task.Attr("status")).To(Equal("finished"), "the task does not end")
	return nil
}

func (c *client) advance(d time.Duration) {
	clock, ok := c.sim.Clock().(*vcdsim.SimClock)
	c.Expect(ok).To(BeTrue())
	clock.Advance(d)
}

// refused sends a request that must be rejected, and returns the error.
func (c *client) refused(method, path, body string, status int, code string) string {
	a := c.call(method, path, body)
	c.Expect(a.status).To(Equal(status), "%s %s: %s", method, path, a.body)
	if a.json != nil {
		c.Expect(a.json["minorErrorCode"]).To(Equal(code))
		return a.json["message"].(string)
	}
	c.Expect(a.xml.Name).To(Equal("Error"))
	c.Expect(a.xml.Attr("minorErrorCode")).To(Equal(code))
	c.Expect(a.xml.Attr("message")).To(MatchRegexp(`^\[ [0-9a-f-]{36} \] `))
	return a.xml.Attr("message")
}

// IDs of the model.

func (c *client) model() vcdsim.Org { return c.sim.State().Model.Orgs[1] }

func (c *client) vdc() string { return "/api/vdc/" + c.model().VDCs[0].ID }

func (c *client) network(i int) string {
	return c.sim.URL() + "/api/network/" + c.model().VDCs[0].Networks[i].ID
}

func (c *client) templateVM() string {
	return c.sim.URL() + "/api/vAppTemplate/vm-" + c.model().Catalogs[0].Templates[0].VMs[0].ID
}

const xmlns = `xmlns="http://www.vmware.com/vcloud/v1.5" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:vmw="http://www.vmware.com/schema/ovf"`

// compose returns the body that creates a vApp on the first network, with additional elements.
func (c *client) compose(name, more string) string {
	return `<ComposeVAppParams ` + xmlns + ` name="` + name + `"><Description>made by a test</Description>
<InstantiationParams>` + c.networks(0) + more + `</InstantiationParams></ComposeVAppParams>`
}

func (c *client) networks(which ...int) string {
	s := `<NetworkConfigSection><ovf:Info/>`
	for _, i := range which {
		s += `<NetworkConfig networkName="` + c.model().VDCs[0].Networks[i].Name +
			`"><Configuration><ParentNetwork href="` + c.network(i) +
			`"/><FenceMode>bridged</FenceMode></Configuration></NetworkConfig>`
	}
	return s + `</NetworkConfigSection>`
}

func (c *client) vapp(name string) string {
	return strings.TrimPrefix(c.ok(http.MethodPost, c.vdc()+"/action/composeVApp",
		c.compose(name, "")).xml.Attr("href"), c.sim.URL())
}

func nic(mode, address string) string {
	if address != "" {
		address = "<IpAddress>" + address + "</IpAddress>"
	}
	return `<NetworkConnectionSection><ovf:Info/><PrimaryNetworkConnectionIndex>0</PrimaryNetworkConnectionIndex>
<NetworkConnection network="nodes"><NetworkConnectionIndex>0</NetworkConnectionIndex>` + address + `<IsConnected>true</IsConnected>
<IpAddressAllocationMode>` + mode + `</IpAddressAllocationMode></NetworkConnection></NetworkConnectionSection>`
}

// item returns a sourced item of a recompose request.
func (c *client) item(name, nics, more string) string {
	return `<SourcedItem><Source href="` + c.templateVM() + `"/><VmGeneralParams><Name>` + name +
		`</Name><Description>` + name +
		`</Description></VmGeneralParams><InstantiationParams>` + nics + `</InstantiationParams>` + more + `</SourcedItem>`
}

func recompose(items ...string) string {
	return `<RecomposeVAppParams ` + xmlns + `>` + strings.Join(items, "") + `</RecomposeVAppParams>`
}

// vm adds a VM to a vApp and returns its path.
func (c *client) vm(vapp, name string) string {
	c.ok(http.MethodPost, vapp+"/action/recomposeVApp", recompose(c.item(name, nic("POOL", ""), "")))
	return "/api/vApp/vm-" + c.state(name).ID
}

func (c *client) state(name string) vcdsim.VM {
	for _, vm := range c.sim.State().VMs {
		if vm.Name == name {
			return vm
		}
	}
	c.Expect(name).To(Equal("the name of a VM"))
	return vcdsim.VM{}
}

// records runs a query and returns its rows.
func (c *client) records(query string) []*xmltree.Node {
	var out []*xmltree.Node
	for _, n := range c.get("/api/query?" + query).xml.Children {
		if n.Name != "Link" {
			out = append(out, n)
		}
	}
	return out
}
