// SPDX-License-Identifier: Apache-2.0

package vsphere_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vsphere"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vsphere/vspheresim"
)

var zones = vsphere.Topology{Zone: "k8s-zone", Region: "k8s-region"}

func withZones(o *vsphere.MachineOptions) { o.Topology = zones }

// metadata returns the metadata of a new Node of a VM.
func (c *cluster) metadata(s *site, name string) *cloudprovider.InstanceMetadata {
	c.t.Helper()
	m, err := c.InstanceMetadata(c.t.Context(), c.fresh(s, name))
	c.Expect(err).NotTo(HaveOccurred())
	return m
}

// ref returns an ancestor of a VM in the cluster of hosts.
func (s *site) ref(vm, kind string) mo.Reference {
	of := s.vm(vm)
	host := s.model.Map().Get(*of.Runtime.Host).(*simulator.HostSystem)
	switch kind {
	case "VirtualMachine":
		return of.Reference()
	case "HostSystem":
		return host.Reference()
	case "ComputeResource":
		return *host.Parent
	case "ResourcePool":
		return *of.ResourcePool
	case "Folder":
		return *of.Parent
	}
	return s.any(kind).Reference()
}

func TestTheNearestTagWins(t *testing.T) {
	far := []string{"Root", "Datacenter", "Folder", "ResourcePool", "ComputeResource", "HostSystem", "VirtualMachine"}
	s := newSite(t)
	name := s.rename(1)[0]
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, withZones)
	for _, kind := range far {
		ref := s.client.ServiceContent.RootFolder
		if kind != "Root" {
			ref = s.ref(name, kind).Reference()
		}
		s.tag("k8s-zone", "by-"+kind, ref)
		s.tag("unrelated", "noise-"+kind, ref)
		c.clock.Step(10 * time.Minute)

		c.Expect(c.metadata(s, name).Zone).To(Equal("by-"+kind), "nearer than all others")
	}
}

func TestAZoneAndARegionFromDifferentPlaces(t *testing.T) {
	s := newSite(t)
	name := s.rename(1)[0]
	s.tag("k8s-zone", "rack 7/a", s.ref(name, "HostSystem"))
	s.tag("k8s-region", "sfo", s.ref(name, "Datacenter"))
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, withZones)

	m := c.metadata(s, name)

	c.Expect([]string{m.Zone, m.Region}).To(Equal([]string{"rack-7-a", "sfo"}))
	c.Expect(c.newEvents()).To(BeEmpty())
}

func TestAMissingTagIsAWarning(t *testing.T) {
	s := newSite(t)
	name := s.rename(1)[0]
	s.tag("k8s-zone", "a", s.ref(name, "HostSystem"))
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, withZones)

	m := c.metadata(s, name)

	c.Expect([]string{m.Zone, m.Region}).To(Equal([]string{"a", ""}))
	c.Expect(c.newEvents()).To(ConsistOf(And(ContainSubstring("TagNotFound"), ContainSubstring(`"k8s-region"`), ContainSubstring("the Node has no region"))))

	s.tag("k8s-region", "r", s.ref(name, "Datacenter"))
	c.clock.Step(10 * time.Minute)
	c.Expect(c.metadata(s, name).Region).To(Equal("r"), "once corrected, it is noticed")
}

func TestSeveralTagsInACategory(t *testing.T) {
	s := newSite(t)
	name := s.rename(1)[0]
	for _, zone := range []string{"b", "a"} {
		s.tag("k8s-zone", zone, s.ref(name, "HostSystem"))
	}
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, func(o *vsphere.MachineOptions) { o.Topology.Zone = "k8s-zone" })

	c.Expect(c.metadata(s, name).Zone).To(Equal("a"), "in a stable order")
	c.Expect(c.newEvents()).To(ConsistOf(ContainSubstring("TagAmbiguous")))
}

func TestUnreadableTagsDelayOnlyNewNodes(t *testing.T) {
	s := newSite(t)
	name := s.rename(1)[0]
	s.tag("k8s-zone", "a", s.ref(name, "HostSystem"))
	c := newCluster(t, []vsphere.VCenter{s.vCenter(func(v *vsphere.VCenter) { v.Datacenters = nil })}, withZones)
	s.failTags(http.StatusServiceUnavailable)

	_, err := c.InstanceMetadata(t.Context(), c.fresh(s, name))
	c.Expect(err).To(MatchError(ContainSubstring("its zone and region are not known yet")))
	node := c.fresh(s, name)
	node.Spec.ProviderID = "vsphere://" + s.vm(name).Config.Uuid
	node.Spec.Taints = nil
	_, err = c.InstanceMetadata(t.Context(), node)
	c.Expect(err).NotTo(HaveOccurred(), "its addresses are updated")
	c.Expect(c.InstanceExists(t.Context(), node)).To(BeTrue())

	s.failTags(0)
	c.clock.Step(time.Minute)
	c.Expect(c.metadata(s, name).Zone).To(Equal("a"))
}

// TestAnAncestorWithHiddenTagsDelaysNothing covers a user who is restricted to a datacenter and may not read the tags
// of the datacenter's ancestors. vCenter then rejects the request for all objects at once. Its documents do not exclude
// that.
func TestAnAncestorWithHiddenTagsDelaysNothing(t *testing.T) {
	s := newSite(t)
	names := s.rename(4)
	s.tag("k8s-zone", "a", s.ref(names[0], "HostSystem"))
	s.tag("k8s-region", "r", s.ref(names[0], "Datacenter"))
	root := s.client.ServiceContent.RootFolder
	s.tag("k8s-region", "everywhere", root)
	s.hideTags(root, s.ref(names[0], "ResourcePool"))
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, withZones)
	s.counted()

	m := c.metadata(s, names[0])

	c.Expect(m.Zone).To(Equal("a"))
	c.Expect(m.Region).To(Equal("r"))
	lists := func() (n int) {
		for call, times := range s.counted() {
			if strings.Contains(call, "/tagging/tag-association") {
				n += times
			}
		}
		return n
	}
	c.Expect(lists()).To(BeNumerically("<=", 16), "halves of halves, not each object")

	c.clock.Step(10 * time.Minute)
	c.metadata(s, names[0])
	c.Expect(lists()).To(Equal(1), "hidden tags are skipped for an hour")

	s.hideTags()
	c.clock.Step(time.Hour)
	c.metadata(s, names[0])
	c.Expect(lists()).To(Equal(1), "and requested again")
}

func TestARejectedTagLoginIsNotRetriedSoon(t *testing.T) {
	s := newSite(t)
	name := s.rename(1)[0]
	s.tag("k8s-zone", "a", s.ref(name, "HostSystem"))
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, withZones)
	s.failTags(http.StatusUnauthorized)
	s.counted()

	for range 10 {
		_, err := c.InstanceMetadata(t.Context(), c.fresh(s, name))
		c.Expect(err).To(MatchError(ContainSubstring("its zone and region are not known yet")))
		trouble, _ := vsphere.Explain(err)
		c.Expect(trouble).To(And(HaveField("Reason", "VCenterCredentialsRejected"), HaveField("Stays", BeTrue())))
		c.clock.Step(time.Minute)
	}

	logins := 0
	for call, n := range s.counted() {
		if strings.HasSuffix(call, "/cis/session") {
			logins += n
		}
	}
	c.Expect(logins).To(Equal(1), "vCenter locks accounts")
	s.failTags(0)
	c.clock.Step(15 * time.Minute)
	c.Expect(c.metadata(s, name).Zone).To(Equal("a"))
}

// Every VM of a vCenter may have its own tags that are not zones. Each tag is read once.
func TestTagsOfOtherCategoriesAreReadOnce(t *testing.T) {
	s := newSite(t)
	names := s.rename(4)
	s.tag("k8s-zone", "a", s.ref(names[0], "Datacenter"))
	s.tag("k8s-region", "r", s.ref(names[0], "Datacenter"))
	for i, name := range names {
		s.tag("owner", fmt.Sprintf("person-%d", i), s.vm(name).Reference())
	}
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, withZones)
	tags := func() (n int) {
		for call, times := range s.counted() {
			if strings.Contains(call, "/tagging/tag/id:") {
				n += times
			}
		}
		return n
	}
	s.counted()
	c.metadata(s, names[0])
	c.Expect(tags()).To(Equal(6))

	c.clock.Step(10 * time.Minute)
	c.metadata(s, names[0])

	c.Expect(tags()).To(Equal(2), "the tags of zones and regions may have been renamed")
}

func TestASharedSessionHasNoZones(t *testing.T) {
	s := newSite(t)
	name := s.rename(1)[0]
	service := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		ticket, err := s.client.SessionManager.AcquireCloneTicket(r.Context())
		if err != nil {
			http.Error(to, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(to, `{"token": %q}`, ticket)
	}))
	t.Cleanup(service.Close)
	c := newCluster(t, []vsphere.VCenter{s.vCenter(func(v *vsphere.VCenter) {
		v.Credentials = func(context.Context) (vsphere.Credentials, string, error) {
			return vsphere.Credentials{SharedSession: service.URL, SharedToken: "token"}, "shared", nil
		}
	})}, withZones)

	m := c.metadata(s, name)

	c.Expect([]string{m.Zone, m.Region}).To(Equal([]string{"", ""}))
	c.Expect(c.newEvents()).To(ConsistOf(And(ContainSubstring("TagNotFound"), ContainSubstring("a shared session cannot read tags"))))
}

func TestTheTagSessionIsLoggedOut(t *testing.T) {
	s := newSite(t)
	name := s.rename(1)[0]
	s.tag("k8s-zone", "a", s.ref(name, "HostSystem"))
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, withZones)
	c.Expect(c.metadata(s, name).Zone).To(Equal("a"))
	s.forgetTagSession = true
	c.clock.Step(10 * time.Minute)

	c.Expect(c.metadata(s, name).Zone).To(Equal("a"))
	c.Expect(c.newEvents()).To(ConsistOf(ContainSubstring("k8s-region")))
}

func TestInstanceTypeTagAndLabelsForHostAndCluster(t *testing.T) {
	s := newSite(t)
	var name string
	for _, name = range s.rename(len(s.all())) {
		if s.ref(name, "ComputeResource").Reference().Type == "ClusterComputeResource" {
			break
		}
	}
	s.tag("size", "large nodes", s.ref(name, "VirtualMachine"))
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, func(o *vsphere.MachineOptions) {
		o.Topology = vsphere.Topology{InstanceType: "size", HostLabel: "example.com/host", ClusterLabel: "example.com/cluster"}
		o.Labels = map[string]string{"example.com/site": "x"}
	})

	m := c.metadata(s, name)

	c.Expect(m.InstanceType).To(Equal("large-nodes"))
	c.Expect(m.AdditionalLabels).To(And(HaveKeyWithValue("example.com/host",
		MatchRegexp("^DC0_C0_H")), HaveKeyWithValue("example.com/cluster", "DC0_C0"),
		HaveKeyWithValue("example.com/site", "x")))
	c.Expect(c.newEvents()).To(BeEmpty(), "other VMs keep the type derived from their size")
}

func TestCallsFor500Nodes(t *testing.T) {
	for name, tt := range map[string]struct {
		mod  func(*vsphere.MachineOptions)
		most int
		zone string
	}{
		"without zones": {func(*vsphere.MachineOptions) {}, 5, ""},
		"with zones":    {withZones, 10, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			vspheresim.Multiply(s.model, 500)
			names := s.rename(500)
			s.tag("k8s-zone", "a", s.any("Datacenter"))
			s.tag("k8s-region", "r", s.any("Datacenter"))
			c := newCluster(t, []vsphere.VCenter{s.vCenter()}, tt.mod)
			s.counted()

			for _, node := range names {
				m := c.metadata(s, node)
				c.Expect(m.Zone).To(Equal(tt.zone))
			}

			calls := s.counted()
			total := 0
			for _, n := range calls {
				total += n
			}
			c.Expect(total).To(BeNumerically("<=", tt.most), fmt.Sprint(calls))
			t.Log(total, calls)
		})
	}
}

func TestReadsOf1000NodesAtRest(t *testing.T) {
	s := newSite(t)
	vspheresim.Multiply(s.model, 1000)
	names := s.rename(1000)
	c := newCluster(t, []vsphere.VCenter{s.vCenter()})
	s.counted()

	for range 3 { // a minute and a half, in which each Node is requested once
		for _, name := range names[:333] {
			c.metadata(s, name)
		}
		names = names[333:]
		c.clock.Step(30 * time.Second)
	}

	c.Expect(s.counted()["RetrievePropertiesEx"]).To(BeNumerically("<=", 3))
}

// TestMemoryOf500Nodes limits the memory of this backend. A program that serves no load balancers needs little more.
func TestMemoryOf500Nodes(t *testing.T) {
	s := newSite(t)
	vspheresim.Multiply(s.model, 500)
	s.rename(500)
	s.tag("k8s-zone", "a", s.any("Datacenter"))
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, withZones)
	before := heap()

	all, err := c.machines.Snapshot(t.Context(), 0)

	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(len(all)).To(BeNumerically(">=", 500))
	kept := heap() - before
	t.Logf("500 machines: %d KiB", kept>>10)
	s.Expect(kept).To(BeNumerically("<", 10<<20), "the simulator's session is in it, too")
	runtime.KeepAlive(c)
}

// heap returns the number of bytes in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
