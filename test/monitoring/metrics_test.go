// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clientmetrics "k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/tools/record"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// known contains the metrics that a query can use: the labels by metric, and the values by label.
type known map[string]map[string]map[string]bool

// targetLabels are the labels that Prometheus adds when it scrapes a target.
var targetLabels = []string{"job", "instance", "pod", "namespace"}

// gather returns the metrics of this provider. It runs the instrumented code, so that they have samples.
func gather(t *testing.T) known {
	t.Helper()
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	exerciseClient(t, registry)
	exerciseControllers(t, registry)
	exerciseBalancers(t, registry)
	exerciseLibraries(t)
	all := known{}
	for _, gatherer := range []prometheus.Gatherer{registry, metrics.Registry} {
		families, err := gatherer.Gather()
		g.Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			all.add(family)
		}
	}
	return all
}

// add adds a metric family under the names of its series.
func (k known) add(family *dto.MetricFamily) {
	suffixes := []string{""}
	if family.GetType() == dto.MetricType_HISTOGRAM {
		suffixes = []string{"_bucket", "_sum", "_count"}
	}
	for _, suffix := range suffixes {
		labels := map[string]map[string]bool{}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if labels[l.GetName()] == nil {
					labels[l.GetName()] = map[string]bool{}
				}
				labels[l.GetName()][l.GetValue()] = true
			}
		}
		if suffix == "_bucket" {
			labels["le"] = nil
		}
		for _, l := range targetLabels {
			labels[l] = nil
		}
		k[family.GetName()+suffix] = labels
	}
}

// exerciseClient creates a VM in a simulated VCD, and causes a rejected login, throttled calls, and an outage.
func exerciseClient(t *testing.T, registry *prometheus.Registry) {
	t.Helper()
	g := NewWithT(t)
	sim, err := vcdsim.New(vcdsim.Config{Model: vcdsim.K8sTenant(), Profile: vcdsim.Instant, Seed: 1})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start()).To(Succeed())
	pool := vcd.NewPool(vcd.PoolOptions{
		Metrics:           registry,
		TaskPoll:          20 * time.Millisecond,
		RequestsPerSecond: 100,
		Burst:             1,
	})
	ctx := t.Context()
	config := vcd.Config{
		Site:        sim.URL(),
		Org:         "acme",
		CABundle:    sim.CA(),
		Version:     "1",
		Credentials: vcd.Credentials{Username: "capvcd", Password: "password"},
	}
	s, err := pool.Session(ctx, config)
	g.Expect(err).NotTo(HaveOccurred())
	config.Credentials.Password = "wrong"
	_, err = pool.Session(ctx, config)
	g.Expect(err).To(MatchError(vcd.ErrUnauthorized))

	vdc, err := s.VDCs.FindVDC(ctx, "acme-vdc")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.Inventory.VMs(ctx, vdc, "c1", 0)
	g.Expect(err).NotTo(HaveOccurred())
	createVM(t, s, vdc)
	_, err = s.VDCs.FindVDC(ctx, "nowhere")
	g.Expect(err).To(MatchError(vcd.ErrNotFound))

	queueCalls(t, s, registry)

	g.Expect(sim.Close()).To(Succeed())
	for range 3 {
		_, err = s.VDCs.FindVDC(ctx, "nowhere")
		g.Expect(err).To(MatchError(vcd.ErrUnavailable))
	}
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(ctx)) })
}

// queueCalls sends calls in parallel until some are queued. Slow sequential calls might never be queued.
func queueCalls(t *testing.T, s *vcd.Session, registry prometheus.Gatherer) {
	t.Helper()
	NewWithT(t).Eventually(func() (int, error) {
		var calls sync.WaitGroup
		for i := range 8 {
			calls.Go(func() { _, _ = s.VDCs.FindVDC(t.Context(), fmt.Sprint("nowhere-", i)) }) // These VDCs do not exist.
		}
		calls.Wait()
		return testutil.GatherAndCount(registry, "capvcd_vcd_wait_seconds_total")
	}, time.Minute).ShouldNot(BeZero())
}

func createVM(t *testing.T, s *vcd.Session, vdc vcd.VDC) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	network, err := s.Networks.FindNetwork(ctx, vdc, "nodes")
	g.Expect(err).NotTo(HaveOccurred())
	template, err := s.Templates.FindTemplate(ctx, "kubernetes", "ubuntu-2404-kube-v1.36.3")
	g.Expect(err).NotTo(HaveOccurred())
	vm := vcd.VMSpec{
		Name:         "c1-0",
		Description:  vcd.Marker{Cluster: "c1", Machine: "m"}.String(),
		ComputerName: "c1-0",
		Template:     template,
		NICs:         []vcd.NIC{{Network: network.Name, Mode: vcd.ModePool, Primary: true}},
	}
	_, task, err := s.VApps.ComposeVApp(ctx, vdc,
		vcd.VAppSpec{Name: "c1", Networks: []vcd.Ref{network.Ref}, VMs: []vcd.VMSpec{vm}})
	g.Expect(err).NotTo(HaveOccurred())
	notified := make(chan struct{})
	s.Tasks.Follow("c1", task, func() { close(notified) })
	g.Eventually(notified, time.Minute).Should(BeClosed())
	ended, _ := s.Tasks.Task("c1")
	g.Expect(ended.State).To(Equal(vcd.TaskSucceeded))
}

// exerciseControllers registers the collectors of the controllers, with a cluster, a machine, and sample counters.
func exerciseControllers(t *testing.T, registry prometheus.Registerer) {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	cluster := &infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Namespace: "default"}}
	machine := &infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{Name: "c1-0", Namespace: "default"}}
	ready := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: infrav1.ReadyReason}}
	cluster.Status.Conditions = ready
	machine.Status.Conditions = ready
	reader := fakeclient.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, machine).Build()
	for _, c := range controllers.Collectors(reader) {
		g.Expect(registry.Register(c)).To(Succeed())
		if vec, ok := c.(*prometheus.CounterVec); ok {
			vec.WithLabelValues("VCDMachine", "Ready", "complete")
			vec.WithLabelValues("VCDMachine", "VMCreated", "error")
		}
		if vec, ok := c.(*prometheus.HistogramVec); ok {
			vec.WithLabelValues("VCDMachine")
		}
	}
}

// A gateway is a balancer whose plans are always empty.
type gateway struct{ cpi.Balancer }

func (gateway) Locate(context.Context, string) (string, error) { return "urn:vcloud:gateway:1", nil }

func (gateway) Plan(context.Context, string, cpi.PlanRequest) (loadbalancer.Plan, error) {
	return loadbalancer.Plan{}, nil
}

// exerciseBalancers causes a rejected Service, and reads a gateway.
func exerciseBalancers(t *testing.T, registry prometheus.Registerer) {
	t.Helper()
	g := NewWithT(t)
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Name:        "web",
		Namespace:   "default",
		UID:         "u",
		Annotations: map[string]string{"service.beta.kubernetes.io/vcloud-internal": "perhaps"},
	}}
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	g.Expect(services.Add(s)).To(Succeed())
	watched := cpi.NewOutages(cpi.OutageOptions{}).Balancer(gateway{})
	balancers := cpi.NewLoadBalancers(cpi.LoadBalancerOptions{
		Balancer: watched,
		Defaults: (&cpivcd.Dialect{Gateways: []vcdconfig.Gateway{{}}}).Defaults("c1", false, false),
		Client:   fake.NewClientset(),
		Recorder: record.NewFakeRecorder(10),
		Services: corelisters.NewServiceLister(services),
		Nodes:    corelisters.NewNodeLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})),
	})
	_, err := balancers.EnsureLoadBalancer(t.Context(), "", s, nil)
	g.Expect(err).To(HaveOccurred(), "the annotation is invalid")
	g.Expect(registry.Register(watched)).To(Succeed())
	g.Expect(registry.Register(balancers.Collector())).To(Succeed())
}

// exerciseLibraries runs a controller with the name of one of this provider's controllers, and elects a leader.
func exerciseLibraries(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	reconciled := make(chan struct{})
	c, err := controller.NewUnmanaged("vcdmachine", controller.Options{
		Logger:             logr.Discard(),
		SkipNameValidation: new(true),
		Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			close(reconciled)
			return reconcile.Result{}, nil
		}),
	})
	g.Expect(err).NotTo(HaveOccurred())
	events := make(chan event.TypedGenericEvent[types.NamespacedName], 1)
	g.Expect(c.Watch(source.TypedChannel(events, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, name types.NamespacedName) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: name}}
		},
	)))).To(Succeed())
	go func() { _ = c.Start(t.Context()) }()
	events <- event.TypedGenericEvent[types.NamespacedName]{Object: types.NamespacedName{Name: "c1-0"}}
	g.Eventually(reconciled, time.Minute).Should(BeClosed())
	clientmetrics.RequestResult.Increment(t.Context(), "200", "GET", "127.0.0.1:1")
	elect(t)
}

func elect(t *testing.T) {
	t.Helper()
	leading := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Name: "controller-leader-election-capvcd",
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "controller-leader-election-capvcd", Namespace: "capvcd-system"},
				Client:     fake.NewClientset().CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: "a"},
			},
			LeaseDuration: 15 * time.Second,
			RenewDeadline: 10 * time.Second,
			RetryPeriod:   2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { close(leading) },
				OnStoppedLeading: func() {},
			},
		})
	}()
	NewWithT(t).Eventually(leading, time.Minute).Should(BeClosed())
	cancel()
	<-ended
}

func TestMetricNamesFollowConventions(t *testing.T) {
	g := NewWithT(t)
	found := 0
	for name := range gather(t) {
		if !strings.HasPrefix(name, "capvcd_") {
			continue
		}
		found++
		g.Expect(name).To(MatchRegexp(`^capvcd_[a-z][a-z_]*[a-z]$`))
		g.Expect(name).NotTo(MatchRegexp(`milliseconds|minutes|percent`), "metrics use base units")
	}
	g.Expect(found).To(BeNumerically(">", 20))
}
