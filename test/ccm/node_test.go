// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"context"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Taints of nodes.
const (
	uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
	shutdown      = "node.cloudprovider.kubernetes.io/shutdown"
)

// A nodeChange changes a Node before it is created.
type nodeChange func(*corev1.Node)

// kubelet returns the Node that kubelet creates for a machine with an external cloud provider. Load balancers exclude
// the Node, because other tests compare their members.
func kubelet(m machine, changes ...nodeChange) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   m.Name,
			Labels: map[string]string{corev1.LabelHostname: m.Name, corev1.LabelNodeExcludeBalancers: "true"},
		},
		Spec: corev1.NodeSpec{
			ProviderID: m.ProviderID,
			Taints:     []corev1.Taint{{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{
				Type:   corev1.NodeReady,
				Status: corev1.ConditionTrue,
				Reason: "KubeletReady",
			}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: m.Name}},
		},
	}
	for _, c := range changes {
		c(n)
	}
	return n
}

// balanced allows load balancers to send traffic to the node.
func balanced(n *corev1.Node) { delete(n.Labels, corev1.LabelNodeExcludeBalancers) }

// withoutProviderID removes the provider ID, like a kubelet without --provider-id.
func withoutProviderID(n *corev1.Node) { n.Spec.ProviderID = "" }

// initialized makes a Node look as if the cloud controller manager had initialized it.
func initialized(m machine) nodeChange {
	return func(n *corev1.Node) {
		n.Spec.Taints = nil
		for _, a := range m.Addresses {
			n.Status.Addresses = append(n.Status.Addresses,
				corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
		}
	}
}

// vcdBaseMachines returns the machines of the base nodes in VMware Cloud Director.
func vcdBaseMachines() ([]machine, error) {
	v, err := newVCD(fleet)
	if err != nil {
		return nil, err
	}
	return v.machines()[:baseNodes], v.close()
}

// createBaseNodes creates the nodes that always exist.
func (h *cluster) createBaseNodes(ctx context.Context, machines []machine) error {
	for _, m := range machines {
		if err := h.createNode(ctx, kubelet(m, balanced, initialized(m))); err != nil {
			return err
		}
	}
	return nil
}

func (h *cluster) createNode(ctx context.Context, n *corev1.Node) error {
	status := n.Status
	if err := h.client.Create(ctx, n); err != nil {
		return err
	}
	before := n.DeepCopy()
	n.Status = status
	// The controller may already have changed the Node.
	return h.client.Status().Patch(ctx, n, client.MergeFrom(before))
}

// node creates a Node that is deleted when the test ends.
func (w *fixture) node(t *testing.T, m machine, changes ...nodeChange) *corev1.Node {
	t.Helper()
	n := kubelet(m, changes...)
	NewWithT(t).Expect(w.createNode(t.Context(), n)).To(Succeed())
	t.Cleanup(func() {
		NewWithT(t).Expect(client.IgnoreNotFound(w.client.Delete(w.context(), n))).To(Succeed())
	})
	return n
}

// getNode returns a Node.
func (w *fixture) getNode(name string) (*corev1.Node, error) {
	n := &corev1.Node{}
	return n, w.client.Get(w.context(), client.ObjectKey{Name: name}, n)
}

// exists reports whether a Node exists.
func (w *fixture) exists(name string) func() bool {
	return func() bool {
		_, err := w.getNode(name)
		return !apierrors.IsNotFound(err)
	}
}

// taints returns the keys of a Node's taints.
func (w *fixture) taints(name string) func() ([]string, error) {
	return func() ([]string, error) {
		n, err := w.getNode(name)
		var out []string
		for _, taint := range n.Spec.Taints {
			out = append(out, taint.Key)
		}
		return out, err
	}
}

// setReady sets the condition Ready of the Node, as kubelet or the node lifecycle controller does.
func (w *fixture) setReady(t *testing.T, name string, status corev1.ConditionStatus) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func() error {
		n, err := w.getNode(name)
		if err != nil {
			return err
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Reason: "Test"}}
		return w.client.Status().Update(t.Context(), n)
	}, timeout, poll).Should(Succeed())
}

// internal returns the internal IP addresses of a Node.
func internal(n *corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			out = append(out, ip)
		}
	}
	return out
}
