// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

// nodeLists numbers lists of nodes. Services are reconciled concurrently, so an older list may be used after a newer
// one.
type nodeLists struct {
	mu         sync.Mutex
	generation uint64
	known      map[string]knownNode // of the last list, by name
}

// A knownNode is the last state of a Node with addresses.
type knownNode struct {
	uid       types.UID
	addresses []corev1.NodeAddress
}

// next lists all nodes. A later list has a higher generation. A node that joins again as another object keeps its
// addresses until it has new ones: it is the same machine, and remains a member of load balancers.
func (n *nodeLists) next(lister corelisters.NodeLister, now time.Time) (all []*corev1.Node, generation uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	listed, err := lister.List(labels.Everything())
	if err != nil {
		return nil, 0, err
	}
	n.generation++
	all = make([]*corev1.Node, len(listed))
	known := make(map[string]knownNode, len(listed))
	for i, node := range listed {
		before, found := n.known[node.Name]
		switch {
		case len(service.InternalIPs(node)) > 0:
			before = knownNode{node.UID, node.Status.Addresses}
			found = true
		case found && before.uid != node.UID && service.Joining(node, now):
			node = node.DeepCopy()
			node.Status.Addresses = before.addresses
		default:
			found = false
		}
		if found {
			known[node.Name] = before
		}
		all[i] = node
	}
	n.known = known
	return all, n.generation, nil
}
