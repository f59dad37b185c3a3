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

// editions number lists of nodes: Services are worked on beside each other, and who has listed the nodes first may come last.
type editions struct {
	mu    sync.Mutex
	last  uint64
	known map[string]knownNode // of the last list, by name
}

// A knownNode is what a Node had when it last had addresses.
type knownNode struct {
	uid       types.UID
	addresses []corev1.NodeAddress
}

// nodes lists all nodes. A later list has a higher number. A node that joins again, as another object, has the addresses that it had until it is told
// new ones: it is the same machine, and a member of load balancers, which it must not leave for that.
func (e *editions) nodes(lister corelisters.NodeLister, now time.Time) ([]*corev1.Node, uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	listed, err := lister.List(labels.Everything())
	if err != nil {
		return nil, 0, err
	}
	e.last++
	all, known := make([]*corev1.Node, len(listed)), make(map[string]knownNode, len(listed))
	for i, n := range listed {
		before, found := e.known[n.Name]
		switch {
		case len(service.InternalIPs(n)) > 0:
			before, found = knownNode{n.UID, n.Status.Addresses}, true
		case found && before.uid != n.UID && service.Joining(n, now):
			n = n.DeepCopy()
			n.Status.Addresses = before.addresses
		default:
			found = false
		}
		if found {
			known[n.Name] = before
		}
		all[i] = n
	}
	e.known = known
	return all, e.last, nil
}
