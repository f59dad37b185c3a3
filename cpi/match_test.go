// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	cloudapi "k8s.io/cloud-provider/api"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

const uuid, swapped = "4227b36b-1111-2222-3333-444444444444", "6bb32742-1111-2222-3333-444444444444"

func withUUIDs(m *Machine) { m.SystemUUIDs = []string{uuid, swapped} }

func reports(uuid string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.ProviderID = ""
		n.Status.NodeInfo.SystemUUID = uuid
	}
}

func TestMatchingANodeWithoutAProviderID(t *testing.T) {
	named := func(names ...string) func(*Machine) {
		return func(m *Machine) {
			m.Name = "inventory name"
			m.Hostnames = names
		}
	}
	tests := []struct {
		name     string
		node     func(*corev1.Node)
		machines []Machine
		want     string // provider ID; empty: none
	}{
		{name: "by its UUID", node: reports(uuid), machines: []Machine{machine("2", named("x")), machine("3", named("y"), withUUIDs)}, want: "test://3"},
		{name: "by its UUID in the other byte order", node: reports(swapped), machines: []Machine{machine("3", named("y"), withUUIDs)}, want: "test://3"},
		{name: "by its uppercase UUID", node: reports("4227B36B-1111-2222-3333-444444444444"), machines: []Machine{machine("3", named("y"), withUUIDs)}, want: "test://3"},
		{name: "by its hostname, regardless of case", node: nameless, machines: []Machine{machine("3", named("NODE-1"))}, want: "test://3"},
		{name: "by its hostname with a domain", node: nameless, machines: []Machine{machine("3", named("node-1.example.com"))}, want: "test://3"},
		{
			name: "by its hostname, although the Node name has a domain",
			node: func(n *corev1.Node) {
				nameless(n)
				n.Name += ".example.com"
			},
			machines: []Machine{machine("3", named("node-1"))},
			want:     "test://3",
		},
		{name: "another cluster's machine of that name has another UUID", node: reports("other"), machines: []Machine{machine("3", named("node-1"), withUUIDs)}},
		{name: "two machines have its UUID, one has its name", node: reports(uuid), machines: []Machine{machine("2", named("x"), withUUIDs), machine("3", named("node-1"), withUUIDs)}, want: "test://3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(tt.machines...)

			m, err := c.instances().InstanceMetadata(t.Context(), c.node("1", tt.node))

			if tt.want == "" {
				g.Expect(err).To(HaveOccurred())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.ProviderID).To(Equal(tt.want))
		})
	}
}

func TestAmbiguousMachinesAreReportedOnTheNode(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1", withUUIDs), machine("1", withUUIDs, func(m *Machine) { m.ProviderID = "test://2" }))

	_, err := c.instances().InstanceMetadata(t.Context(), c.node("1", reports(uuid)))

	g.Expect(err).To(MatchError(ContainSubstring("2 machines")))
	g.Expect(c.events.Events).To(Receive(ContainSubstring("MachineAmbiguous")))
}

func TestAProviderIDMayHaveASwappedUUID(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine(uuid, withUUIDs))
	node := c.node(swapped)

	m, err := c.instances().InstanceMetadata(t.Context(), node)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.ProviderID).To(Equal("test://"+swapped), "it cannot be changed")
	g.Expect(c.instances().InstanceExists(t.Context(), node)).To(BeTrue())
}

func TestBackendSelectionAndNotices(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1", func(m *Machine) {
		m.Complete = true
		m.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: "node-1.example.com"}}
		m.Notices = []loadbalancer.Finding{{Reason: "ZoneMissing", Message: "there is no zone"}}
	}))
	i := c.instances()
	node := c.node("1", func(n *corev1.Node) {
		n.Annotations = map[string]string{cloudapi.AnnotationAlphaProvidedIPAddr: "10.0.0.1,10.9.9.9"}
	})

	for range 2 {
		m, err := i.InstanceMetadata(t.Context(), node)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.NodeAddresses).To(Equal([]corev1.NodeAddress{
			{Type: corev1.NodeInternalDNS, Address: "node-1.example.com"},
			{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
		}), "kubelet's own address is among them if it is the machine's")
	}

	g.Expect(c.events.Events).To(Receive(ContainSubstring("ZoneMissing there is no zone")))
	g.Expect(c.events.Events).To(BeEmpty(), "once")

	i.forget(nil)
	g.Expect(i.noticed).To(BeEmpty(), "nothing is cached for a deleted machine")
}

func TestAnUnreadyMachineIsAcceptedLater(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1", func(m *Machine) { m.Unready = errors.New("its zone is not known") }))
	fresh := c.node("1", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: cloudapi.TaintExternalCloudProvider, Effect: corev1.TaintEffectNoSchedule}}
	})

	_, err := c.instances().InstanceMetadata(t.Context(), fresh)
	g.Expect(err).To(MatchError(ContainSubstring("its zone is not known")))
	_, err = c.instances().InstanceMetadata(t.Context(), c.node("1"))
	g.Expect(err).NotTo(HaveOccurred())
}

// half is a cloud with an unresponsive part.
type half struct{ *cloud }

func (h half) Snapshot(context.Context, time.Duration) ([]Machine, error) {
	return h.all, &IncompleteError{errors.New("part two does not answer")}
}

func TestAnUnresponsivePartDoesNotAffectOthers(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1"))
	i := c.instances(func(o *InstanceOptions) { o.Machines = half{c} })

	g.Expect(i.InstanceExists(t.Context(), c.node("1"))).To(BeTrue())
	for range 5 {
		_, err := i.InstanceExists(t.Context(), c.node("2"))
		g.Expect(err).To(MatchError(ContainSubstring("part two does not answer")))
		c.pass(5 * time.Minute)
	}
}

func TestAProviderIDInAnotherProgramsForm(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(machine("1"))
	node := c.node("1", func(n *corev1.Node) { n.Spec.ProviderID = "Other:///1" })
	i := c.instances(func(o *InstanceOptions) {
		o.Canonical = func(id string) string { return strings.Replace(id, "other:///", "test://", 1) }
	})

	m, err := i.InstanceMetadata(t.Context(), node)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.ProviderID).To(Equal("Other:///1"), "it cannot be changed")
	g.Expect(i.InstanceExists(t.Context(), node)).To(BeTrue())
	c.all = nil
	_, err = i.InstanceExists(t.Context(), node)
	g.Expect(err).To(MatchError(ContainSubstring("missing")), "its absence must be proved")
}
