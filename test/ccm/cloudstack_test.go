// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
)

// A cloudStack is a cloud: a simulated Apache CloudStack with one network of nodes.
type cloudStack struct {
	*cloudstacksim.Simulator

	server *httptest.Server

	mu   sync.Mutex
	seen []request
}

// newCloudStack starts a simulator with n machines, in an isolated network or, if vpc is the ID of a VPC, in one of its
// tiers. The machines depend only on n.
func newCloudStack(n int, vpc string) *cloudStack {
	sim := cloudstacksim.New(cloudstacksim.Options{})
	network := sim.AddNetwork("nodes", vpc)
	for i := range n {
		sim.AddVM(fmt.Sprintf("cs-%03d", i), []string{network}, []string{fmt.Sprintf("10.40.%d.%d", 1+i/250, 1+i%250)})
	}
	for i := range 250 {
		sim.AddAddresses(fmt.Sprintf("203.0.113.%d", i+1))
	}
	return &cloudStack{Simulator: sim, server: httptest.NewServer(sim)}
}

// files implements program.
func (c *cloudStack) files(s settings) (string, map[string]string, error) {
	const config = "cloud-config"
	return config, map[string]string{config: fmt.Sprintf(`[Global]
api-url = %s/client/api
api-key = %s
secret-key = %s
cluster-id = %s
max-age = %s
[LoadBalancer]
drift-interval = %s
`, c.server.URL, cloudstacksim.UserKey, cloudstacksim.UserSecret, s["clusterid"], s.or("nodes.maxAge", "1s"),
		s.or("loadbalancer.driftInterval", "10s"))}, nil
}

// secret implements program.
func (*cloudStack) secret() map[string]string { return nil }

// manifest implements program.
func (*cloudStack) manifest() addons.Cloud { return addons.CloudStack() }

// lacks implements program.
func (*cloudStack) lacks() map[capability]string {
	return map[capability]string{healthChecks: "the router does not probe members"}
}

// machines implements compute.
func (c *cloudStack) machines() []machine {
	var out []machine
	for _, vm := range c.Objects(cloudstacksim.VMs) {
		out = append(out, machine{
			Name:       fmt.Sprint(vm["name"]),
			ProviderID: fmt.Sprintf("external-cloudstack://%v", vm["id"]),
			Addresses:  []netip.Addr{netip.MustParseAddr(fmt.Sprint(nic(vm)["ipaddress"]))},
		})
	}
	return out
}

// nic returns the only NIC of a machine.
func nic(vm cloudstacksim.Object) cloudstacksim.Object {
	all, _ := vm["nic"].([]cloudstacksim.Object)
	return all[0]
}

// edit changes a machine.
func (c *cloudStack) edit(name string, change func(cloudstacksim.Object)) {
	c.Edit(cloudstacksim.VMs, func(o cloudstacksim.Object) bool {
		if o["name"] == name {
			change(o)
		}
		return true
	})
}

func (c *cloudStack) powerOff(name string) {
	c.edit(name, func(o cloudstacksim.Object) { o["state"] = "Stopped" })
}

func (c *cloudStack) powerOn(name string) {
	c.edit(name, func(o cloudstacksim.Object) { o["state"] = "Running" })
}

// remove destroys a machine, as its owner does. CloudStack records an event.
func (c *cloudStack) remove(name string) {
	c.edit(name, func(o cloudstacksim.Object) { o["state"] = "Expunging" })
	for _, vm := range c.Objects(cloudstacksim.VMs) {
		if vm["name"] == name {
			c.Add(cloudstacksim.Events, cloudstacksim.Object{
				"type":         "VM.DESTROY",
				"state":        "Completed",
				"resourceid":   vm["id"],
				"resourcetype": "VirtualMachine",
			})
		}
	}
}

func (c *cloudStack) readdress(name string, to netip.Addr) {
	c.edit(name, func(o cloudstacksim.Object) {
		o["nic"] = []cloudstacksim.Object{{
			"id":        nic(o)["id"],
			"networkid": nic(o)["networkid"],
			"ipaddress": to.String(),
			"isdefault": true,
		}}
	})
}

// owned returns the objects of a kind with an owner's marker, or all objects if uid is empty.
func (c *cloudStack) owned(kind, uid string) []cloudstacksim.Object {
	return slices.DeleteFunc(c.Objects(kind), func(o cloudstacksim.Object) bool {
		marks := fmt.Sprint(o["description"], o["reason"], o["tags"])
		return o["state"] == "Free" || uid != "" && !strings.Contains(marks, "uid="+uid+" ")
	})
}

// frontends implements loadBalancing.
func (c *cloudStack) frontends(uid string) []frontend {
	addresses := map[string]netip.Addr{}
	for _, m := range c.machines() {
		addresses[strings.TrimPrefix(m.ProviderID, "external-cloudstack://")] = m.Addresses[0]
	}
	filters := append(c.owned(cloudstacksim.Firewalls, uid), c.owned(cloudstacksim.ACLs, uid)...)
	var out []frontend
	for _, r := range c.owned(cloudstacksim.Rules, uid) {
		protocol, _, _ := strings.Cut(fmt.Sprint(r["protocol"]), "-")
		open := slices.ContainsFunc(filters, func(f cloudstacksim.Object) bool {
			return fmt.Sprint(f["startport"]) == r["publicport"] && f["protocol"] == protocol &&
				(f["ipaddressid"] == nil || f["ipaddressid"] == r["publicipid"])
		})
		if !open {
			continue
		}
		f := frontend{
			Address:  netip.MustParseAddr(fmt.Sprint(r["publicip"])),
			Protocol: strings.ToUpper(protocol),
			Sticky:   r["algorithm"] == "source",
		}
		_, _ = fmt.Sscan(fmt.Sprint(r["publicport"]), &f.Port)
		for _, id := range c.Members(fmt.Sprint(r["id"])) {
			f.Backends = append(f.Backends, fmt.Sprintf("%s:%v", addresses[id], r["privateport"]))
		}
		slices.Sort(f.Backends)
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b frontend) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// kindsOfCloudStack returns the kinds of objects that form load balancers.
func kindsOfCloudStack() []string {
	return []string{cloudstacksim.Addresses, cloudstacksim.Rules, cloudstacksim.Firewalls, cloudstacksim.ACLs}
}

// leftovers implements loadBalancing.
func (c *cloudStack) leftovers(uid string) []string {
	var out []string
	for _, kind := range kindsOfCloudStack() {
		for _, o := range c.owned(kind, uid) {
			out = append(out, fmt.Sprintf("%s %v", kind, o["id"]))
		}
	}
	return out
}

// snapshot implements loadBalancing.
func (c *cloudStack) snapshot(uid string) []string {
	var out []string
	for _, kind := range kindsOfCloudStack() {
		for _, o := range c.owned(kind, uid) {
			text := strings.ReplaceAll(fmt.Sprintf("%v", o), " ", "_")
			out = append(out, fmt.Sprintf("%s %s_%v", kind, text, c.Members(fmt.Sprint(o["id"]))))
		}
	}
	return out
}

// deleteFrontends implements loadBalancing.
func (c *cloudStack) deleteFrontends(_ *testing.T, uid string) {
	for _, kind := range []string{cloudstacksim.Rules, cloudstacksim.Firewalls, cloudstacksim.ACLs} {
		ours := c.owned(kind, uid)
		c.Delete(kind, func(o cloudstacksim.Object) bool {
			return slices.ContainsFunc(ours, func(x cloudstacksim.Object) bool { return x["id"] == o["id"] })
		})
	}
}

// addressAnnotation implements loadBalancing.
func (*cloudStack) addressAnnotation() string {
	return "service.beta.kubernetes.io/cloudstack-load-balancer-address"
}

// requests implements wire.
func (c *cloudStack) requests() []request {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, command := range c.Calls() {
		kind := writing
		if strings.HasPrefix(command, "list") {
			kind = reading
		}
		c.seen = append(c.seen, request{Operation: command, Kind: kind})
	}
	return slices.Clone(c.seen)
}

func (c *cloudStack) forget() {
	c.requests()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = nil
}

func (c *cloudStack) close() error {
	c.server.Close()
	return nil
}

// TestClustersThatShareANetworkOfCloudStack runs two clusters in one account and network. Each process is killed while
// both serve a Service. Neither cluster may change or report objects of the other.
func TestClustersThatShareANetworkOfCloudStack(t *testing.T) {
	t.Parallel()
	const searched = "15s" // The search for orphaned load balancers runs one drift interval after the start.
	c := newCloudStack(fleet, "")
	var all []*service
	for _, name := range []string{"sharing-1", "sharing-2"} {
		w := newFixture(t, name, fixtureOption{
			cluster: clusterOf(t, name, c.manifest(), c.machines()[:baseNodes]),
			cloud:   c,
			args:    []string{nodeControllers},
		})
		all = append(all, w.service(t, "web"))
	}
	var before []string
	for _, s := range all {
		s.awaitServed()
		before = append(before, c.snapshot(s.uid)...)
	}

	for _, s := range all {
		s.g.Expect(s.controller.Kill()).To(Succeed())
		s.g.Expect(s.controller.Start(t.Context())).To(Succeed())
	}

	g := NewWithT(t)
	orphans := func() []string {
		lines := strings.Split(all[0].controller.log()+all[1].controller.log(), "\n")
		return slices.DeleteFunc(lines, func(line string) bool {
			return !strings.Contains(line, "A load balancer has no Service")
		})
	}
	g.Consistently(orphans, searched, poll).Should(BeEmpty())
	for i, s := range all {
		s.awaitServed()
		g.Expect(before).To(ContainElements(c.snapshot(s.uid)), "cluster %d", i+1)
	}
	all[0].delete()
	all[1].awaitServed()
}
