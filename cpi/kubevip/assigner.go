// SPDX-License-Identifier: Apache-2.0

// Package kubevip assigns addresses to Services that kube-vip announces. kube-vip announces the addresses in an
// annotation of a Service, but does not choose them. The package has no code for a specific cloud: the addresses come
// from configured ranges in the nodes' network.
package kubevip

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// addressesAnnotation is the annotation of a Service with the addresses that kube-vip announces, separated by commas.
// kube-vip prefers it to spec.loadBalancerIP.
const addressesAnnotation = "kube-vip.io/loadbalancerIPs"

const (
	// retryAfter is the pause after a failed write.
	retryAfter = 2 * time.Second
	// checkEvery is the interval at which annotations are compared with the claims. The comparison needs no requests.
	checkEvery = time.Minute
)

// Reasons of events of Services.
const (
	// reasonAssigned means that the Service has new addresses, which kube-vip announces.
	reasonAssigned = "AddressAssigned"
	// reasonOutside means that the Service requests an address that is not in the ranges of the configuration.
	reasonOutside = "AddressOutOfRange"
	// reasonTaken means that the Service requests an address that something else has.
	reasonTaken = "AddressInUse"
	// reasonExhausted means that all addresses of the ranges are in use.
	reasonExhausted = "NoFreeAddress"
	// reasonFamilies means that the ranges have no addresses of a family that the Service needs.
	reasonFamilies = "InvalidFamilies"
	// reasonLocal means that the Service gets traffic only while the announcing node has one of its pods.
	reasonLocal = "LocalTraffic"
)

// Options configure an [Assigner].
type Options struct {
	Client kubernetes.Interface
	// Namespace of the ConfigMap [claimsName].
	Namespace string
	// Services reports changes of Services.
	Services cache.SharedIndexInformer
	Nodes    corelisters.NodeLister
	// NodesSynced reports whether the cache of Nodes is filled. Addresses of nodes are never assigned.
	NodesSynced cache.InformerSynced
	Recorder    record.EventRecorder
	// Class is the load balancer class of the Services; empty means Services without a class.
	Class  string
	Ranges []Range
	// Reserved are addresses that are never assigned.
	Reserved []netip.Addr
	Clock    clock.WithTicker
}

// An Assigner assigns addresses. It claims an address in a ConfigMap before it writes the annotation of the Service.
type Assigner struct {
	opts     Options
	store    *store
	changed  chan struct{}          // has an element after a Service changed
	reported map[types.UID][]string // reported problems that persist
}

// New returns an assigner. The informers must not have been started.
func New(o Options) *Assigner {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Assigner{
		opts: o,
		store: &store{
			client:    o.Client,
			namespace: o.Namespace,
		},
		changed:  make(chan struct{}, 1),
		reported: map[types.UID][]string{},
	}
}

// Start begins to assign addresses. It stops when ctx ends.
func (a *Assigner) Start(ctx context.Context) {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { a.wake() },
		UpdateFunc: func(_, _ any) { a.wake() },
		DeleteFunc: func(any) { a.wake() },
	}
	if _, err := a.opts.Services.AddEventHandler(handler); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot watch Services for addresses that kube-vip announces")
	}
	go a.run(ctx)
}

func (a *Assigner) wake() {
	select {
	case a.changed <- struct{}{}:
	default: // A run is already pending.
	}
}

// run processes all Services when one of them changes, and at intervals.
func (a *Assigner) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), a.opts.Services.HasSynced, a.opts.NodesSynced) {
		return
	}
	for ctx.Err() == nil {
		next := checkEvery
		if err := a.assign(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot assign addresses that kube-vip announces")
			next = retryAfter
		}
		timer := a.opts.Clock.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-a.changed:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// assign updates the claims and annotations of all Services.
func (a *Assigner) assign(ctx context.Context) error {
	before, err := a.store.load(ctx)
	if err != nil {
		return err
	}
	services, err := a.services()
	if err != nil {
		return err
	}
	next, err := a.withoutDeleted(ctx, before, services)
	if err != nil {
		return err
	}
	pool, err := a.pool()
	if err != nil {
		return err
	}
	chosen := a.choose(pool, next, services)
	if !maps.Equal(before, next) {
		// Save the claims before the annotations, so that every announced address is claimed.
		if err := a.store.save(ctx, next); err != nil {
			return err
		}
	}
	var failed []error
	for _, s := range services {
		failed = append(failed, a.annotate(ctx, s, chosen[s.UID], before.of(s.UID)))
	}
	a.dropDeleted(services)
	return errors.Join(failed...)
}

// services returns all Services, oldest first.
func (a *Assigner) services() ([]*corev1.Service, error) {
	all, err := corelisters.NewServiceLister(a.opts.Services.GetIndexer()).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	slices.SortFunc(all, func(x, y *corev1.Service) int {
		return cmp.Or(
			x.CreationTimestamp.Compare(y.CreationTimestamp.Time),
			cmp.Compare(nameOf(x), nameOf(y)),
		)
	})
	return all, nil
}

// withoutDeleted returns the claims without those of deleted Services. It asks the API server about Services that are
// not in the cache, because the cache may be outdated.
func (a *Assigner) withoutDeleted(ctx context.Context, held claims, services []*corev1.Service) (claims, error) {
	known := map[types.UID]bool{}
	for _, s := range services {
		known[s.UID] = true
	}
	next := claims{}
	for addr, by := range held {
		if !known[by.UID] {
			exists, err := a.exists(ctx, by)
			if err != nil {
				return nil, err
			}
			if !exists {
				continue
			}
		}
		next[addr] = by
	}
	return next, nil
}

func (a *Assigner) exists(ctx context.Context, by holder) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	namespace, name, _ := strings.Cut(by.Service, "/")
	s, err := a.opts.Client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("getting Service %s, which has an address: %w", by.Service, err)
	}
	return s.UID == by.UID, nil
}

// pool returns the addresses that are currently available to Services.
func (a *Assigner) pool() (pool, error) {
	nodes, err := a.opts.Nodes.List(labels.Everything())
	if err != nil {
		return pool{}, fmt.Errorf("listing Nodes: %w", err)
	}
	reserved := map[netip.Addr]string{}
	for _, addr := range a.opts.Reserved {
		reserved[addr] = "the control plane, or reserved by the configuration"
	}
	for _, node := range nodes {
		for _, of := range node.Status.Addresses {
			if addr, err := netip.ParseAddr(of.Address); err == nil {
				reserved[addr] = "Node " + node.Name
			}
		}
	}
	return pool{ranges: a.opts.Ranges, reserved: reserved}, nil
}

// choose updates the claims to the addresses that each Service gets, and returns these addresses. An address that a Service
// gives up stays claimed until its annotation no longer names it: kube-vip announces it until then.
func (a *Assigner) choose(from pool, held claims, services []*corev1.Service) map[types.UID][]netip.Addr {
	chosen := map[types.UID][]netip.Addr{}
	for _, s := range inOrder(services, held) {
		var addresses []netip.Addr
		if a.serves(s) {
			var problems []loadbalancer.Finding
			addresses, problems = from.choose(s, held)
			a.report(s, append(problems, localProblem(s)...))
		}
		announced, _ := parseAddresses(s.Annotations[addressesAnnotation])
		maps.DeleteFunc(held, func(addr netip.Addr, by holder) bool {
			return by.UID == s.UID && !slices.Contains(announced, addr)
		})
		for _, addr := range addresses {
			held[addr] = holder{Service: nameOf(s), UID: s.UID}
		}
		chosen[s.UID] = addresses
	}
	return chosen
}

// inOrder returns Services in the order in which they choose addresses. Services with a claim come first. Services with
// an annotation come next, so that they keep their addresses if the claims are lost.
func inOrder(services []*corev1.Service, held claims) []*corev1.Service {
	rank := map[types.UID]int{}
	for _, s := range services {
		switch {
		case len(held.of(s.UID)) > 0:
		case s.Annotations[addressesAnnotation] != "":
			rank[s.UID] = 1
		default:
			rank[s.UID] = 2
		}
	}
	ordered := slices.Clone(services)
	slices.SortStableFunc(ordered, func(x, y *corev1.Service) int { return cmp.Compare(rank[x.UID], rank[y.UID]) })
	return ordered
}

// serves reports whether kube-vip should announce addresses of a Service.
func (a *Assigner) serves(s *corev1.Service) bool {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return false
	}
	class := s.Spec.LoadBalancerClass
	return class == nil && a.opts.Class == "" || class != nil && *class == a.opts.Class
}

// annotate updates the annotation of a Service if it differs from the chosen addresses. It removes an annotation of
// this program if no address is chosen.
func (a *Assigner) annotate(ctx context.Context, s *corev1.Service, chosen, before []netip.Addr) error {
	now, exists := s.Annotations[addressesAnnotation]
	text := joined(chosen)
	var value any = text
	switch {
	case text == "" && (!exists || !a.serves(s) && len(before) == 0):
		return nil // The annotation belongs to another program.
	case text == "":
		value = nil
	case now == text:
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         s.UID,
		"annotations": map[string]any{addressesAnnotation: value},
	}})
	if err != nil {
		return fmt.Errorf("encoding the addresses of Service %s: %w", nameOf(s), err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = a.opts.Client.CoreV1().Services(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // The Service was deleted or recreated. The cache will show it.
	case err != nil:
		return fmt.Errorf("writing the addresses of Service %s: %w", nameOf(s), err)
	}
	if text != "" {
		a.opts.Recorder.Event(s, corev1.EventTypeNormal, reasonAssigned, "kube-vip announces "+text)
	}
	return nil
}

// report emits an event for each problem of a Service, once while the problem persists.
func (a *Assigner) report(s *corev1.Service, problems []loadbalancer.Finding) {
	var holds []string
	for _, p := range problems {
		if !slices.Contains(a.reported[s.UID], p.Message) && !slices.Contains(holds, p.Message) {
			a.opts.Recorder.Event(s, corev1.EventTypeWarning, p.Reason, p.Message)
		}
		holds = append(holds, p.Message)
	}
	a.reported[s.UID] = holds
}

// dropDeleted drops the reported problems of deleted Services.
func (a *Assigner) dropDeleted(services []*corev1.Service) {
	maps.DeleteFunc(a.reported, func(uid types.UID, _ []string) bool {
		return !slices.ContainsFunc(services, func(s *corev1.Service) bool { return s.UID == uid })
	})
}

// localProblem warns about a Service with externalTrafficPolicy Local. One node receives the traffic of all Services,
// so it would need a pod of each.
func localProblem(s *corev1.Service) []loadbalancer.Finding {
	if s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		return nil
	}
	return []loadbalancer.Finding{{
		Reason:  reasonLocal,
		Message: "externalTrafficPolicy is Local, and one node announces all Services: run a pod on each node that can announce, for example by a DaemonSet, or set externalTrafficPolicy to Cluster",
	}}
}

func joined(addresses []netip.Addr) string {
	words := make([]string, 0, len(addresses))
	for _, addr := range addresses {
		words = append(words, addr.String())
	}
	return strings.Join(words, ",")
}

func nameOf(s *corev1.Service) string { return s.Namespace + "/" + s.Name }
