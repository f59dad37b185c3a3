package cpi

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// editions number lists of nodes: Services are worked on beside each other, and who has listed the nodes first may come last.
type editions struct {
	mu   sync.Mutex
	last uint64
}

// nodes lists all nodes. A later list has a higher number.
func (e *editions) nodes(lister corelisters.NodeLister) ([]*corev1.Node, uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all, err := lister.List(labels.Everything())
	e.last++
	return all, e.last, err //nolint:wrapcheck // the caller says what was listed
}
