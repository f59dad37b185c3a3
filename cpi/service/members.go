// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// addressGracePeriod is how long a new node may have no address before a notice is added.
const addressGracePeriod = 5 * time.Minute

// autoscalerTaint is the taint of nodes that the cluster autoscaler is about to remove.
const autoscalerTaint = "ToBeDeletedByClusterAutoscaler"

// controlPlaneLabels are the labels and taints of control plane nodes.
var controlPlaneLabels = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

// Eligible returns the nodes that may be members of load balancers, sorted by name: those that Kubernetes does not
// exclude. Control plane nodes are left out, unless they are requested or no other node is eligible. Readiness is
// ignored, because the health monitors of the cloud check the nodes.
func Eligible(nodes []*corev1.Node, controlPlanes bool) []*corev1.Node {
	var workers, others []*corev1.Node
	for _, n := range nodes {
		switch {
		case n.DeletionTimestamp != nil, tainted(n, autoscalerTaint):
		case hasLabel(n, corev1.LabelNodeExcludeBalancers):
		case !controlPlanes && isControlPlane(n):
			others = append(others, n)
		default:
			workers = append(workers, n)
		}
	}
	if len(workers) == 0 {
		workers = others
	}
	slices.SortFunc(workers, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return workers
}

// Workers returns the eligible nodes without control plane nodes. If there are none, it returns the control plane nodes
// that run user pods, such as k3s servers.
func Workers(nodes []*corev1.Node) []*corev1.Node {
	workers := slices.DeleteFunc(Eligible(nodes, false), isControlPlane)
	if len(workers) > 0 {
		return workers
	}
	return slices.DeleteFunc(Eligible(nodes, true), func(n *corev1.Node) bool {
		return slices.ContainsFunc(controlPlaneLabels, func(taint string) bool { return tainted(n, taint) })
	})
}

func isControlPlane(n *corev1.Node) bool {
	return slices.ContainsFunc(controlPlaneLabels, func(l string) bool { return hasLabel(n, l) })
}

func hasLabel(n *corev1.Node, label string) bool {
	_, ok := n.Labels[label]
	return ok
}

func tainted(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// InternalIPs returns the internal addresses of a node that load balancers use, the first of each family.
func InternalIPs(n *corev1.Node) []netip.Addr {
	var out []netip.Addr
	seen := map[loadbalancer.Family]bool{}
	for _, address := range n.Status.Addresses {
		a, err := netip.ParseAddr(address.Address)
		if address.Type != corev1.NodeInternalIP || err != nil || seen[loadbalancer.FamilyOf(a)] {
			continue
		}
		seen[loadbalancer.FamilyOf(a)] = true
		out = append(out, a.Unmap())
	}
	return out
}

// Joining reports whether a node has joined so recently that its addresses may still be missing.
func Joining(n *corev1.Node, now time.Time) bool {
	return now.Sub(n.CreationTimestamp.Time) < addressGracePeriod
}

// members sets the nodes that the load balancer sends to. They include nodes without an address of its first family,
// because objects that all load balancers of the cluster share contain the nodes of both families. A node that has just
// joined becomes a member once it has an address. The request waits only while no node has an address of the family, so
// that pools are not emptied when all nodes join again.
func (b *builder) members() {
	d := &b.request.Desired
	joining := ""
	found := false
	d.Generation = b.Generation
	family := d.Families[0]
	for _, n := range Eligible(b.Nodes, b.IncludeControlPlane) {
		ips := InternalIPs(n)
		if len(ips) > 0 {
			d.Members = append(d.Members, Member{Node: n.Name, ProviderID: n.Spec.ProviderID, Addresses: ips})
		}
		switch {
		case slices.ContainsFunc(ips, func(a netip.Addr) bool { return loadbalancer.FamilyOf(a) == family }):
			found = true
		case Joining(n, b.Now):
			joining = n.Name
		default:
			b.request.Notice(NodeExcluded,
				"node %s has no %s address, so it is not a member of the load balancer: check its address assignment", n.Name, family)
		}
	}
	if !found && joining != "" {
		b.request.Wait = fmt.Sprintf("node %s has no %s address yet", joining, family)
	}
}
