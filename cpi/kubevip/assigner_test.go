// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

const system = "kube-system"

// A bench is an API server with Services, and with assigners that write to it.
type bench struct {
	*WithT

	t        *testing.T
	client   *fake.Clientset
	recorder *record.FakeRecorder
	created  int
	writes   int // of the ConfigMap
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		WithT:    NewWithT(t),
		t:        t,
		client:   fake.NewClientset(),
		recorder: record.NewFakeRecorder(100),
	}
	b.client.PrependReactor("patch", "configmaps", b.patchClaims)
	return b
}

// patchClaims patches the ConfigMap as an API server does: it rejects a patch of another version.
func (b *bench) patchClaims(action clienttesting.Action) (bool, runtime.Object, error) {
	of := action.(clienttesting.PatchAction)
	resource := schema.GroupResource{Resource: "configmaps"}
	found, err := b.client.Tracker().Get(of.GetResource(), of.GetNamespace(), of.GetName())
	if err != nil {
		return true, nil, err
	}
	object := found.(*corev1.ConfigMap).DeepCopy()
	var patch struct {
		Metadata metav1.ObjectMeta
		Data     map[string]*string
	}
	if err := json.Unmarshal(of.GetPatch(), &patch); err != nil {
		return true, nil, err
	}
	if patch.Metadata.ResourceVersion != object.ResourceVersion || patch.Metadata.UID != object.UID {
		return true, nil, apierrors.NewConflict(resource, object.Name, nil)
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	for key, value := range patch.Data {
		if value == nil {
			delete(object.Data, key)
			continue
		}
		object.Data[key] = *value
	}
	b.writes++
	object.ResourceVersion = strconv.Itoa(b.writes)
	return true, object, b.client.Tracker().Update(of.GetResource(), object, of.GetNamespace())
}

// A process is a cloud controller manager with its own view of the cluster.
type process struct {
	*Assigner

	b *bench
}

// process starts a process with three IPv4 addresses.
func (b *bench) process(mods ...func(*Options)) *process {
	factory := informers.NewSharedInformerFactory(b.client, 0)
	o := Options{
		Client:    b.client,
		Namespace: system,
		Services:  factory.Core().V1().Services().Informer(),
		Nodes:     factory.Core().V1().Nodes().Lister(),
		Recorder:  b.recorder,
		Ranges:    []Range{ranged("192.168.100.240", "192.168.100.242")},
	}
	for _, mod := range mods {
		mod(&o)
	}
	return &process{New(o), b}
}

// see updates the process's cache of Services.
func (p *process) see() {
	list, err := p.b.client.CoreV1().Services("").List(p.b.t.Context(), metav1.ListOptions{})
	p.b.Expect(err).NotTo(HaveOccurred())
	all := make([]any, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	p.b.Expect(p.opts.Services.GetIndexer().Replace(all, "")).To(Succeed())
}

// pass updates the process's cache of Services and assigns addresses.
func (p *process) pass() {
	p.see()
	p.b.Expect(p.assign(p.b.t.Context())).To(Succeed())
}

func ranged(first, last string) Range {
	return Range{netip.MustParseAddr(first), netip.MustParseAddr(last)}
}

func dualStack(o *Options) { o.Ranges = append(o.Ranges, ranged("fd00:100::f0", "fd00:100::ff")) }

func inClass(class string) func(*Options) { return func(o *Options) { o.Class = class } }

// service creates a Service of type LoadBalancer in namespace shop, newer than the existing ones.
func (b *bench) service(name string, mods ...func(*corev1.Service)) *corev1.Service {
	b.created++
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         "shop",
			Name:              name,
			UID:               types.UID("uid-" + strconv.Itoa(b.created)),
			CreationTimestamp: metav1.NewTime(time.Unix(int64(b.created), 0)),
		},
		Spec: corev1.ServiceSpec{
			Type:       corev1.ServiceTypeLoadBalancer,
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		},
	}
	for _, mod := range mods {
		mod(s)
	}
	created, err := b.client.CoreV1().Services(s.Namespace).Create(b.t.Context(), s, metav1.CreateOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	return created
}

func (b *bench) change(s *corev1.Service, change func(*corev1.Service)) {
	now, err := b.client.CoreV1().Services(s.Namespace).Get(b.t.Context(), s.Name, metav1.GetOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	change(now)
	_, err = b.client.CoreV1().Services(s.Namespace).Update(b.t.Context(), now, metav1.UpdateOptions{})
	b.Expect(err).NotTo(HaveOccurred())
}

func (b *bench) remove(s *corev1.Service) {
	b.Expect(b.client.CoreV1().Services(s.Namespace).Delete(b.t.Context(), s.Name, metav1.DeleteOptions{})).To(Succeed())
}

// addresses returns the addresses that kube-vip announces for a Service.
func (b *bench) addresses(s *corev1.Service) string {
	now, err := b.client.CoreV1().Services(s.Namespace).Get(b.t.Context(), s.Name, metav1.GetOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	return now.Annotations[addressesAnnotation]
}

// claimed returns the keys of the ConfigMap.
func (b *bench) claimed() map[string]string {
	object, err := b.client.CoreV1().ConfigMaps(system).Get(b.t.Context(), claimsName, metav1.GetOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	return object.Data
}

// events returns the events since the last call.
func (b *bench) events() []string {
	var texts []string
	for {
		select {
		case text := <-b.recorder.Events:
			texts = append(texts, text)
		default:
			return texts
		}
	}
}

func requests(address string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.LoadBalancerIP = address }
}

func annotated(addresses string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Annotations = map[string]string{addressesAnnotation: addresses} }
}

func families(policy corev1.IPFamilyPolicy, all ...corev1.IPFamily) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.IPFamilyPolicy = &policy
		s.Spec.IPFamilies = all
	}
}

func TestEachServiceGetsItsOwnAddress(t *testing.T) {
	b := newBench(t)
	web := b.service("web")
	api := b.service("api")
	p := b.process()

	p.pass()

	b.Expect(b.addresses(web)).To(Equal("192.168.100.240"))
	b.Expect(b.addresses(api)).To(Equal("192.168.100.241"))
	b.Expect(b.events()).To(ContainElement(ContainSubstring("AddressAssigned kube-vip announces 192.168.100.240")))
	b.Expect(b.claimed()).To(HaveKeyWithValue("192.168.100.240", ContainSubstring(`"service":"shop/web"`)))
}

func TestNothingIsWrittenWithoutChanges(t *testing.T) {
	b := newBench(t)
	b.service("web")
	p := b.process()
	p.pass()
	p.see()
	b.client.ClearActions()

	b.Expect(p.assign(t.Context())).To(Succeed())

	b.Expect(b.client.Actions()).To(BeEmpty())
}

func TestAddressesAreKeptAfterARestart(t *testing.T) {
	b := newBench(t)
	web := b.service("web")
	api := b.service("api")
	b.process().pass()
	b.remove(web)
	other := b.service("other")

	b.process().pass()

	b.Expect(b.addresses(api)).To(Equal("192.168.100.241"))
	b.Expect(b.addresses(other)).To(Equal("192.168.100.240"), "it was released in the meantime")
}

func TestTwoProcessesNeverAssignOneAddressTwice(t *testing.T) {
	b := newBench(t)
	first := b.process()
	second := b.process()
	first.pass()
	second.pass()
	web := b.service("web")
	first.see()
	b.remove(web)
	api := b.service("api")
	second.see()
	b.Expect(b.client.Tracker().Add(web)).To(Succeed())

	b.Expect(first.assign(t.Context())).To(Succeed(), "it only watches web")
	b.Expect(second.assign(t.Context())).To(MatchError(errOutdated), "it only watches api")
	b.Expect(b.addresses(api)).To(BeEmpty(), "unclaimed addresses are not announced")
	b.Expect(second.assign(t.Context())).To(Succeed())

	b.Expect(b.addresses(web)).To(Equal("192.168.100.240"))
	b.Expect(b.addresses(api)).To(Equal("192.168.100.241"))
}

func TestAddressesAreKeptIfTheClaimsAreLost(t *testing.T) {
	b := newBench(t)
	oldest := b.service("oldest", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
	web := b.service("web")
	b.process().pass()
	b.Expect(b.client.CoreV1().ConfigMaps(system).Delete(t.Context(), claimsName, metav1.DeleteOptions{})).To(Succeed())
	b.change(oldest, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })

	b.process().pass()

	b.Expect(b.addresses(web)).To(Equal("192.168.100.240"))
	b.Expect(b.addresses(oldest)).To(Equal("192.168.100.241"))
}

func TestAnAddressIsReleasedWithItsService(t *testing.T) {
	b := newBench(t)
	p := b.process()
	web := b.service("web")
	p.pass()

	b.change(web, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
	p.pass()
	b.Expect(b.addresses(web)).To(BeEmpty())
	p.pass()
	b.Expect(b.claimed()).To(BeEmpty())

	b.change(web, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })
	p.pass()
	b.Expect(b.claimed()).To(HaveLen(1))
	b.remove(web)
	p.pass()
	b.Expect(b.claimed()).To(BeEmpty())
}

func TestAnAddressStaysClaimedWhileItIsAnnounced(t *testing.T) {
	b := newBench(t)
	p := b.process()
	web := b.service("web")
	p.pass()
	failing := true
	b.client.PrependReactor("patch", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
		refused := failing && action.(clienttesting.PatchAction).GetName() == web.Name
		return refused, nil, apierrors.NewInternalError(errors.New("refused by the test"))
	})
	b.change(web, requests("192.168.100.241"))
	api := b.service("api", requests("192.168.100.240"))
	p.see()

	b.Expect(p.assign(t.Context())).To(MatchError(ContainSubstring("refused by the test")))
	b.Expect(b.addresses(web)).To(Equal("192.168.100.240"), "kube-vip still announces it")
	b.Expect(b.addresses(api)).To(BeElementOf("", "192.168.100.242"), "its address is announced for another Service")

	failing = false
	for range 3 {
		p.pass()
	}
	b.Expect(b.addresses(web)).To(Equal("192.168.100.241"))
	b.Expect(b.addresses(api)).To(Equal("192.168.100.240"))
	b.Expect(b.claimed()).To(HaveLen(2))
}

func TestAnAnnotationIsRemovedAfterARestartToo(t *testing.T) {
	b := newBench(t)
	web := b.service("web")
	b.process().pass()
	b.change(web, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
	failing := true
	b.client.PrependReactor("patch", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return failing, nil, apierrors.NewInternalError(errors.New("refused by the test"))
	})
	p := b.process()
	p.see()
	b.Expect(p.assign(t.Context())).NotTo(Succeed())

	failing = false
	again := b.process()
	again.pass()
	b.Expect(b.addresses(web)).To(BeEmpty())
	again.pass()
	b.Expect(b.claimed()).To(BeEmpty())
}

func TestAServiceMissingFromTheCacheKeepsItsAddress(t *testing.T) {
	b := newBench(t)
	web := b.service("web")
	b.process().pass()
	p := b.process()

	b.Expect(p.assign(t.Context())).To(Succeed(), "its cache is empty")

	b.Expect(b.claimed()).To(HaveKeyWithValue("192.168.100.240", ContainSubstring(string(web.UID))))
}

func TestARecreatedServiceIsADifferentService(t *testing.T) {
	b := newBench(t)
	p := b.process()
	b.remove(b.service("gone"))
	web := b.service("web")
	p.pass()
	b.remove(web)
	again := b.service("web")

	p.pass()

	b.Expect(b.claimed()).To(HaveLen(1))
	b.Expect(b.claimed()).To(HaveKeyWithValue(b.addresses(again), ContainSubstring(string(again.UID))))
}

func TestExhaustionIsReportedOnceAndRecovers(t *testing.T) {
	b := newBench(t)
	p := b.process()
	first := b.service("first")
	b.service("second")
	b.service("third")
	fourth := b.service("fourth")

	p.pass()
	b.Expect(b.addresses(fourth)).To(BeEmpty())
	b.Expect(b.events()).To(ContainElement(And(ContainSubstring("Warning NoFreeAddress"),
		ContainSubstring("192.168.100.240-192.168.100.242"), ContainSubstring("delete a Service, or add a range"))))
	p.pass()
	b.Expect(b.events()).To(BeEmpty())

	b.remove(first)
	p.pass()
	b.Expect(b.addresses(fourth)).To(Equal("192.168.100.240"))
}

func TestRequestedAddresses(t *testing.T) {
	for name, tt := range map[string]struct {
		mod   func(*corev1.Service)
		want  string
		event string // empty: none
	}{
		"in the spec":                          {requests("192.168.100.242"), "192.168.100.242", ""},
		"in the annotation of kube-vip":        {annotated("192.168.100.242"), "192.168.100.242", ""},
		"of another Service":                   {requests("192.168.100.240"), "192.168.100.241", "AddressInUse address 192.168.100.240 is that of Service shop/first"},
		"of another Service, in an annotation": {annotated("192.168.100.240"), "192.168.100.241", "AddressInUse"},
		"outside the ranges":                   {requests("192.168.100.1"), "192.168.100.241", "AddressOutOfRange address 192.168.100.1 is outside the ranges"},
		"outside, in an annotation":            {annotated("192.168.100.1"), "192.168.100.241", "AddressOutOfRange"},
		"of a family that the Service lacks":   {requests("fd00:100::1"), "192.168.100.241", "InvalidFamilies"},
		"that is invalid":                      {requests("example.com"), "192.168.100.241", "AddressOutOfRange"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p := b.process()
			b.service("first")
			p.pass()
			b.events()
			s := b.service("web", tt.mod)

			p.pass()

			b.Expect(b.addresses(s)).To(Equal(tt.want))
			matched := 0
			for _, text := range b.events() {
				if tt.event != "" && strings.HasPrefix(text, "Warning "+tt.event) {
					matched++
				} else {
					b.Expect(text).To(HavePrefix("Normal AddressAssigned"))
				}
			}
			b.Expect(tt.event == "" || matched > 0).To(BeTrue(), "there is no event %s", tt.event)
		})
	}
}

func TestAUserChangedAnnotationIsARequest(t *testing.T) {
	b := newBench(t)
	p := b.process()
	web := b.service("web")
	p.pass()

	b.change(web, annotated("192.168.100.242"))
	p.pass()
	b.Expect(b.addresses(web)).To(Equal("192.168.100.242"))
	b.Expect(b.claimed()).To(HaveLen(1))

	b.change(web, annotated("192.168.100.1"))
	p.pass()
	b.Expect(b.addresses(web)).To(Equal("192.168.100.242"), "the address of the gateway is not announced")
}

func TestAddressesOfNodesAndOfTheControlPlaneAreNotAssigned(t *testing.T) {
	b := newBench(t)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "192.168.100.241"}}},
	}
	p := b.process(func(o *Options) {
		factory := informers.NewSharedInformerFactory(b.client, 0)
		nodes := factory.Core().V1().Nodes()
		b.Expect(nodes.Informer().GetIndexer().Add(node)).To(Succeed())
		o.Nodes = nodes.Lister()
		o.Reserved = []netip.Addr{netip.MustParseAddr("192.168.100.240")}
	})
	web := b.service("web", requests("192.168.100.241"))

	p.pass()

	b.Expect(b.addresses(web)).To(Equal("192.168.100.242"))
	b.Expect(b.events()).To(ContainElement(ContainSubstring("is that of Node node-1")))
}

func TestChangingTheRangeMovesServicesOutsideIt(t *testing.T) {
	b := newBench(t)
	web := b.service("web")
	b.process().pass()

	p := b.process(func(o *Options) { o.Ranges = []Range{ranged("192.168.100.250", "192.168.100.250")} })
	p.pass()

	b.Expect(b.addresses(web)).To(Equal("192.168.100.250"))
	p.pass()
	b.Expect(b.claimed()).To(HaveLen(1))
}

func TestFamilies(t *testing.T) {
	const (
		prefer  = corev1.IPFamilyPolicyPreferDualStack
		require = corev1.IPFamilyPolicyRequireDualStack
		v4      = corev1.IPv4Protocol
		v6      = corev1.IPv6Protocol
	)
	for name, tt := range map[string]struct {
		service func(*corev1.Service)
		pool    func(*Options)
		want    string
		event   string
	}{
		"both, the first one first":         {families(require, v6, v4), dualStack, "fd00:100::f0,192.168.100.240", ""},
		"both, if the ranges have one":      {families(require, v4, v6), func(*Options) {}, "", "InvalidFamilies there is no range of IPv6 addresses"},
		"both preferred, if there is one":   {families(prefer, v4, v6), func(*Options) {}, "192.168.100.240", ""},
		"both preferred, if there are both": {families(prefer, v4, v6), dualStack, "192.168.100.240,fd00:100::f0", ""},
		"only IPv6":                         {families(corev1.IPFamilyPolicySingleStack, v6), dualStack, "fd00:100::f0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.service("web", tt.service)

			b.process(tt.pool).pass()

			b.Expect(b.addresses(s)).To(Equal(tt.want))
			if tt.event != "" {
				b.Expect(b.events()).To(ContainElement(ContainSubstring(tt.event)))
			}
		})
	}
}

func TestADualStackServiceKeepsBothAddresses(t *testing.T) {
	b := newBench(t)
	s := b.service("web", families(corev1.IPFamilyPolicyRequireDualStack, corev1.IPv4Protocol, corev1.IPv6Protocol))
	b.process(dualStack).pass()
	before := b.addresses(s)

	b.process(dualStack).pass()

	b.Expect(b.addresses(s)).To(Equal(before))
	b.Expect(b.claimed()).To(HaveKey("fd00_100__f0"))
}

func TestClasses(t *testing.T) {
	class := func(name string) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To(name) }
	}
	b := newBench(t)
	plain := b.service("plain")
	classed := b.service("classed", class("example.com/kube-vip"))
	foreign := b.service("foreign", class("example.com/other"), annotated("203.0.113.1"))
	internal := b.service("internal", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })

	b.process(inClass("example.com/kube-vip")).pass()

	b.Expect([]string{b.addresses(plain), b.addresses(classed), b.addresses(foreign), b.addresses(internal)}).To(
		Equal([]string{"", "192.168.100.240", "203.0.113.1", ""}))
}

func TestALocalTrafficPolicyCausesAWarning(t *testing.T) {
	b := newBench(t)
	web := b.service("web", func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})

	b.process().pass()

	b.Expect(b.addresses(web)).NotTo(BeEmpty())
	b.Expect(b.events()).To(ContainElement(ContainSubstring("Warning LocalTraffic")))
}

func TestADamagedClaimStopsAssignment(t *testing.T) {
	b := newBench(t)
	_, err := b.client.CoreV1().ConfigMaps(system).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: claimsName},
		Data:       map[string]string{"192.168.100.240": "{}"},
	}, metav1.CreateOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	b.service("web")
	p := b.process()
	p.see()

	b.Expect(p.assign(t.Context())).To(MatchError(ContainSubstring("delete the key")))
}

func TestAnAssignerFollowsServices(t *testing.T) {
	b := newBench(t)
	factory := informers.NewSharedInformerFactory(b.client, 0)
	a := New(Options{
		Client:      b.client,
		Namespace:   system,
		Services:    factory.Core().V1().Services().Informer(),
		Nodes:       factory.Core().V1().Nodes().Lister(),
		NodesSynced: factory.Core().V1().Nodes().Informer().HasSynced,
		Recorder:    b.recorder,
		Ranges:      []Range{ranged("192.168.100.240", "192.168.100.240")},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.Start(ctx)
	factory.Start(ctx.Done())

	web := b.service("web")
	b.Eventually(b.addresses).WithArguments(web).Should(Equal("192.168.100.240"))
	b.remove(web)
	next := b.service("next")
	b.Eventually(b.addresses).WithArguments(next).Should(Equal("192.168.100.240"))
}
