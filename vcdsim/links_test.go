// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Clients find most addresses in the responses to other requests.
func TestEveryLinkIsServed(t *testing.T) {
	for _, preset := range vcdsim.PresetNames() {
		model, _ := vcdsim.PresetByName(preset)
		smallFleets(&model)
		tenant := start(t, func(cfg *vcdsim.Config) { cfg.Model = model })
		tenant = tenant.user("admin")
		tenant.live()
		for user, c := range map[string]*client{"tenant": tenant, "provider": tenant.provider()} {
			t.Run(preset+" "+user, func(t *testing.T) {
				crawl := newCrawl(c)
				crawl.run()

				NewWithT(t).Expect(strings.Join(crawl.dead, "\n")).To(BeEmpty())
				NewWithT(t).Expect(len(crawl.operations)).To(BeNumerically(">", 80), "the minimum number of kinds of addresses")
			})
		}
	}
}

// smallFleets reduces the number of VMs in a model.
func smallFleets(m *vcdsim.Model) {
	for o := range m.Orgs {
		for v := range m.Orgs[o].VDCs {
			fleet := &m.Orgs[o].VDCs[v].Fleet
			fleet.VApps = min(fleet.VApps, 2)
			fleet.VMsPerVApp = min(fleet.VMsPerVApp, 2)
		}
	}
}

// live creates one object of every kind that fits in the preset.
func (c *client) live() {
	media := c.sim.URL() + c.iso("tools", "0123456789")
	c.promise("unfinished", 10)
	c.promiseTemplate("unfinished-template")
	disk := c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`).xml.Attr("href")
	if len(c.model().VDCs[0].Networks) == 0 {
		return
	}
	vapp := c.vapp("cluster")
	node := c.vm(vapp, "node")
	second := c.vm(vapp, "second")
	c.ok(http.MethodPut, vapp+"/metadata/k",
		`<MetadataValue `+xmlns+
			` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><TypedValue xsi:type="MetadataStringValue"><Value>v</Value></TypedValue></MetadataValue>`)
	c.ok(http.MethodPost, node+"/disk/action/attach",
		`<DiskAttachOrDetachParams `+xmlns+`><Disk href="`+disk+`"/></DiskAttachOrDetachParams>`)
	c.ok(http.MethodPost, node+"/media/action/insertMedia",
		`<MediaInsertOrEjectParams `+xmlns+`><Media href="`+media+`"/></MediaInsertOrEjectParams>`)
	c.ok(http.MethodPost, second+"/action/createSnapshot", "")
	c.ok(http.MethodPost, node+"/power/action/powerOn", "")
	c.ok(http.MethodPost, c.vdc()+"/vmAffinityRules/", c.affinity("apart", "Anti-Affinity", true, node, second))
	c.liveNetwork()
}

// liveNetwork creates one object of each kind on a gateway.
func (c *client) liveNetwork() {
	addresses := []string{"203.0.113.20", "203.0.113.21"}
	if len(c.gateway().Uplinks[0].Subnets) == 0 {
		addresses, _ = c.allocate(`{"type":"FLOATING_IP","quantity":3}`)
		marked := cloudAPI + c.space() + "/allocations/" + c.allocations(";value==" + addresses[2])[0]["id"].(string)
		c.ok(http.MethodPut, marked, with(c.get(marked).json, map[string]any{"usageState": "USED_MANUAL"}))
	}
	pool := c.pool("api", "192.168.100.11")
	c.make("loadBalancer/virtualServices", c.service("api", pool, addresses[0], 6443))
	c.make(c.natPath(), dnat("web", addresses[1], "192.168.100.11", ""))
	c.make("firewallGroups", `{"name":"nodes","type":"IP_SET","ownerRef":{"id":"`+c.ownerOfGroups()+
		`"},"ipAddresses":["192.168.100.11"]}`)
	provider := c.provider()
	for _, path := range []string{
		"edgeGateways/" + c.gatewayURN(),
		"externalNetworks/urn:vcloud:network:" + c.sim.State().Model.ExternalNetworks[0].ID,
	} {
		provider.ok(http.MethodPut, cloudAPI+path, with(provider.get(cloudAPI+path).json, nil))
	}
}

// ownerOfGroups returns the owner of the gateway's firewall groups.
func (c *client) ownerOfGroups() string {
	if len(c.model().VDCGroups) > 0 {
		return c.groupURN()
	}
	return c.gatewayURN()
}

// methods are the methods of links, by their relation. A link with another relation is an action, which is a POST.
var methods = map[string]string{
	"":                 http.MethodGet,
	"alternate":        http.MethodGet,
	"catalogItem":      http.MethodGet,
	"down":             http.MethodGet,
	"edgeGateways":     http.MethodGet,
	"firstPage":        http.MethodGet,
	"lastPage":         http.MethodGet,
	"nextPage":         http.MethodGet,
	"orgVdcNetworks":   http.MethodGet,
	"previousPage":     http.MethodGet,
	"self":             http.MethodGet,
	"storageProfile":   http.MethodGet,
	"up":               http.MethodGet,
	"download:default": http.MethodGet,
	"edit":             http.MethodPut,
	"upload:default":   http.MethodPut,
	"remove":           http.MethodDelete,
}

// perOperation is the number of addresses that are read per operation. More of them show nothing new.
const perOperation = 12

// A crawl reads every address that it is given, and the addresses in the responses.
type crawl struct {
	client     *client
	routed     vcdsim.Finder
	seen       map[string]bool
	waiting    []string
	operations map[string]int
	dead       []string // kinds of dead links
}

func newCrawl(c *client) *crawl {
	plain, routed := vcdsim.Routes()
	out := &crawl{
		client:     c,
		routed:     routed,
		seen:       map[string]bool{},
		operations: map[string]int{},
	}
	for _, path := range plain {
		if path != "/api/sessions" {
			out.waiting = append(out.waiting, c.sim.URL()+path)
		}
	}
	return out
}

func (w *crawl) run() {
	for len(w.waiting) > 0 {
		next := w.waiting[0]
		w.waiting = w.waiting[1:]
		w.read(next)
	}
	slices.Sort(w.dead)
	w.dead = slices.Compact(w.dead)
}

// read reads an address, unless enough of its kind were read, and collects the links in the response.
func (w *crawl) read(address string) {
	operation, _ := w.routed(http.MethodGet, address)
	if w.seen[address] || w.operations[operation] >= perOperation {
		return
	}
	w.seen[address] = true
	w.operations[operation]++
	a := w.client.call(http.MethodGet, address, "")
	if a.status >= http.StatusInternalServerError {
		w.dead = append(w.dead, fmt.Sprintf("GET %s: %d", operation, a.status))
	}
	if a.status != http.StatusOK {
		return
	}
	w.headers(operation, a.header)
	if a.xml != nil {
		w.elements(operation, a.xml)
	}
	if a.json != nil {
		w.values(operation, a.json)
		w.items(operation, address, a.json)
	}
}

// follow validates a link and queues it if it can be read.
func (w *crawl) follow(from, rel, address string) {
	if !strings.HasPrefix(address, w.client.sim.URL()+"/") {
		return
	}
	method, known := methods[rel]
	if !known {
		method = http.MethodPost
	}
	operation, found := w.routed(method, address)
	switch {
	case !found:
		w.dead = append(w.dead, fmt.Sprintf("%s links to %s (%s)", from, operation, rel))
	case method == http.MethodGet:
		w.there(from, rel, operation, address)
	}
}

// there reads the target of a link for the first time. It must exist, but need not be permitted to everyone.
func (w *crawl) there(from, rel, operation, address string) {
	if w.seen[address] || w.operations[operation] >= perOperation {
		return
	}
	if status := w.client.call(http.MethodGet, address, "").status; status == http.StatusNotFound || status == http.StatusBadRequest {
		w.dead = append(w.dead, fmt.Sprintf("%s links to %s (%s): %d", from, operation, rel, status))
	}
	w.waiting = append(w.waiting, address)
}

// elements follows the links in a document.
func (w *crawl) elements(from string, n *xmltree.Node) {
	rel := n.Attr("rel")
	for _, a := range n.Attrs {
		w.follow(from, rel, a.Value)
	}
	for _, child := range n.Children {
		w.elements(from, child)
	}
}

// values follows the links in a JSON value.
func (w *crawl) values(from string, value any) {
	switch v := value.(type) {
	case string:
		w.follow(from, "", v)
	case []any:
		for _, item := range v {
			w.values(from, item)
		}
	case map[string]any:
		for _, item := range v {
			w.values(from, item)
		}
	}
}

// items reads each item of a list below the list's address, if items are served there.
func (w *crawl) items(from, address string, page map[string]any) {
	values, _ := page["values"].([]any)
	list, _, _ := strings.Cut(address, "?")
	for _, value := range values {
		item, _ := value.(map[string]any)
		id, _ := item["id"].(string)
		if _, found := w.routed(http.MethodGet, list+"/"+id); found && id != "" {
			w.follow(from, "", list+"/"+id)
		}
	}
}

var headerLink = regexp.MustCompile(`<([^>]*)>;rel="([^"]*)"`)

// headers follows the links in headers.
func (w *crawl) headers(from string, header http.Header) {
	w.follow(from, "", header.Get("Location"))
	for _, line := range header.Values("Link") {
		for _, link := range headerLink.FindAllStringSubmatch(line, -1) {
			w.follow(from, link[2], link[1])
		}
	}
}
