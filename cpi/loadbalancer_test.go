package cpi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// A fakeBalancer is a cloud in memory: for each place and owner the ports that stand, and the members they send to.
type fakeBalancer struct {
	mu      sync.Mutex
	things  map[string]map[string]string // place/uid -> name -> what was written
	runs    []string
	refuse  func(lb.Desired) []lb.Finding
	fail    func(lb.Step) error
	planErr error
	pending bool
	hold    chan struct{} // steps of the place "slow" wait for it
	lagging bool          // what is written is not seen
	old     bool
}

func (f *fakeBalancer) at(place, uid string) map[string]string {
	if f.things == nil {
		f.things = map[string]map[string]string{}
	}
	k := place + "/" + uid
	if f.things[k] == nil {
		f.things[k] = map[string]string{}
	}
	return f.things[k]
}

func (f *fakeBalancer) Plan(_ context.Context, place string, r PlanRequest) (lb.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.planErr != nil {
		return lb.Plan{}, f.planErr
	}
	have, d := f.at(place, r.Want.Owner.UID), r.Want
	if f.refuse != nil && !d.Absent {
		if why := f.refuse(d); len(why) > 0 {
			return lb.Plan{Refusals: why}, nil
		}
	}
	var plan lb.Plan
	wanted := map[string]string{}
	if !d.Absent {
		for _, l := range d.Listeners {
			wanted[l.Key()] = fmt.Sprint(l.NodePort, d.Members)
			plan.Status.Ports = append(plan.Status.Ports, lb.PortStatus{Protocol: l.Protocol, Port: l.Port})
		}
	}
	for _, name := range sortedKeys(wanted) {
		if have[name] != wanted[name] {
			plan.Steps = append(plan.Steps, lb.Step{Verb: lb.Create, Kind: lb.KindPool, Name: name, ID: d.Owner.UID, Pool: &lb.PoolSpec{Description: wanted[name]}})
		}
	}
	for _, name := range sortedKeys(have) {
		plan.Status.Objects = append(plan.Status.Objects, lb.ObjectStatus{Name: name, Old: f.old})
		if _, ok := wanted[name]; !ok {
			plan.Steps = append(plan.Steps, lb.Step{Verb: lb.Delete, Kind: lb.KindPool, Name: name, ID: d.Owner.UID})
		}
	}
	if !d.Absent && len(d.Intent) == 0 {
		plan.Intent = []netip.Addr{netip.MustParseAddr("203.0.113.10")}
	}
	if len(plan.Steps) == 0 && !d.Absent {
		plan.Status.Addresses = d.Intent
		if f.pending {
			plan.Wait = "virtual services are being realized (0 of 1 ready)"
		}
	}
	return plan, nil
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (f *fakeBalancer) Run(ctx context.Context, place string, s lb.Step) error {
	if f.hold != nil && place == "slow" {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		if err := f.fail(s); err != nil {
			return err
		}
	}
	f.runs = append(f.runs, place+" "+string(s.Verb)+" "+s.Name)
	switch {
	case f.lagging:
	case s.Verb == lb.Delete:
		delete(f.at(place, s.ID), s.Name)
	default:
		f.at(place, s.ID)[s.Name] = s.Pool.Description
	}
	return nil
}

func (f *fakeBalancer) Owners(context.Context, string) ([]lb.Owner, error) { return nil, nil }

func (f *fakeBalancer) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, x := range f.things {
		n += len(x)
	}
	return n
}

// A bench has all that load balancers need.
type bench struct {
	*WithT

	balancer *fakeBalancer
	client   *fake.Clientset
	clock    *clocktesting.FakeClock
	events   *record.FakeRecorder
	them     *LoadBalancers
	services *serviceStore
	nodes    *nodeStore
	informer informers.SharedInformerFactory
}

type (
	serviceStore struct{ add func(*corev1.Service) }
	nodeStore    struct{ add func(*corev1.Node) }
)

func newBench(t *testing.T, services ...*corev1.Service) *bench {
	t.Helper()
	g := NewWithT(t)
	b := &bench{WithT: g, balancer: &fakeBalancer{}, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)), events: record.NewFakeRecorder(100)}
	b.client = fake.NewClientset()
	b.informer = informers.NewSharedInformerFactory(b.client, 0)
	si, ni := b.informer.Core().V1().Services().Informer().GetStore(), b.informer.Core().V1().Nodes().Informer().GetStore()
	for _, s := range services {
		g.Expect(b.client.Tracker().Add(s)).To(Succeed())
		g.Expect(si.Add(s)).To(Succeed())
	}
	b.services = &serviceStore{func(s *corev1.Service) { g.Expect(si.Add(s)).To(Succeed()) }}
	b.nodes = &nodeStore{func(n *corev1.Node) { g.Expect(ni.Add(n)).To(Succeed()) }}
	b.nodes.add(worker("a", "10.0.0.1"))
	b.them = NewLoadBalancers(LoadBalancerOptions{
		Balancer: b.balancer, Client: b.client, Services: b.informer.Core().V1().Services().Lister(), Nodes: b.informer.Core().V1().Nodes().Lister(),
		Recorder: b.events, Clock: b.clock, AtOnce: 1,
		Defaults: service.Defaults{Cluster: "c1", Gateways: []service.Gateway{{}, {Name: "slow"}}},
	})
	return b
}

func worker(name, ip string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}}}
}

func balanced(name string, mods ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: typesUID(name), Finalizers: []string{servicehelpers.LoadBalancerCleanupFinalizer}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080}, {Protocol: corev1.ProtocolTCP, Port: 443, NodePort: 30443}},
		},
	}
	for _, mod := range mods {
		mod(s)
	}
	return s
}

func at(place string) func(*corev1.Service) {
	return func(s *corev1.Service) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, service.GatewayAnnotation, place) }
}

func published(s *corev1.Service) {
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.10"}}
}

func (b *bench) ensure(s *corev1.Service) (*corev1.LoadBalancerStatus, error) {
	return b.them.EnsureLoadBalancer(context.Background(), "", s, nil)
}

// told are the events since last asked.
func (b *bench) told() []string {
	var out []string
	for {
		select {
		case e := <-b.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func (b *bench) mustRetry(err error, text string) {
	var retry *api.RetryError
	b.ExpectWithOffset(1, errors.As(err, &retry)).To(BeTrue(), "%v", err)
	b.ExpectWithOffset(1, err.Error()).To(ContainSubstring(text))
}

func TestALoadBalancerIsMadeAndRemoved(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)

	status, err := b.ensure(s)

	b.Expect(err).NotTo(HaveOccurred())
	mode := corev1.LoadBalancerIPModeVIP
	b.Expect(status.Ingress).To(Equal([]corev1.LoadBalancerIngress{{
		IP: "203.0.113.10", IPMode: &mode, Ports: []corev1.PortStatus{{Port: 80, Protocol: corev1.ProtocolTCP}, {Port: 443, Protocol: corev1.ProtocolTCP}},
	}}))
	stored, err := b.client.CoreV1().Services("shop").Get(context.Background(), "web", metav1.GetOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(stored.Annotations).To(HaveKeyWithValue(service.IntentAnnotation, "203.0.113.10"))
	runs := len(b.balancer.runs)
	_, err = b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.runs).To(HaveLen(runs), "the second time changes nothing, though the cached Service is old")
	b.Expect(b.told()).To(BeEmpty())

	_, exists, err := b.them.GetLoadBalancer(context.Background(), "", s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(exists).To(BeTrue())
	b.Expect(b.them.EnsureLoadBalancerDeleted(context.Background(), "", s)).To(Succeed())
	_, exists, err = b.them.GetLoadBalancer(context.Background(), "", s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(exists).To(BeFalse())
	b.Expect(b.balancer.left()).To(BeZero())
}

func TestTLSAtTheLoadBalancerIsProxyMode(t *testing.T) {
	https := "https"
	s := balanced("web", func(s *corev1.Service) { s.Spec.Ports[1].AppProtocol = &https })
	b := newBench(t, s)

	status, err := b.ensure(s)

	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(*status.Ingress[0].IPMode).To(Equal(corev1.LoadBalancerIPModeProxy))
}

func TestWhatCannotBeSaidIsNotGone(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.planErr = lb.ErrUnknown

	_, _, err := b.them.GetLoadBalancer(context.Background(), "", s)

	b.Expect(err).To(MatchError(lb.ErrUnknown))
	b.Expect(b.them.EnsureLoadBalancerDeleted(context.Background(), "", s)).To(MatchError(lb.ErrUnknown))
}

func TestNothingIsWrittenBeforeTheIntent(t *testing.T) {
	s := balanced("web")
	b := newBench(t) // the API server does not know the Service
	b.services.add(s)

	_, err := b.ensure(s)

	b.Expect(err).To(MatchError(ContainSubstring("writing down")))
	b.Expect(b.balancer.runs).To(BeEmpty())
}

func TestAnotherClassIsNotOurs(t *testing.T) {
	class := "other"
	s := balanced("web", func(s *corev1.Service) { s.Spec.LoadBalancerClass = &class })
	b := newBench(t, s)

	_, err := b.ensure(s)

	b.Expect(err).To(BeIdenticalTo(cloudprovider.ImplementedElsewhere), "compared as Kubernetes does")
}

func TestARefusedWishIsToldOnceAndHeals(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.refuse = func(lb.Desired) []lb.Finding {
		return []lb.Finding{{Reason: "CertificateUnknown", Message: "no certificate shop"}}
	}

	for range 3 {
		_, err := b.ensure(s)
		b.mustRetry(err, "CertificateUnknown")
	}
	b.Expect(b.told()).To(Equal([]string{"Warning CertificateUnknown no certificate shop"}))
	b.Expect(b.balancer.runs).To(BeEmpty())

	b.balancer.refuse = nil
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.told()).To(ConsistOf(HavePrefix("Normal LoadBalancerCorrected")))
	b.balancer.refuse = func(lb.Desired) []lb.Finding {
		return []lb.Finding{{Reason: "CertificateUnknown", Message: "no certificate shop"}}
	}
	_, err = b.ensure(s)
	b.mustRetry(err, "CertificateUnknown")
	b.Expect(b.told()).To(HaveLen(1), "told again when it is so again")
	b.Expect(b.balancer.left()).To(Equal(2), "what works stays")
}

func TestAWrongAnnotationIsToldAndNothingIsAsked(t *testing.T) {
	s := balanced("web", func(s *corev1.Service) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "service.beta.kubernetes.io/vcloud-internal", "perhaps")
	})
	b := newBench(t, s)

	_, err := b.ensure(s)

	b.mustRetry(err, "BadAnnotation")
	b.Expect(b.told()).To(ConsistOf(ContainSubstring("perhaps")))
}

func TestAStepThatIsRefusedLeavesNothingHalfBuilt(t *testing.T) {
	tests := []struct {
		name string
		mod  func(*corev1.Service)
		old  bool
		left int
	}{
		{"of a new load balancer", func(*corev1.Service) {}, false, 0},
		{"but of one that works it leaves what is there", published, false, 1},
		{"and of one that a predecessor made", func(*corev1.Service) {}, true, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := balanced("web", tt.mod)
			b := newBench(t, s)
			b.balancer.old = tt.old
			b.balancer.fail = func(step lb.Step) error {
				if step.Verb == lb.Create && step.Name == "tcp-80" {
					return fmt.Errorf("%w: the right is missing", lb.ErrRefused)
				}
				return nil
			}

			_, err := b.ensure(s)

			b.mustRetry(err, "LoadBalancerRefused")
			b.Expect(b.told()).To(ConsistOf(ContainSubstring("the right is missing")))
			b.Expect(b.balancer.left()).To(Equal(tt.left))
		})
	}
}

func TestWaitingTellsHowFarThingsAre(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.fail = func(step lb.Step) error {
		if step.Name == "tcp-80" {
			return lb.ErrBusy
		}
		return nil
	}
	_, err := b.ensure(s)
	b.mustRetry(err, "1 of 2 steps done")

	b.balancer.fail, b.balancer.pending = nil, true
	_, err = b.ensure(s)
	b.mustRetry(err, "0 of 1 ready")
	b.balancer.pending = false

	b.nodes.add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b", CreationTimestamp: metav1.NewTime(b.clock.Now())}})
	_, err = b.ensure(s)
	b.mustRetry(err, "node b")
	b.Expect(b.told()).To(BeEmpty(), "waiting is no wish that cannot be met")
}

func TestACloudThatDoesNotFollowIsNotWrittenToAgainAndAgain(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.balancer.lagging = true

	_, err := b.ensure(s)

	b.mustRetry(err, "waiting for the cloud to follow")
	b.Expect(b.balancer.runs).To(HaveLen(2))
}

func TestASlowPlaceDoesNotHoldUpAnother(t *testing.T) {
	slow, next, quick := balanced("slow", at("slow")), balanced("next", at("slow")), balanced("quick")
	b := newBench(t, slow, next, quick)
	b.balancer.hold = make(chan struct{})
	finished := make(chan error, 1)
	go func() {
		_, err := b.ensure(slow)
		finished <- err
	}()
	b.Eventually(func() bool {
		free, ok := b.them.turns.try("slow")
		if ok {
			free()
		}
		return ok
	}).Should(BeFalse())

	_, err := b.ensure(next)
	b.mustRetry(err, "gateway slow")
	_, err = b.ensure(quick)
	b.Expect(err).NotTo(HaveOccurred())

	deleted := make(chan error, 1)
	go func() { deleted <- b.them.EnsureLoadBalancerDeleted(context.Background(), "", next) }()
	b.Eventually(b.clock.HasWaiters).Should(BeTrue())
	b.clock.Step(patience)
	b.Eventually(deleted).Should(Receive(MatchError(lb.ErrBusy)), "deletion waits a while, as it cannot ask to be called soon")

	close(b.balancer.hold)
	b.Eventually(finished).Should(Receive(BeNil()))
}

func TestALoadBalancerThatMovesLeavesItsOldPlace(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())

	_, err = b.ensure(balanced("web", at("slow")))

	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.things["/web-uid"]).To(BeEmpty())
	b.Expect(b.balancer.things["slow/web-uid"]).To(HaveLen(2))
	b.Expect(slices.IndexFunc(b.balancer.runs, func(r string) bool { return strings.HasPrefix(r, " delete") })).To(BeNumerically(">",
		slices.IndexFunc(b.balancer.runs, func(r string) bool { return strings.HasPrefix(r, "slow create") })), "the new one is made first")
}

func TestADryRunChangesNothing(t *testing.T) {
	s := balanced("web", func(s *corev1.Service) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, service.DryRunAnnotation, "true") })
	b := newBench(t, s)

	for range 2 {
		_, err := b.ensure(s)
		b.Expect(err).NotTo(HaveOccurred())
	}

	b.Expect(b.balancer.runs).To(BeEmpty())
	b.Expect(b.told()).To(ConsistOf(And(HavePrefix("Normal LoadBalancerPlan"), ContainSubstring("create lb-pool tcp-80"))))
}

func TestDriftIsRepairedAndPublished(t *testing.T) {
	s, foreign, young := balanced("web"), balanced("foreign", func(s *corev1.Service) { class := "x"; s.Spec.LoadBalancerClass = &class }), balanced("young", func(s *corev1.Service) { s.Finalizers = nil })
	b := newBench(t, s, foreign, young)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.them.Start(ctx)

	b.Eventually(b.clock.HasWaiters).Should(BeTrue())
	b.clock.Step(2 * usualDrift)
	b.Eventually(b.balancer.left).Should(Equal(2), "of the one that Kubernetes has handed over")
	b.Eventually(func() []corev1.LoadBalancerIngress {
		stored, _ := b.client.CoreV1().Services("shop").Get(ctx, "web", metav1.GetOptions{})
		return stored.Status.LoadBalancer.Ingress
	}).Should(HaveLen(1))

	b.balancer.mu.Lock()
	delete(b.balancer.things["/web-uid"], "tcp-443")
	b.balancer.mu.Unlock()
	b.Eventually(b.clock.HasWaiters).Should(BeTrue())
	b.clock.Step(2 * usualDrift)
	b.Eventually(b.balancer.left).Should(Equal(2))
}

func TestANodeThatGetsAnotherAddressIsFollowed(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.Expect(b.client.Tracker().Add(worker("a", "10.0.0.1"))).To(Succeed())
	b.them.opts.NodeInformer = b.informer.Core().V1().Nodes().Informer()
	b.them.opts.Drift = 24 * time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	b.them.Start(ctx)
	b.informer.Start(ctx.Done())
	b.informer.WaitForCacheSync(ctx.Done())

	changed := worker("a", "10.0.0.99")
	_, err = b.client.CoreV1().Nodes().UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	b.Expect(err).NotTo(HaveOccurred())

	b.Eventually(func() string {
		b.clock.Step(settleNodes)
		b.balancer.mu.Lock()
		defer b.balancer.mu.Unlock()
		return b.balancer.at("", "web-uid")["tcp-80"]
	}).Should(ContainSubstring("10.0.0.99"))
}

func TestTheCertificateOfASecretIsRead(t *testing.T) {
	https := "https"
	s := balanced("web", func(s *corev1.Service) {
		s.Spec.Ports[1].AppProtocol = &https
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "service.beta.kubernetes.io/vcloud-tls-secret", "shop-tls")
	})
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.mustRetry(err, "BadSecret")
	b.Expect(b.told()).To(ConsistOf(ContainSubstring(`"shop-tls"`)))

	b.Expect(b.client.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-tls"}, Data: map[string][]byte{corev1.TLSCertKey: []byte("x")}})).To(Succeed())
	_, err = b.ensure(s)
	b.mustRetry(err, "BadSecret")
	b.Expect(b.told()).To(ConsistOf(ContainSubstring("no valid certificate")))
}

func typesUID(name string) types.UID { return types.UID(name + "-uid") }

func TestWhatIsBeingMadeIsNotSaidToBeAbsent(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	unlock := b.them.locks.lock(string(s.UID)) // somebody repairs it
	asked := make(chan bool)
	go func() {
		_, exists, _ := b.them.GetLoadBalancer(t.Context(), "", s)
		asked <- exists
	}()

	b.Consistently(asked, "50ms").ShouldNot(Receive())
	b.balancer.mu.Lock()
	b.balancer.at("", string(s.UID))["tcp-80"] = "made meanwhile"
	b.balancer.mu.Unlock()
	unlock()

	b.Eventually(asked).Should(Receive(BeTrue()))
}
