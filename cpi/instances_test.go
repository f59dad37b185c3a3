// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	cloudapi "k8s.io/cloud-provider/api"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
)

// A cloud is a fake cloud with the Nodes of a cluster.
type cloud struct {
	all         []Machine
	full        map[string]Machine
	gone        error // results of Get for incomplete machines
	err         error // of all calls
	reads, gets int

	nodes  cache.Indexer
	clock  *testingclock.FakePassiveClock
	events *record.FakeRecorder
}

func (c *cloud) Snapshot(context.Context, time.Duration) ([]Machine, error) {
	c.reads++
	return c.all, c.err
}

func (c *cloud) Get(_ context.Context, id string) (Machine, error) {
	c.gets++
	if m, ok := c.full[canonical(id)]; ok || c.err != nil {
		return m, c.err
	}
	return Machine{}, c.gone
}

var (
	// lost is a machine that is missing while all others are visible.
	lost = &AbsenceError{gone.Evidence{ScopeShown: true, HomeShown: true, Logged: true}}
	// hidden is a machine in a location where nothing is visible.
	hidden = &AbsenceError{}
)

func newCloud(machines ...Machine) *cloud {
	return &cloud{
		all:    machines,
		full:   map[string]Machine{},
		gone:   lost,
		clock:  testingclock.NewFakePassiveClock(time.Now()),
		nodes:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		events: record.NewFakeRecorder(100),
	}
}

func (c *cloud) instances(mods ...func(*InstanceOptions)) *Instances {
	o := InstanceOptions{
		Name:     "test",
		Machines: c,
		Nodes:    corelisters.NewNodeLister(c.nodes),
		Recorder: c.events,
		Clock:    c.clock,
	}
	for _, mod := range mods {
		mod(&o)
	}
	return NewInstances(o)
}

func (c *cloud) node(id string, mods ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + id},
		Spec:       corev1.NodeSpec{ProviderID: "test://" + id},
	}
	for _, mod := range mods {
		mod(n)
	}
	_ = c.nodes.Add(n)
	return n
}

func (c *cloud) pass(d time.Duration) { c.clock.SetTime(c.clock.Now().Add(d)) }

func nameless(n *corev1.Node) { n.Spec.ProviderID = "" }

func machine(id string, mods ...func(*Machine)) Machine {
	m := Machine{
		ProviderID: "test://" + id,
		Name:       "node-" + id,
		Power:      PowerOn,
		Type:       "large",
		Zone:       "a",
		Region:     "r",
		Revision:   "1",
		NICs:       []NIC{nic(0, "10.0.0.1")},
	}
	m.NICs[0].Primary = true
	for _, mod := range mods {
		mod(&m)
	}
	return m
}

func nic(index int, addresses ...string) NIC {
	n := NIC{Index: index}
	for _, a := range addresses {
		n.Addresses = append(n.Addresses, netip.MustParseAddr(a))
	}
	return n
}

func TestMetadata(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1", func(m *Machine) { m.Labels = map[string]string{"example.com/rack": "7"} }))
	i := c.instances()

	m, err := i.InstanceMetadata(t.Context(), c.node("1"))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.ProviderID).To(Equal("test://1"))
	g.Expect([]string{m.InstanceType, m.Zone, m.Region}).To(Equal([]string{"large", "a", "r"}))
	g.Expect(m.AdditionalLabels).To(HaveKeyWithValue("example.com/rack", "7"))
	g.Expect(m.NodeAddresses).To(Equal([]corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
		{Type: corev1.NodeHostName, Address: "node-1"},
	}))
	g.Expect(c.gets).To(BeZero())
}

func TestAnInvisibleMachineIsReportedOnItsNewNode(t *testing.T) {
	g := NewWithT(t)
	c := newCloud()
	c.gone = hidden
	fresh := c.node("a", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: cloudapi.TaintExternalCloudProvider, Effect: corev1.TaintEffectNoSchedule}}
	})

	for _, node := range []*corev1.Node{c.node("b"), fresh} {
		_, err := c.instances().InstanceMetadata(t.Context(), node)
		g.Expect(err).To(MatchError(ContainSubstring("is not visible")))
	}

	g.Expect(c.events.Events).To(HaveLen(1))
	g.Expect(c.events.Events).To(Receive(HavePrefix("Warning MachineNotVisible test://a is not visible in the cloud")))
}

func TestNodeOwner(t *testing.T) {
	doubtful := func(m *Machine) { m.Doubtful = true }
	g := NewWithT(t)
	c := newCloud(machine("1"), machine("Two", doubtful), machine("3", doubtful), machine("4"),
		machine("5", func(m *Machine) { m.Name = "node-4" }))
	c.full["test://two"] = machine("Two")
	c.full["test://3"] = machine("3", doubtful)
	i := c.instances()

	foreign := c.node("x", func(n *corev1.Node) { n.Spec.ProviderID = "static://x" })
	g.Expect(i.InstanceMetadata(t.Context(), foreign)).To(BeNil())
	g.Expect(i.InstanceExists(t.Context(), foreign)).To(BeTrue())
	g.Expect(i.InstanceShutdown(t.Context(), foreign)).To(BeFalse())
	g.Expect(c.reads).To(BeZero(), "another cloud's Node is not requested")

	found, err := i.InstanceMetadata(t.Context(), c.node("1", nameless))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.ProviderID).To(Equal("test://1"), "a Node without a provider ID is found by its name")
	found, err = i.InstanceMetadata(t.Context(), c.node("Two", nameless))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.ProviderID).To(Equal("test://Two"), "even if only the machine shows its owner")
	_, err = i.InstanceMetadata(t.Context(), c.node("3", nameless))
	g.Expect(err).To(MatchError(ContainSubstring("no machine of the cluster has its name")),
		"but not if it belongs to another cluster")
	_, err = i.InstanceMetadata(t.Context(), c.node("4", nameless))
	g.Expect(err).To(MatchError(ContainSubstring("2 machines of the cluster have its name")))
	g.Expect(i.InstanceExists(t.Context(), c.node("none", nameless))).To(BeTrue(),
		"nothing proves that the machine of a Node without a provider ID is gone")

	kept, err := i.InstanceMetadata(t.Context(),
		c.node("x", func(n *corev1.Node) { n.Spec.ProviderID = "TEST://tWo " }))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept.ProviderID).To(Equal("TEST://tWo "), "a provider ID is never changed")
}

func TestShutdown(t *testing.T) {
	for power, want := range map[Power]bool{PowerOn: false, PowerOff: true, PowerUnknown: false} {
		t.Run(string(power), func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(machine("1", func(m *Machine) { m.Power = power; m.NICs = nil }))

			g.Expect(c.instances().InstanceShutdown(t.Context(), c.node("1"))).To(Equal(want))
		})
	}
}

func TestAddresses(t *testing.T) {
	two := machine("1", func(m *Machine) {
		m.Complete = true
		m.NICs = []NIC{nic(0, "10.0.0.1", "fd00::1"), nic(1, "192.168.0.1", "169.254.0.1"), nic(2, "203.0.113.1")}
		m.NICs[1].Primary = true
	})
	any4 := netip.MustParsePrefix("10.0.0.0/8")
	any6 := netip.MustParsePrefix("fd00::/8")
	tests := []struct {
		name   string
		policy AddressPolicy
		given  string
		want   string
	}{
		{name: "the primary NIC's, regardless of its position", policy: AddressPolicy{}, want: "InternalIP=192.168.0.1"},
		{
			name:   "kubelet's address, too",
			policy: AddressPolicy{},
			given:  "10.0.0.1,fd00::1",
			want:   "InternalIP=192.168.0.1 InternalIP=10.0.0.1 InternalIP=fd00::1",
		},
		{name: "but not an address of another machine", policy: AddressPolicy{}, given: "10.0.0.9", want: "InternalIP=192.168.0.1"},
		{
			name:   "addresses of NICs, in their order",
			policy: AddressPolicy{Internal: Selection{NICs: []int{2, 0}}},
			want:   "InternalIP=203.0.113.1 InternalIP=10.0.0.1 InternalIP=fd00::1",
		},
		{
			name:   "addresses of networks",
			policy: AddressPolicy{Internal: Selection{CIDRs: []netip.Prefix{any6, any4}}},
			want:   "InternalIP=10.0.0.1 InternalIP=fd00::1",
		},
		{
			name:   "IPv6 first",
			policy: AddressPolicy{Internal: Selection{NICs: []int{0}}, IPv6: 1, IPv4: 2},
			want:   "InternalIP=fd00::1 InternalIP=10.0.0.1",
		},
		{name: "only IPv6", policy: AddressPolicy{Internal: Selection{NICs: []int{0}}, IPv6: 1}, want: "InternalIP=fd00::1"},
		{
			name:   "all except some",
			policy: AddressPolicy{Internal: Selection{Exclude: []netip.Prefix{any4, any6}}},
			want:   "InternalIP=192.168.0.1 InternalIP=203.0.113.1",
		},
		{
			name:   "external addresses",
			policy: AddressPolicy{External: Selection{NICs: []int{2}}},
			want:   "InternalIP=192.168.0.1 ExternalIP=203.0.113.1",
		},
		{
			name:   "as VMware's CPI: every IPv4 address is external, too",
			policy: AddressPolicy{External: Selection{CIDRs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}},
			want:   "InternalIP=192.168.0.1 ExternalIP=192.168.0.1 ExternalIP=10.0.0.1 ExternalIP=203.0.113.1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(two)
			i := c.instances(func(o *InstanceOptions) { o.Addresses = tt.policy })

			m, err := i.InstanceMetadata(t.Context(), c.node("1", func(n *corev1.Node) {
				n.Annotations = map[string]string{cloudapi.AnnotationAlphaProvidedIPAddr: tt.given}
			}))

			g.Expect(err).NotTo(HaveOccurred())
			said := ""
			for _, a := range m.NodeAddresses[:len(m.NodeAddresses)-1] {
				said += fmt.Sprintf("%s=%s ", a.Type, a.Address)
			}
			g.Expect(said).To(Equal(tt.want + " "))
		})
	}
}

func TestAMachineIsReadIfItsPrimaryAddressIsInsufficient(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1"))
	c.full["test://1"] = machine("1", func(m *Machine) {
		m.Complete = true
		m.NICs = append(m.NICs, nic(1, "192.168.0.1"))
	})
	i := c.instances()
	node := c.node("1", func(n *corev1.Node) {
		n.Annotations = map[string]string{cloudapi.AnnotationAlphaProvidedIPAddr: "192.168.0.1"}
	})

	for range 3 {
		m, err := i.InstanceMetadata(t.Context(), node)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.NodeAddresses).To(ContainElement(HaveField("Address", "192.168.0.1")))
	}
	g.Expect(c.gets).To(Equal(1), "once")

	c.all[0].Revision = "2"
	_, err := i.InstanceMetadata(t.Context(), node)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.gets).To(Equal(2), "and if it may have changed")
}

func TestALateAddress(t *testing.T) {
	second := func(m *Machine) {
		m.Complete = true
		m.NICs = append(m.NICs, nic(1, "fd00::1"))
	}
	complete := func(m *Machine) { m.Complete = true }
	tests := []struct {
		name  string
		given string
		after time.Duration
	}{
		{"is noticed soon if kubelet was configured with it", "10.0.0.1,fd00::1", 10 * time.Second},
		{"and otherwise at the next read of the machine", "", 12*time.Minute + 30*time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(machine("1"))
			c.full["test://1"] = machine("1", complete)
			all := Selection{NICs: []int{0, 1}}
			i := c.instances(func(o *InstanceOptions) { o.Addresses.Internal = all })
			node := c.node("1", func(n *corev1.Node) {
				n.Annotations = map[string]string{cloudapi.AnnotationAlphaProvidedIPAddr: tt.given}
			})
			addresses := func() []corev1.NodeAddress {
				m, err := i.InstanceMetadata(t.Context(), node)
				g.Expect(err).NotTo(HaveOccurred())
				return m.NodeAddresses
			}
			late := ContainElement(HaveField("Address", "fd00::1"))
			g.Expect(addresses()).NotTo(late)
			c.full["test://1"] = machine("1", second)

			c.pass(tt.after - 6*time.Second)
			if tt.given != "" {
				g.Expect(addresses()).NotTo(late)
				g.Expect(c.gets).To(Equal(1), "a second call at once makes no request")
			}
			c.pass(6 * time.Second)
			g.Expect(addresses()).To(late)
			g.Expect(c.gets).To(Equal(2))

			c.gone = hidden
			delete(c.full, "test://1")
			c.pass(time.Hour)
			g.Expect(addresses()).To(late, "what cannot be read anew stays as it was")
		})
	}
}

func TestMachinesAreNotReadAgainAllAtOnce(t *testing.T) {
	const machines = 200
	g := NewWithT(t)
	c := newCloud()
	i := c.instances(func(o *InstanceOptions) { o.Addresses.IPv6 = 1 })
	for n := range machines {
		m := machine(fmt.Sprint(n),
			func(m *Machine) { m.NICs[0].Addresses = append(m.NICs[0].Addresses, netip.MustParseAddr("fd00::1")) })
		c.all = append(c.all, m)
		c.full[m.ProviderID] = m
		c.node(fmt.Sprint(n))
	}
	look := func() int {
		before := c.gets
		for n := range machines {
			_, err := i.InstanceMetadata(t.Context(), c.node(fmt.Sprint(n)))
			g.Expect(err).NotTo(HaveOccurred())
		}
		return c.gets - before
	}

	g.Expect(look()).To(Equal(machines))
	c.pass(5 * time.Minute)
	g.Expect(look()).To(BeZero())
	c.pass(5 * time.Minute)
	g.Expect(look()).To(BeNumerically("~", machines/2, machines/4), "half of them are younger")
	c.pass(5 * time.Minute)
	g.Expect(look()).To(BeNumerically("~", machines/2, machines/4))
}

func TestAMachineWithoutAnAddress(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1", func(m *Machine) { m.NICs = nil }))
	i := c.instances()

	_, err := i.InstanceMetadata(t.Context(),
		c.node("1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: cloudapi.TaintExternalCloudProvider}} }))
	g.Expect(err).To(MatchError(ContainSubstring("no address yet")), "a new Node waits for an address")

	m, err := i.InstanceMetadata(t.Context(), c.node("1"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.NodeAddresses).To(BeEmpty(), "other Nodes keep theirs")
}

func TestAbsenceMustBeProvedTwice(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1"), machine("2"), machine("3"))
	i := c.instances()
	node := c.node("0")
	for n := 1; n <= 3; n++ {
		c.node(fmt.Sprint(n))
	}
	exists := func() error {
		found, err := i.InstanceExists(t.Context(), node)
		g.Expect(found).To(BeFalse())
		return err
	}

	g.Expect(exists()).To(MatchError(ContainSubstring("still missing in one minute")))
	g.Expect(c.events.Events).To(Receive(ContainSubstring("MachineMissing")))
	c.pass(30 * time.Second)
	g.Expect(exists()).To(HaveOccurred())
	g.Expect(c.gets).To(Equal(1), "no request is made before it is due")

	c.pass(31 * time.Second)
	c.gone = hidden
	g.Expect(exists()).To(MatchError(ContainSubstring("can see no objects of the cloud")),
		"a second check without proof starts it again")
	c.gone = lost
	c.pass(holdRetry)
	g.Expect(exists()).To(MatchError(ContainSubstring("still missing in one minute")))
	c.pass(61 * time.Second)
	g.Expect(exists()).NotTo(HaveOccurred(), "two checks a minute apart do")
}

func TestAMachineThatReappears(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1"))
	i := c.instances()
	node := c.node("0")
	_, err := i.InstanceExists(t.Context(), node)
	g.Expect(err).To(HaveOccurred())
	c.pass(61 * time.Second)

	c.full["test://0"] = machine("0")
	g.Expect(i.InstanceExists(t.Context(), node)).To(BeTrue())

	delete(c.full, "test://0")
	_, err = i.InstanceExists(t.Context(), node)
	g.Expect(err).To(MatchError(ContainSubstring("still missing in one minute")), "it starts again")
}

func TestManyMissingMachinesAreHeldBack(t *testing.T) {
	g := NewWithT(t)
	c := newCloud()
	i := c.instances()
	var nodes []*corev1.Node
	for n := range 6 {
		nodes = append(nodes, c.node(fmt.Sprint(n)))
	}
	c.all = []Machine{machine("3"), machine("4"), machine("5")}
	deleted := func() int {
		n := 0
		for _, node := range nodes[:3] {
			if exists, err := i.InstanceExists(t.Context(), node); err == nil && !exists {
				n++
				_ = c.nodes.Delete(node)
				node.Spec.ProviderID = "static://deleted"
			}
		}
		return n
	}

	g.Expect(deleted()).To(BeZero())
	c.pass(2 * time.Minute)
	g.Expect(deleted()).To(BeZero(), "three of six went missing together")
	g.Expect(c.events.Events).To(HaveLen(6))
	c.pass(9 * time.Minute)
	g.Expect(deleted()).To(Equal(1), "after ten minutes the first one is released")
	g.Expect(deleted()).To(BeZero())
	c.pass(61 * time.Second)
	g.Expect(deleted()).To(Equal(1), "and the others one by one")
}

// TestUnprovedAbsenceIsCheckedEveryHalfMinute calls as often as the node lifecycle controller does.
func TestUnprovedAbsenceIsCheckedEveryHalfMinute(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1"))
	c.gone = hidden
	i := c.instances()
	c.node("1")
	node := c.node("2")

	for range 13 { // a minute
		_, err := i.InstanceExists(t.Context(), node)
		g.Expect(err).To(HaveOccurred())
		c.pass(5 * time.Second)
	}

	g.Expect(c.gets).To(Equal(3))
}

// TestAFailedReadIsCached initializes three Nodes at a time during an outage.
func TestAFailedReadIsCached(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1"))
	c.err = errors.New("outage")
	i := c.instances()
	nodes := []*corev1.Node{c.node("1"), c.node("2"), c.node("3")}

	for range 4 { // 20 seconds
		for _, node := range nodes {
			_, err := i.InstanceExists(t.Context(), node)
			g.Expect(err).To(MatchError(ContainSubstring("outage")))
		}
		c.pass(5 * time.Second)
	}

	g.Expect(c.reads).To(Equal(2))
	c.err = nil
	exists, err := i.InstanceExists(t.Context(), nodes[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exists).To(BeTrue())
}

func TestAnOutageDeletesNothing(t *testing.T) {
	g := NewWithT(t)
	c := newCloud()
	i := c.instances()
	node := c.node("0")
	c.err = errors.New("no answer")

	for range 5 {
		exists, err := i.InstanceExists(t.Context(), node)
		g.Expect(err).To(MatchError(ContainSubstring("no answer")))
		g.Expect(exists).To(BeFalse())
		c.pass(10 * time.Minute)
	}
}
