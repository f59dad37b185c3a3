// SPDX-License-Identifier: Apache-2.0

package vsphere_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	cloudapi "k8s.io/cloud-provider/api"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vsphere"
)

// A cluster runs the core on the VMs of sites.
type cluster struct {
	*WithT
	*cpi.Instances

	t        *testing.T
	clock    *clocktesting.FakeClock
	machines *vsphere.Machines
	events   *record.FakeRecorder
	nodes    cache.Indexer
}

// newCluster returns a cluster on vCenters.
func newCluster(t *testing.T, vCenters []vsphere.VCenter, mods ...func(*vsphere.MachineOptions)) *cluster {
	t.Helper()
	c := &cluster{
		WithT:  NewWithT(t),
		t:      t,
		clock:  clocktesting.NewFakeClock(time.Now()),
		events: record.NewFakeRecorder(1000),
		nodes:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
	}
	o := vsphere.MachineOptions{
		VCenters: vCenters,
		Clock:    c.clock,
		NodeIDs: func() []string {
			var all []*corev1.Node
			for _, node := range c.nodes.List() {
				all = append(all, node.(*corev1.Node))
			}
			return vsphere.NodeIDs(all)
		},
	}
	for _, mod := range mods {
		mod(&o)
	}
	c.machines = vsphere.NewMachines(o)
	c.restart()
	t.Cleanup(func() { _ = c.machines.Close(t.Context()) })
	return c
}

// restart drops all state of the core.
func (c *cluster) restart() {
	c.Instances = cpi.NewInstances(cpi.InstanceOptions{
		Name:     vsphere.ProviderName,
		Machines: c.machines,
		Nodes:    corelisters.NewNodeLister(c.nodes),
		Recorder: c.events,
		Clock:    c.clock,
	})
}

// join initializes the Node of a VM.
func (c *cluster) join(s *site, name string) *corev1.Node {
	c.t.Helper()
	node := c.fresh(s, name)
	metadata, err := c.InstanceMetadata(c.t.Context(), node)
	c.Expect(err).NotTo(HaveOccurred())
	node.Spec.ProviderID = metadata.ProviderID
	node.Spec.Taints = nil
	c.Expect(c.nodes.Update(node)).To(Succeed())
	return node
}

// fresh returns the Node of a VM as created by its kubelet.
func (c *cluster) fresh(s *site, name string) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(c.clock.Now().Add(-48 * time.Hour))},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: cloudapi.TaintExternalCloudProvider, Effect: corev1.TaintEffectNoSchedule}}},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: s.vm(name).Config.Uuid}},
	}
	c.Expect(c.nodes.Add(node)).To(Succeed())
	return node
}

// stays checks for a quarter of an hour that a Node is not deleted, and returns the last error.
func (c *cluster) stays(node *corev1.Node) (last error) {
	c.t.Helper()
	for range 15 {
		exists, err := c.InstanceExists(c.t.Context(), node)
		if err == nil {
			c.Expect(exists).To(BeTrue())
		}
		last = err
		c.clock.Step(time.Minute)
	}
	return last
}

// newEvents returns the events since the last call.
func (c *cluster) newEvents() []string {
	var all []string
	for {
		select {
		case event := <-c.events.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

func (c *cluster) shutdown(node *corev1.Node) bool {
	c.t.Helper()
	c.clock.Step(time.Minute)
	down, err := c.InstanceShutdown(c.t.Context(), node)
	c.Expect(err).NotTo(HaveOccurred())
	return down
}

func one(t *testing.T, mods ...func(*vsphere.MachineOptions)) (*site, *cluster, *corev1.Node) {
	t.Helper()
	s := newSite(t)
	c := newCluster(t, []vsphere.VCenter{s.vCenter()}, mods...)
	names := s.rename(len(s.all()))
	var first *corev1.Node
	for _, name := range names {
		if node := c.join(s, name); first == nil {
			first = node
		}
	}
	return s, c, first
}

func TestANodeHasTheIdentityOfItsVM(t *testing.T) {
	s, c, node := one(t)
	vm := s.vm(node.Name)

	m, err := c.InstanceMetadata(t.Context(), node)

	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(m.ProviderID).To(Equal("vsphere://" + vm.Config.Uuid))
	c.Expect(m.InstanceType).To(Equal("vsphere-vm.cpu-1.mem-0gb.os-other"))
	c.Expect(m.NodeAddresses).To(Equal([]corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
		{Type: corev1.NodeExternalIP, Address: "10.0.0.1"},
		{Type: corev1.NodeHostName, Address: "n1"},
	}))
}

func TestAMovedVM(t *testing.T) {
	s, c, node := one(t)
	s.change(node.Name, func(vm *mo.VirtualMachine) {
		for _, host := range s.model.Map().All("HostSystem") {
			if ref := host.Reference(); ref != *vm.Runtime.Host {
				vm.Runtime.Host = &ref
			}
		}
	})

	c.Expect(c.stays(node)).To(Succeed())
	c.Expect(c.shutdown(node)).To(BeFalse())
	c.Expect(c.newEvents()).To(BeEmpty())
}

func TestARenamedVM(t *testing.T) {
	s, c, node := one(t)
	s.done(s.object(node.Name).Rename(t.Context(), "another"))

	c.Expect(c.stays(node)).To(Succeed())
	c.Expect(c.newEvents()).To(BeEmpty())
}

func TestAPoweredOffOrSuspendedVMIsShutDown(t *testing.T) {
	s, c, node := one(t)
	s.powerOff(node.Name)
	s.change(node.Name, func(vm *mo.VirtualMachine) {
		vm.Guest.Net = nil
		vm.Guest.HostName = ""
	}) // VMware Tools are off, too

	c.Expect(c.shutdown(node)).To(BeTrue())
	c.Expect(c.stays(node)).To(Succeed())
	m, err := c.InstanceMetadata(t.Context(), node)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(m.NodeAddresses).To(BeEmpty(), "it keeps its addresses")

	s.change(node.Name, func(vm *mo.VirtualMachine) { vm.Runtime.PowerState = types.VirtualMachinePowerStateSuspended })
	c.Expect(c.shutdown(node)).To(BeTrue())
	c.Expect(c.newEvents()).To(BeEmpty())
}

func TestAVMWithoutTools(t *testing.T) {
	s, c, node := one(t)
	s.change(node.Name, func(vm *mo.VirtualMachine) {
		vm.Guest.Net = nil
		vm.Guest.HostName = ""
	})

	c.Expect(c.stays(node)).To(Succeed())
	c.Expect(c.shutdown(node)).To(BeFalse())
	_, err := c.InstanceMetadata(t.Context(), node)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(c.newEvents()).To(ConsistOf(ContainSubstring("AddressNotFound")))

	_, err = c.InstanceMetadata(t.Context(), c.fresh(s, node.Name))
	c.Expect(err).To(MatchError(ContainSubstring("no address yet")), "a new Node waits for VMware Tools")
}

func TestAVMWithUnreadableFiles(t *testing.T) {
	s, c, node := one(t)
	inaccessible := func() {
		s.change(node.Name, func(vm *mo.VirtualMachine) {
			vm.Config.Uuid = ""
			vm.Runtime.ConnectionState = types.VirtualMachineConnectionStateInaccessible
			vm.Runtime.PowerState = types.VirtualMachinePowerStatePoweredOff
		})
	}
	inaccessible()

	c.Expect(c.stays(node)).To(Succeed(), "it was observed before")
	c.Expect(c.shutdown(node)).To(BeFalse(), "its power state is unknown")

	again := newCluster(t, []vsphere.VCenter{s.vCenter()})
	for _, n := range c.nodes.List() {
		again.Expect(again.nodes.Add(n)).To(Succeed())
	}
	again.Expect(again.stays(node)).To(MatchError(ContainSubstring("it is listed but not readable")), "a new process does not know the vCenter")
}

func TestAnUnresponsiveHost(t *testing.T) {
	s, c, node := one(t)
	s.change(node.Name, func(vm *mo.VirtualMachine) {
		vm.Runtime.ConnectionState = types.VirtualMachineConnectionStateDisconnected
		vm.Runtime.PowerState = types.VirtualMachinePowerStatePoweredOff
	})

	c.Expect(c.stays(node)).To(Succeed())
	c.Expect(c.shutdown(node)).To(BeFalse(), "it may be running")
}

func TestAnExpiredSession(t *testing.T) {
	s, c, node := one(t)
	for _, session := range s.sessions() {
		s.Expect(s.client.SessionManager.TerminateSession(t.Context(), []string{session})).To(Succeed())
	}
	s.counted()

	c.Expect(c.stays(node)).To(Succeed())

	c.Expect(s.counted()["Login"]).To(Equal(1))
	c.Expect(c.newEvents()).To(BeEmpty())
}

// sessions returns the keys of all sessions except the administrator's.
func (s *site) sessions() []string {
	own, err := s.client.SessionManager.UserSession(s.t.Context())
	s.Expect(err).NotTo(HaveOccurred())
	var manager mo.SessionManager
	s.Expect(s.client.RetrieveOne(s.t.Context(), *s.client.ServiceContent.SessionManager, []string{"sessionList"}, &manager)).To(Succeed())
	var keys []string
	for _, session := range manager.SessionList {
		if session.Key != own.Key {
			keys = append(keys, session.Key)
		}
	}
	return keys
}

func TestOneOfTwoVCentersIsUnavailable(t *testing.T) {
	a := newSite(t)
	b := newSite(t)
	inA := a.rename(1)[0]
	inB := "m1"
	b.rename(1)
	b.change("n1", func(vm *mo.VirtualMachine) {
		vm.Name = inB
		vm.Guest.HostName = inB
	})
	second := b.vCenter()
	second.Name = "second"
	c := newCluster(t, []vsphere.VCenter{a.vCenter(), second})
	first := c.join(a, inA)
	other := c.join(b, inB)
	b.setAway(true)
	c.clock.Step(time.Minute)

	c.Expect(c.stays(first)).To(Succeed(), "it is visible")
	err := c.stays(other)
	c.Expect(err).To(MatchError(ContainSubstring("vCenter second")), "it may exist")
	trouble, ok := vsphere.Explain(err)
	c.Expect(ok).To(BeTrue())
	c.Expect(trouble.Reason).To(Equal("VCenterUnavailable"))
	a.powerOff(inA)
	c.Expect(c.shutdown(first)).To(BeTrue(), "the other vCenter still works")
	a.destroy(inA)
	c.Expect(c.stays(first)).To(HaveOccurred(), "it may have moved to the other vCenter")

	b.setAway(false)
	c.clock.Step(time.Minute)
	c.Expect(c.InstanceExists(t.Context(), other)).To(BeTrue())
	for range 2 {
		_, _ = c.InstanceExists(t.Context(), first)
		c.clock.Step(2 * time.Minute)
	}
	c.Expect(c.InstanceExists(t.Context(), first)).To(BeFalse())
}

func TestACanceledCallerDoesNotEndTheRead(t *testing.T) {
	s := newSite(t)
	c := newCluster(t, []vsphere.VCenter{s.vCenter()})
	release := s.hold()
	t.Cleanup(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := c.machines.Snapshot(ctx, time.Minute)

	c.Expect(err).To(MatchError(context.Canceled))
	release()
	_, err = c.machines.Snapshot(t.Context(), time.Minute)
	c.Expect(err).NotTo(HaveOccurred(), "a canceled caller is not a vCenter failure")
	c.Expect(s.counted()["Login"]).To(Equal(1), "the read continued")
}

func TestAFailureIsCachedFromTheEndOfTheRead(t *testing.T) {
	s := newSite(t)
	c := newCluster(t, []vsphere.VCenter{s.vCenter()})
	release := s.hold()
	t.Cleanup(release)
	failed := make(chan error)
	go func() {
		_, err := c.machines.Snapshot(t.Context(), 0)
		failed <- err
	}()
	c.Eventually(func() int { return len(s.counted()) }).Should(BeNumerically(">", 0))
	c.clock.Step(time.Minute)
	s.setAway(true)
	release()
	c.Expect(<-failed).To(HaveOccurred())
	s.counted()

	_, err := c.machines.Snapshot(t.Context(), 0)

	c.Expect(err).To(HaveOccurred())
	c.Expect(s.counted()).To(BeEmpty(), "it has just failed")
}

func TestADeletedVM(t *testing.T) {
	s, c, node := one(t)
	s.destroy(node.Name)
	c.clock.Step(time.Minute)

	_, err := c.InstanceExists(t.Context(), node)
	c.Expect(err).To(MatchError(ContainSubstring("still missing in one minute")))
	c.Expect(c.newEvents()).To(ConsistOf(ContainSubstring("MachineMissing")))
	c.clock.Step(2 * time.Minute)
	c.Expect(c.InstanceExists(t.Context(), node)).To(BeFalse())
}

func TestAVMMigratedToAnotherVCenterIsNotGone(t *testing.T) {
	s, c, node := one(t)
	moved := types.VmEmigratingEvent{}
	moved.Vm = &types.VmEventArgument{Vm: s.vm(node.Name).Reference()}
	s.Expect(event.NewManager(s.client.Client).PostEvent(t.Context(), &moved)).To(Succeed())
	s.destroy(node.Name)

	for range 10 {
		c.clock.Step(time.Minute)
		_, err := c.InstanceExists(t.Context(), node)
		c.Expect(err).To(MatchError(ContainSubstring("was migrated from vCenter")))
	}
	c.Expect(c.newEvents()).To(ConsistOf(And(ContainSubstring("MachineOutOfScope"),
		ContainSubstring("add that vCenter to the configuration"))), "once")
}

// A vCenter omits objects that the user cannot see from every response, as if they were deleted.
func TestAVMWithAnUnknownVCenterIsGoneOnlyIfNoVCenterHasIt(t *testing.T) {
	for name, tt := range map[string]struct {
		propagate, sibling, gone bool
	}{
		"a role on the root folder only":               {false, false, false},
		"the user can see everything":                  {true, false, true},
		"each vCenter shows a different VM for a Node": {false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newSite(t)
			b := newSite(t)
			second := b.vCenter()
			second.Name = "second"
			before := newCluster(t, []vsphere.VCenter{a.vCenter(), second})
			a.rename(2)
			b.rename(2)
			for old, n := range map[string]string{"n1": "m1", "n2": "m2"} {
				b.change(old, func(vm *mo.VirtualMachine) {
					vm.Name = n
					vm.Guest.HostName = n
				})
			}
			before.join(a, "n1")
			before.join(a, "n2")
			hidden := before.join(b, "m1")
			if tt.sibling {
				before.join(b, "m2")
			}
			b.destroy("m1")
			a.permit(tt.propagate)
			b.permit(tt.propagate)

			c := newCluster(t, []vsphere.VCenter{a.vCenter(), second}) // a new process
			for _, node := range before.nodes.List() {
				c.Expect(c.nodes.Add(node)).To(Succeed())
			}
			if !tt.gone {
				c.Expect(c.stays(hidden)).To(MatchError(ContainSubstring("the user")))
				return
			}
			_, err := c.InstanceExists(t.Context(), hidden)
			c.Expect(err).To(MatchError(ContainSubstring("still missing in one minute")))
			c.clock.Step(2 * time.Minute)
			c.Expect(c.InstanceExists(t.Context(), hidden)).To(BeFalse())
		})
	}
}

func TestADeletedYoungVM(t *testing.T) {
	s, c, node := one(t)
	node.CreationTimestamp = metav1.NewTime(c.clock.Now())
	s.destroy(node.Name)
	c.clock.Step(time.Minute)
	_, err := c.InstanceExists(t.Context(), node)
	c.Expect(err).To(HaveOccurred())
	c.clock.Step(2 * time.Minute)

	c.Expect(c.InstanceExists(t.Context(), node)).To(BeFalse(), "vCenter reports its deletion")
}

func TestNoNodeIsDeletedIfConfigured(t *testing.T) {
	s, c, node := one(t, func(o *vsphere.MachineOptions) { o.KeepNodes = true })
	s.destroy(node.Name)

	c.Expect(c.stays(node)).To(MatchError(ContainSubstring("SKIP_NODE_DELETION")))
}

func TestAVMInAnUnconfiguredDatacenterIsNotGone(t *testing.T) {
	s := newSite(t, func(m *simulator.Model) { m.Datacenter = 2 })
	c := newCluster(t, []vsphere.VCenter{s.vCenter()})
	names := s.rename(len(s.all()))
	var nodes []*corev1.Node
	for _, name := range names {
		nodes = append(nodes, c.join(s, name))
	}
	only := newCluster(t, []vsphere.VCenter{s.vCenter(func(v *vsphere.VCenter) { v.Datacenters = []string{"/DC1"} })})
	for _, node := range nodes {
		only.Expect(only.nodes.Add(node)).To(Succeed())
	}
	seen, err := only.machines.Snapshot(t.Context(), 0)
	only.Expect(err).NotTo(HaveOccurred())
	only.Expect(len(seen)).To(And(BeNumerically(">", 0), BeNumerically("<", len(names))))

	for _, node := range nodes {
		exists, err := only.InstanceExists(t.Context(), node)
		if err == nil {
			only.Expect(exists).To(BeTrue())
		} else {
			only.Expect(err).To(MatchError(ContainSubstring("it is listed")))
		}
	}
}

func TestANonexistentDatacenter(t *testing.T) {
	s := newSite(t)
	c := newCluster(t, []vsphere.VCenter{s.vCenter(func(v *vsphere.VCenter) { v.Datacenters = []string{"DC0", "DC9"} })})

	_, err := c.machines.Snapshot(t.Context(), 0)

	c.Expect(err).To(MatchError(ContainSubstring(`"DC9" is not visible: correct its name`)))
	trouble, _ := vsphere.Explain(err)
	c.Expect(trouble).To(HaveField("Stays", BeTrue()))
}

func TestTwoVMsWithOneNameAndUUID(t *testing.T) {
	s := newSite(t)
	names := s.rename(2)
	id := s.vm(names[0]).Config.Uuid
	s.change(names[1], func(vm *mo.VirtualMachine) {
		vm.Config.Uuid = id
		vm.Guest.HostName = names[0]
	})
	c := newCluster(t, []vsphere.VCenter{s.vCenter()})

	_, err := c.InstanceMetadata(t.Context(), c.fresh(s, names[0]))
	c.Expect(err).To(HaveOccurred())
	c.Expect(c.newEvents()).To(ConsistOf(ContainSubstring("MachineAmbiguous")))

	s.change(names[1], func(vm *mo.VirtualMachine) { vm.Config.Uuid = "422e4956-ad22-1139-6d72-59cc8f26bc90" })
	c.clock.Step(time.Minute)
	_, err = c.InstanceMetadata(t.Context(), c.fresh(s, names[0]))
	c.Expect(err).NotTo(HaveOccurred(), "once corrected, it continues")
}
