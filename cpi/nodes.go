package cpi

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

// settleNodes is how long after a change of nodes others may follow.
const settleNodes = 2 * time.Second

// watchNodes lets all load balancers be looked at soon after the addresses of nodes changed, which Kubernetes does not tell providers. Many
// changes that follow each other are one.
func (l *LoadBalancers) watchNodes(ctx context.Context) {
	if l.opts.NodeInformer == nil {
		return
	}
	changed := make(chan struct{}, 1)
	tell := func() { poke(changed) }
	_, err := l.opts.NodeInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, DeleteFunc: func(any) { tell() },
		UpdateFunc: func(from, to any) {
			a, ok := from.(*corev1.Node)
			b, ok2 := to.(*corev1.Node)
			if ok && ok2 && l.membership([]*corev1.Node{a}) != l.membership([]*corev1.Node{b}) {
				tell()
			}
		},
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Watching nodes")
		return
	}
	go l.gather(ctx, changed)
}

// gather passes changes of the members on, once they have settled.
func (l *LoadBalancers) gather(ctx context.Context, changed <-chan struct{}) {
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-l.opts.Clock.After(settleNodes):
		}
		nodes, err := l.opts.Nodes.List(labels.Everything())
		if err != nil {
			continue
		}
		now := l.membership(nodes)
		if now == last {
			continue
		}
		last = now
		poke(l.nudge)
	}
}

// membership says which addresses nodes bring to load balancers. One without any, as it has just joined, brings nothing.
func (l *LoadBalancers) membership(nodes []*corev1.Node) string {
	var out strings.Builder
	for _, n := range service.Eligible(nodes, l.opts.Defaults.IncludeControlPlane) {
		if ips := service.InternalIPs(n); len(ips) > 0 {
			fmt.Fprintln(&out, n.Name, ips)
		}
	}
	return out.String()
}
