// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/withdrawal"
)

const (
	// withdrawalDebounce is how long requests are collected, so that load balancers are updated once for all of them.
	withdrawalDebounce = 500 * time.Millisecond
	// withdrawalRetry is the shortest pause before unconfirmed withdrawals are tried again. Later, the pause is the age of
	// the youngest request, divided by withdrawalAgePerPause.
	withdrawalRetry       = time.Second
	withdrawalAgePerPause = 8
	// confirmationTimeout limits requests to the API server.
	confirmationTimeout = 10 * time.Second
	// withdrawalTimeout is how long a withdrawal is retried. The manager gives up much earlier.
	withdrawalTimeout = 5 * time.Minute
)

// withdrawals confirm that no load balancer sends requests to a Node whose withdrawal is requested. Load balancers that
// may still have the node as a member are reconciled first. Kubernetes' service controller does the same, but it does
// not report when it is done, and it does not retry an update that must wait.
type withdrawals struct {
	client    kubernetes.Interface
	nodes     corelisters.NodeLister
	informer  cache.SharedInformer   // of nodes
	synced    []cache.InformerSynced // of nodes and Services
	balancers *LoadBalancers         // nil: the cloud has none
	clock     clock.WithTicker

	requested chan struct{}           // has an element after a request
	known     map[string]knownRequest // requests that the cache shows as pending, by name of the Node
}

// A knownRequest is a request that was seen before.
type knownRequest struct {
	value     string
	since     time.Time
	confirmed bool // the cache may not show it yet
}

// newWithdrawals returns the confirmation of withdrawals. balancers is nil if the cloud has no load balancers.
func newWithdrawals(o Options, balancers *LoadBalancers) *withdrawals {
	nodes := o.Informers.Core().V1().Nodes()
	services := o.Informers.Core().V1().Services()
	return &withdrawals{
		client:    o.Client,
		nodes:     nodes.Lister(),
		informer:  nodes.Informer(),
		synced:    []cache.InformerSynced{services.Informer().HasSynced, nodes.Informer().HasSynced},
		balancers: balancers,
		clock:     o.Clock,
		requested: make(chan struct{}, 1),
	}
}

// Start confirms withdrawals until ctx ends.
func (w *withdrawals) Start(ctx context.Context) {
	w.watch(ctx)
	go w.run(ctx)
}

// watch reports new requests.
func (w *withdrawals) watch(ctx context.Context) {
	_, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if node, ok := obj.(*corev1.Node); ok && isPendingWithdrawal(node) {
				w.trigger()
			}
		},
		UpdateFunc: func(from, to any) {
			before, ok := from.(*corev1.Node)
			now, ok2 := to.(*corev1.Node)
			if ok && ok2 && isNewRequest(before, now) {
				w.trigger()
			}
		},
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot watch withdrawals of nodes")
	}
}

// trigger requests a run soon.
func (w *withdrawals) trigger() {
	select {
	case w.requested <- struct{}{}:
	default:
	}
}

// run confirms withdrawals soon after a request, and retries until all are confirmed.
func (w *withdrawals) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), w.synced...) {
		return
	}
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.requested:
			w.collect(ctx)
		case <-retry:
		}
		retry = nil
		if left := w.confirmAll(ctx); len(left) > 0 {
			retry = w.clock.After(w.pause(left))
		}
	}
}

// collect waits for requests that follow soon after the first one.
func (w *withdrawals) collect(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-w.clock.After(withdrawalDebounce):
	}
}

// confirmAll confirms the pending withdrawals. It returns the Nodes to which load balancers may still send requests.
func (w *withdrawals) confirmAll(ctx context.Context) []*corev1.Node {
	left := w.confirmReleased(ctx, w.pending(ctx))
	if len(left) == 0 {
		return nil
	}
	w.release(ctx, left)
	return w.confirmReleased(ctx, w.pending(ctx))
}

// pending returns the Nodes with a pending withdrawal, except for those that were tried for too long.
func (w *withdrawals) pending(ctx context.Context) []*corev1.Node {
	all, err := w.nodes.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot list nodes")
		return nil
	}
	now := w.clock.Now()
	known := map[string]knownRequest{}
	var out []*corev1.Node
	for _, node := range all {
		if !isPendingWithdrawal(node) {
			continue
		}
		r, found := w.known[node.Name]
		if !found || r.value != requestOf(node) {
			r = knownRequest{value: requestOf(node), since: now}
		}
		known[node.Name] = r
		if !r.confirmed && now.Sub(r.since) < withdrawalTimeout {
			out = append(out, node)
		}
	}
	w.known = known
	return out
}

// confirmReleased confirms the withdrawal of those Nodes to which no load balancer sends requests, and returns the
// others.
func (w *withdrawals) confirmReleased(ctx context.Context, nodes []*corev1.Node) (left []*corev1.Node) {
	log := klog.FromContext(ctx)
	for _, node := range nodes {
		senders, err := w.senders(node)
		if err == nil && len(senders) == 0 {
			err = w.confirm(ctx, node)
		}
		switch {
		case err != nil:
			log.Error(err, "Cannot confirm the withdrawal of a Node", "node", klog.KObj(node))
			left = append(left, node)
		case len(senders) > 0:
			log.V(2).Info("Load balancers may still send requests to a Node", "node", klog.KObj(node),
				"services", klog.KObjSlice(senders))
			left = append(left, node)
		default:
			r := w.known[node.Name]
			r.confirmed = true
			w.known[node.Name] = r
			log.Info("Confirmed the withdrawal of a Node", "node", klog.KObj(node))
		}
	}
	return left
}

// confirm writes the confirmation. A Node that was deleted, or that another Node replaced, needs none.
func (w *withdrawals) confirm(ctx context.Context, node *corev1.Node) error {
	confirmed := node.DeepCopy()
	withdrawal.Confirm(confirmed)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": node.UID,
		"annotations": map[string]any{
			withdrawal.ConfirmedAnnotation: confirmed.Annotations[withdrawal.ConfirmedAnnotation],
		},
	}})
	if err != nil {
		return fmt.Errorf("encoding the confirmation: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, confirmationTimeout)
	defer cancel()
	_, err = w.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// release reconciles the load balancers that may send requests to the nodes, concurrently at each location. Load
// balancers that must wait are reconciled in the next round.
func (w *withdrawals) release(ctx context.Context, nodes []*corev1.Node) {
	services, err := w.senders(nodes...)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot update load balancers")
		return
	}
	atLocation := map[string][]*corev1.Service{}
	for _, s := range services {
		name := w.balancers.opts.Defaults.Settings(s).Location
		atLocation[name] = append(atLocation[name], s)
	}
	var running sync.WaitGroup
	for _, those := range atLocation {
		running.Go(func() {
			for _, s := range those {
				w.balancers.repair(ctx, s)
			}
		})
	}
	running.Wait()
}

// senders returns the Services whose load balancers may send requests to any of the nodes.
func (w *withdrawals) senders(nodes ...*corev1.Node) ([]*corev1.Service, error) {
	if w.balancers == nil {
		return nil, nil
	}
	all, err := w.balancers.opts.Services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	var out []*corev1.Service
	for _, s := range all {
		if repairable(s) && slices.ContainsFunc(nodes,
			func(node *corev1.Node) bool { return w.maySend(s, node.Name) }) {
			out = append(out, s)
		}
	}
	return out, nil
}

// maySend reports whether the load balancer of a Service may send requests to an excluded node, now or when an attempt
// that runs is complete. Attempts that start later do not add the node, because the cache already shows that it is
// excluded.
func (w *withdrawals) maySend(s *corev1.Service, node string) bool {
	busy := w.balancers.queues.isBusy(s.UID) // read first: an attempt writes the state before it ends
	members := w.balancers.states.get(s.UID).members
	if busy && (members.planned == nil || members.planned.Has(node)) {
		return true
	}
	if members.applied == nil {
		return len(s.Status.LoadBalancer.Ingress) > 0 // without an address, it was never usable
	}
	return members.applied.Has(node)
}

// pause returns the time until Nodes are checked again.
func (w *withdrawals) pause(nodes []*corev1.Node) time.Duration {
	youngest := withdrawalTimeout
	for _, node := range nodes {
		youngest = min(youngest, w.clock.Since(w.known[node.Name].since))
	}
	return max(withdrawalRetry, youngest/withdrawalAgePerPause)
}

// isNewRequest reports whether a change of a Node requests its withdrawal.
func isNewRequest(before, now *corev1.Node) bool {
	return isPendingWithdrawal(now) && (!isPendingWithdrawal(before) || requestOf(before) != requestOf(now))
}

// isPendingWithdrawal reports whether the withdrawal of a Node must be confirmed. A Node that is not excluded remains a
// member of load balancers.
func isPendingWithdrawal(node *corev1.Node) bool {
	excluded := len(service.Eligible([]*corev1.Node{node}, true)) == 0
	return excluded && withdrawal.IsRequested(node) && !withdrawal.IsConfirmed(node)
}

// requestOf returns the value that identifies a request.
func requestOf(node *corev1.Node) string { return node.Annotations[withdrawal.RequestedAnnotation] }
