// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"cmp"
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
	"k8s.io/cloud-provider/api"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A fakeStep writes or removes one port.
type fakeStep struct{ verb, name, uid, text string }

func (s fakeStep) String() string           { return s.verb + " " + s.name }
func (s fakeStep) Uses() []loadbalancer.Use { return nil }
func (s fakeStep) Deferrable() bool         { return s.verb == "delete" && strings.HasPrefix(s.name, "shared") }

// A fakeBalancer is a cloud in memory. For each location and owner it has the existing ports, and their members.
type fakeBalancer struct {
	mu      sync.Mutex
	objects map[string]map[string]string // location/uid -> name -> written value
	runs    []string
	looks   int // requested plans
	refuse  func(service.Desired) []loadbalancer.Finding
	fail    func(fakeStep) error
	planErr error
	pending bool
	stuck   []loadbalancer.Finding // while no other step is left, the first port reports a problem
	hold    chan struct{}          // steps of location "slow" wait for it
	lagging bool                   // writes have no visible effect
	stale   bool                   // earlier observations show nothing
	old     bool
	lost    map[string]error // why locations cannot be found, by name
	gone    map[string]error // why locations are invisible, by ID
	owners  map[string][]loadbalancer.Owner
	further []netip.Addr      // of load balancers
	same    map[string]string // IDs of locations by name; otherwise the name, or main
}

func (f *fakeBalancer) at(place, uid string) map[string]string {
	if f.objects == nil {
		f.objects = map[string]map[string]string{}
	}
	k := place + "/" + uid
	if f.objects[k] == nil {
		f.objects[k] = map[string]string{}
	}
	return f.objects[k]
}

// addresses returns the addresses of each load balancer.
func (f *fakeBalancer) addresses() []netip.Addr {
	return append([]netip.Addr{netip.MustParseAddr("203.0.113.10")}, f.further...)
}

func (f *fakeBalancer) NameOf(o loadbalancer.Owner) string { return o.String() }

func (f *fakeBalancer) Locate(_ context.Context, name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.lost[name]; err != nil {
		return "", err
	}
	return cmp.Or(f.same[name], name, "main"), nil
}

func (f *fakeBalancer) Plan(_ context.Context, location string, r PlanRequest) (loadbalancer.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	if err := cmp.Or(f.planErr, f.gone[location]); err != nil {
		return loadbalancer.Plan{}, err
	}
	have := f.at(location, r.Want.Owner.UID)
	d := r.Want
	if f.stale && !r.Fresh {
		have = nil
	}
	if r.Follow {
		return follow(have, d), nil
	}
	if f.refuse != nil && !d.Absent {
		if why := f.refuse(d); len(why) > 0 {
			return loadbalancer.Plan{Refusals: why}, nil
		}
	}
	var p loadbalancer.Plan
	wanted := map[string]string{}
	if !d.Absent {
		for _, l := range d.Ports {
			wanted[fmt.Sprintf("tcp-%d", l.Number)] = fmt.Sprint(l.NodePort, " ", addresses(d))
			p.Status.Ports = append(p.Status.Ports, loadbalancer.PortStatus{Protocol: l.Protocol, Port: l.Number})
		}
	}
	for _, name := range sortedKeys(wanted) {
		if have[name] != wanted[name] {
			p.Steps = append(p.Steps, fakeStep{"create", name, d.Owner.UID, wanted[name]})
		}
	}
	for _, name := range sortedKeys(have) {
		p.Status.Objects = append(p.Status.Objects,
			loadbalancer.Object{Name: name, Inherited: f.old, Addresses: f.addresses()})
		if _, ok := wanted[name]; !ok {
			p.Steps = append(p.Steps, fakeStep{"delete", name, d.Owner.UID, ""})
		}
	}
	p.Steps = slices.DeleteFunc(p.Steps, func(s loadbalancer.Step) bool { return d.Elsewhere && !d.Unseen && s.Deferrable() })
	if !d.Absent && len(d.Intent) == 0 {
		p.Intent = f.addresses()
	}
	if len(p.Steps) == 0 && !d.Absent && len(f.stuck) > 0 {
		p.Stuck = f.stuck
		p.Status.Ports[0].Problem = f.stuck[0].Reason
	}
	if len(p.Steps) == 0 && !d.Absent {
		p.Status.Addresses = d.Intent
		if f.pending {
			p.Wait = "virtual services are being realized (0 of 1 ready)"
		}
	}
	return p, nil
}

// follow plans the update of members for all existing ports.
func follow(have map[string]string, d service.Desired) loadbalancer.Plan {
	var p loadbalancer.Plan
	for _, name := range sortedKeys(have) {
		nodePort, _, _ := strings.Cut(have[name], " ")
		p.Steps = append(p.Steps, fakeStep{"update", name, d.Owner.UID, fmt.Sprint(nodePort, " ", addresses(d))})
	}
	return p
}

func addresses(d service.Desired) []netip.Addr {
	var out []netip.Addr
	for _, m := range d.Members {
		out = append(out, m.Addresses...)
	}
	return out
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (f *fakeBalancer) Run(ctx context.Context, place string, step loadbalancer.Step) error {
	s := step.(fakeStep)
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
	f.runs = append(f.runs, place+" "+s.verb+" "+s.name)
	switch {
	case f.lagging:
	case s.verb == "delete":
		delete(f.at(place, s.uid), s.name)
	default:
		f.at(place, s.uid)[s.name] = s.text
	}
	return nil
}

func (f *fakeBalancer) Owners(_ context.Context, place string) ([]loadbalancer.Owner, error) {
	return f.owners[place], nil
}

func (f *fakeBalancer) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, x := range f.objects {
		n += len(x)
	}
	return n
}

// A bench has everything that load balancers need.
type bench struct {
	*WithT

	balancer *fakeBalancer
	client   *fake.Clientset
	clock    *clocktesting.FakeClock
	events   *record.FakeRecorder
	options  LoadBalancerOptions
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
	b := &bench{
		WithT:    g,
		balancer: &fakeBalancer{},
		clock:    clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)),
		events:   record.NewFakeRecorder(100),
	}
	b.client = fake.NewClientset()
	b.informer = informers.NewSharedInformerFactory(b.client, 0)
	si := b.informer.Core().V1().Services().Informer().GetStore()
	ni := b.informer.Core().V1().Nodes().Informer().GetStore()
	recorded := map[*corev1.Service]string{}
	for _, s := range services {
		if locations, ok := s.Annotations[recordedLocations]; ok {
			recorded[s] = locations
			delete(s.Annotations, recordedLocations)
		}
		g.Expect(b.client.Tracker().Add(s)).To(Succeed())
		g.Expect(si.Add(s)).To(Succeed())
	}
	b.services = &serviceStore{func(s *corev1.Service) { g.Expect(si.Add(s)).To(Succeed()) }}
	b.nodes = &nodeStore{func(n *corev1.Node) { g.Expect(ni.Add(n)).To(Succeed()) }}
	b.nodes.add(worker("a", "10.0.0.1"))
	b.options = LoadBalancerOptions{
		Balancer: b.balancer,
		Client:   b.client,
		Services: b.informer.Core().V1().Services().Lister(),
		Nodes:    b.informer.Core().V1().Nodes().Lister(),
		Recorder: b.events,
		Clock:    b.clock,
		AtOnce:   1,
		Defaults: benchDefaults,
		Manifest: "cloud-ccm.yaml",
	}
	b.configure(func(*LoadBalancerOptions) {})
	for s, locations := range recorded {
		b.record(s, strings.Split(locations, ",")...)
	}
	return b
}

// recordedLocations passes the recorded locations of a Service to newBench.
const recordedLocations = servicetest.Prefix + "recorded-locations"

// recordedAt makes newBench record locations of a Service.
func recordedAt(locations ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, recordedLocations, strings.Join(locations, ","))
	}
}

// record records locations of a Service.
func (b *bench) record(s *corev1.Service, locations ...string) {
	b.ExpectWithOffset(1, b.them.store.load(context.Background())).To(Succeed())
	b.ExpectWithOffset(1, b.them.records.write(context.Background(), s, recordChange{locations: locations})).To(Succeed())
}

// recordOf returns the record of a Service as read by a new process.
func (b *bench) recordOf(s *corev1.Service) service.Record {
	fresh := newRecordStore(b.options)
	b.ExpectWithOffset(1, fresh.load(context.Background())).To(Succeed())
	return fresh.Of(s.UID)
}

// configure recreates the load balancers of the bench with other options.
func (b *bench) configure(change func(*LoadBalancerOptions)) {
	change(&b.options)
	b.them = NewLoadBalancers(b.options)
	b.them.store.reportMissing = func(message string) {
		b.events.Event(&corev1.Pod{}, corev1.EventTypeWarning, reasonManifest, message)
	}
}

// reservationsOfOthers returns the reservations of other Services at a location.
func (b *bench) reservationsOfOthers(location string, but types.UID) ([]loadbalancer.Use, error) {
	a := &attempt{
		records:  b.them.records,
		queues:   b.them.queues,
		states:   b.them.states,
		service:  &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: but}},
		location: location,
	}
	return a.usesOfOthers()
}

var benchDefaults = service.Defaults{
	Cluster:   "c1",
	Dialect:   servicetest.Dialect{Noun: "gateway"},
	Locations: []string{"", "slow"},
}

func worker(name, ip string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}},
	}
}

func balanced(name string, mods ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  "shop",
			Name:       name,
			UID:        typesUID(name),
			Finalizers: []string{servicehelpers.LoadBalancerCleanupFinalizer},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer,
			Ports: []corev1.ServicePort{
				{Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080},
				{Protocol: corev1.ProtocolTCP, Port: 443, NodePort: 30443},
			},
		},
	}
	for _, mod := range mods {
		mod(s)
	}
	return s
}

func at(place string) func(*corev1.Service) {
	return func(s *corev1.Service) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.Location, place) }
}

func published(s *corev1.Service) {
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.10"}}
}

func (b *bench) ensure(s *corev1.Service) (*corev1.LoadBalancerStatus, error) {
	return b.them.EnsureLoadBalancer(context.Background(), "", s, nil)
}

// newEvents returns the events since the last call.
func (b *bench) newEvents() []string {
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

func typesUID(name string) types.UID { return types.UID(name + "-uid") }
