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

// patience is how long a node may be without an address before a notice.
const patience = 5 * time.Minute

// toBeDeleted is the taint of nodes that the cluster autoscaler is about to remove.
const toBeDeleted = "ToBeDeletedByClusterAutoscaler"

// Labels of control plane nodes.
var controlPlaneLabels = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

// Eligible returns the nodes that may be members of load balancers, sorted by name: those that Kubernetes does not
// exclude, without control planes unless all are. Ready or not does not matter: health monitors of the cloud find out.
func Eligible(nodes []*corev1.Node, controlPlanes bool) []*corev1.Node {
	var workers, others []*corev1.Node
	for _, n := range nodes {
		switch {
		case n.DeletionTimestamp != nil, tainted(n, toBeDeleted):
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

// Workers returns the eligible nodes without control planes; where there are none, those control planes that take the
// pods of users, as the servers of k3s do.
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

// InternalIPs returns the addresses of a node by which load balancers reach it, the first of each family.
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
func Joining(n *corev1.Node, now time.Time) bool { return now.Sub(n.CreationTimestamp.Time) < patience }

// members sets which nodes the load balancer sends to. Nodes without an address of its first family are among them:
// what is shared by all load balancers of the cluster has the nodes of both. A node that has just joined becomes a
// member when it has an address. Only while no node has one of the family, the wish waits: pools are not emptied
// because all nodes join again.
func (b *builder) members() {
	d := &b.wish.Desired
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
			b.wish.Notice(NodeExcluded,
				"node %s has no %s address, so it is not a member of the load balancer: check its address "+
					"assignment",
				n.Name, family)
		}
	}
	if !found && joining != "" {
		b.wish.Wait = fmt.Sprintf("node %s has no %s address yet", joining, family)
	}
}
