// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

const (
	// orphanRounds is the number of drift intervals between two searches for load balancers without a Service.
	orphanRounds = 60
	// nodeDebounce is how long changes of nodes are collected.
	nodeDebounce = 2 * time.Second
)

// A resync repairs drift that is caused outside Kubernetes. The service controller only reconciles a load balancer when
// its Service or the set of nodes changes.
type resync struct {
	balancers *LoadBalancers

	queue   workqueue.TypedDelayingInterface[string] // names of tasks
	tasks   map[string]*resyncTask
	members string // addresses of nodes at the last comparison
}

// A resyncTask runs when it is triggered and, if every is set, also at this interval.
type resyncTask struct {
	run   func(context.Context)
	every time.Duration

	mu  sync.Mutex
	due time.Time
}

// Start begins to compare all load balancers with the cloud, at intervals and when addresses of nodes change. It stops
// when ctx ends.
func (l *LoadBalancers) Start(ctx context.Context) {
	r := &resync{
		balancers: l,
		queue: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[string]{Clock: l.opts.Clock}),
	}
	r.tasks = map[string]*resyncTask{
		"nodes":   {run: r.compareNodes},
		"classes": {run: l.foreignClasses().release, every: l.opts.Drift},
		"orphans": {run: r.searchOrphans, every: orphanRounds * l.opts.Drift},
		"records": {run: l.store.refresh, every: l.opts.Drift},
	}
	for _, name := range l.opts.Defaults.Locations {
		r.tasks["location/"+name] = &resyncTask{
			run:   func(ctx context.Context) { r.repairAll(ctx, name) },
			every: l.opts.Drift,
		}
	}
	r.watchNodes(ctx)
	go r.run(ctx)
	go func() {
		if err := l.store.load(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Load balancers cannot be reconciled yet")
		}
	}()
}

// run executes the tasks concurrently, so that a location that hangs does not block the others.
func (r *resync) run(ctx context.Context) {
	defer r.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), r.balancers.opts.Synced...) {
		return
	}
	for name, task := range r.tasks {
		if task.every > 0 {
			r.queue.AddAfter(name, jitter(r.balancers.opts.Drift))
		}
		go r.work(ctx)
	}
	<-ctx.Done()
}

// jitter randomizes an interval by up to a tenth in both directions.
func jitter(d time.Duration) time.Duration { return wait.Jitter(d*9/10, 0.2) }

func (r *resync) work(ctx context.Context) {
	for {
		name, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		task := r.tasks[name]
		due, next := task.begin(r.balancers.opts.Clock.Now())
		if due {
			task.run(ctx)
		}
		if task.every > 0 {
			r.queue.AddAfter(name, next.Sub(r.balancers.opts.Clock.Now()))
		}
		r.queue.Done(name)
	}
}

// begin reports whether the task is due, and returns the time of its next run. After a trigger, the queue may return
// the task before it is due.
func (t *resyncTask) begin(now time.Time) (due bool, next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if due = !now.Before(t.due); due {
		t.due = now.Add(jitter(t.every))
	}
	return due, t.due
}

// trigger requests an immediate run of a task.
func (r *resync) trigger(name string) {
	task := r.tasks[name]
	task.mu.Lock()
	task.due = time.Time{}
	task.mu.Unlock()
	r.queue.Add(name)
}

// repairAll reconciles the load balancers of one location.
func (r *resync) repairAll(ctx context.Context, location string) {
	all, err := r.balancers.opts.Services.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot list Services")
	}
	for _, s := range all {
		if ctx.Err() == nil && repairable(s) && r.balancers.opts.Defaults.Settings(s).Location == location {
			r.balancers.repair(ctx, s)
		}
	}
}

// watchNodes compares nodes soon after a change, because Kubernetes does not report changed addresses to cloud
// providers.
func (r *resync) watchNodes(ctx context.Context) {
	if r.balancers.opts.NodeInformer == nil {
		return
	}
	compare := func() { r.queue.AddAfter("nodes", nodeDebounce) }
	_, err := r.balancers.opts.NodeInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { compare() },
		DeleteFunc: func(any) { compare() },
		UpdateFunc: func(from, to any) {
			a, ok := from.(*corev1.Node)
			b, ok2 := to.(*corev1.Node)
			if ok && ok2 && r.membersOf([]*corev1.Node{a}) != r.membersOf([]*corev1.Node{b}) {
				compare()
			}
		},
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot watch nodes")
	}
}

// compareNodes triggers all frequent tasks if the members of load balancers changed. On the first call, when all nodes
// are new, it triggers all periodic tasks.
func (r *resync) compareNodes(context.Context) {
	nodes, err := r.balancers.opts.Nodes.List(labels.Everything())
	if err != nil {
		return
	}
	before := r.members
	if r.members = r.membersOf(nodes); r.members == before {
		return
	}
	for name, task := range r.tasks {
		if task.every > 0 && (before == "" || task.every <= r.balancers.opts.Drift) {
			r.trigger(name)
		}
	}
}

// membersOf returns the addresses that nodes add to load balancers. A node without addresses, which has just joined,
// adds nothing.
func (r *resync) membersOf(nodes []*corev1.Node) string {
	var out strings.Builder
	for _, n := range service.Eligible(nodes, r.balancers.opts.Defaults.IncludeControlPlane) {
		if ips := service.InternalIPs(n); len(ips) > 0 {
			fmt.Fprintln(&out, n.Name, ips)
		}
	}
	return out.String()
}

// searchOrphans reports load balancers without a Service, for example after a finalizer was removed by force. It drops
// the state and the records of Services that no longer exist. It does not remove the load balancers: a second cluster
// that was given the same ID by mistake would lose its load balancers.
func (r *resync) searchOrphans(ctx context.Context) {
	log := klog.FromContext(ctx)
	recorded := r.balancers.store.all()
	all, err := r.balancers.locations.all(ctx)
	if err != nil {
		log.Error(err, "Cannot search for orphaned load balancers")
	}
	for _, location := range all {
		owners, err := r.balancers.opts.Balancer.Owners(ctx, location)
		if err != nil {
			log.Error(err, "Cannot search for orphaned load balancers", "location", location)
			continue
		}
		if live, err := r.balancers.records.live(); err == nil { // listed after their objects
			r.reportOrphans(ctx, location,
				slices.DeleteFunc(slices.Clone(owners), func(o loadbalancer.Owner) bool { return live[types.UID(o.UID)] }))
		}
	}
	if live, err := r.balancers.records.live(); err == nil {
		r.balancers.states.keep(live)
		r.balancers.events.sent.keep(live)
		if err := r.balancers.records.removeOthers(ctx, recorded, live); err != nil {
			log.Error(err, "Cannot remove the records of deleted Services")
		}
	}
}

// reportOrphans logs and emits load balancers without a Service each time they are found.
func (r *resync) reportOrphans(ctx context.Context, location string, orphans []loadbalancer.Owner) {
	var names []string
	for _, o := range orphans {
		klog.FromContext(ctx).Info(
			"A load balancer has no Service: remove its objects in the cloud if no other cluster has the ID of this cluster",
			"location", location, "owner", o.String(), "uid", o.UID, "name", r.balancers.opts.Balancer.NameOf(o))
		names = append(names, fmt.Sprintf("%s (uid %s)", o, o.UID))
	}
	if len(names) == 0 || r.balancers.opts.Self == nil {
		return
	}
	slices.Sort(names)
	r.balancers.opts.Recorder.Event(r.balancers.opts.Self, corev1.EventTypeWarning, reasonOrphans,
		cut(fmt.Sprintf("%d load balancers at %s have the ID of this cluster but no Service: remove them there, unless another cluster has the same ID by mistake: %s",
			len(names), location, strings.Join(names, ", "))))
}
