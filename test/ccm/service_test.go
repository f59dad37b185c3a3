// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A service is a Service of type LoadBalancer in a fixture.
type service struct {
	*fixture

	t   *testing.T
	g   *WithT
	key client.ObjectKey
	uid string
}

// A change changes a Service.
type change func(*corev1.Service)

// service creates a Service in a new namespace, with port 80 unless a change sets other ports. When the test ends, it
// deletes the Service if it still exists, and checks that none of its objects are left.
func (w *fixture) service(t *testing.T, name string, changes ...change) *service {
	t.Helper()
	return w.serviceIn(t, w.namespace(t), name, changes...)
}

func (w *fixture) serviceIn(t *testing.T, namespace, name string, changes ...change) *service {
	t.Helper()
	s := w.newService(t, namespace, name, changes...)
	t.Cleanup(func() {
		if !t.Failed() {
			s.delete()
		}
	})
	return s
}

// newService creates a Service that is not deleted when the test ends.
func (w *fixture) newService(t *testing.T, namespace, name string, changes ...change) *service {
	t.Helper()
	s := &service{fixture: w, t: t, g: NewWithT(t), key: client.ObjectKey{Namespace: namespace, Name: name}}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        name,
			Annotations: map[string]string{},
			Labels:      map[string]string{fixtureLabel: w.name},
		},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeLoadBalancer,
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{port("http", 80)},
		},
	}
	if w.class != "" {
		svc.Spec.LoadBalancerClass = &w.class
	}
	for _, c := range changes {
		c(svc)
	}
	s.g.Expect(w.client.Create(t.Context(), svc)).To(Succeed())
	s.uid = string(svc.UID)
	return s
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{
		Name:       name,
		Port:       number,
		Protocol:   corev1.ProtocolTCP,
		TargetPort: intstr.FromInt32(8080),
	}
}

// ports replaces the ports.
func ports(all ...corev1.ServicePort) change {
	return func(s *corev1.Service) { s.Spec.Ports = all }
}

// annotated adds annotations, given as alternating keys and values. An empty value removes an annotation.
func annotated(pairs ...string) change {
	return func(s *corev1.Service) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				delete(s.Annotations, pairs[i])
				continue
			}
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, pairs[i], pairs[i+1])
		}
	}
}

// by selects the gateway by name. Empty means the default.
func by(gateway string) change { return annotated(gatewayAnnotation, gateway) }

// at requests an address.
func at(address string) change { return annotated(addressAnnotation, address) }

// get returns the current Service.
func (s *service) get() (*corev1.Service, error) {
	svc := &corev1.Service{}
	return svc, s.client.Get(s.t.Context(), s.key, svc)
}

// change changes the Service.
func (s *service) change(changes ...change) {
	s.t.Helper()
	s.g.Eventually(func() error {
		svc, err := s.get()
		if err != nil {
			return err
		}
		for _, c := range changes {
			c(svc)
		}
		return s.client.Update(s.t.Context(), svc)
	}, s.timeout, poll).Should(Succeed())
}

// awaitServed waits until clients reach exactly the ports and nodes of the Service at the addresses in its status, and
// the cloud has no superfluous objects for it. It returns the addresses.
func (s *service) awaitServed() []netip.Addr {
	s.t.Helper()
	var addresses []netip.Addr
	s.g.Eventually(func() (err error) {
		addresses, err = s.checkServed()
		return err
	}, s.timeout, poll).Should(Succeed())
	return addresses
}

// checkServed returns the addresses of the Service, or an error if the conditions of awaitServed do not hold yet.
func (s *service) checkServed() ([]netip.Addr, error) {
	svc, err := s.get()
	if err != nil {
		return nil, err
	}
	addresses := ingress(svc)
	if len(addresses) == 0 {
		return nil, fmt.Errorf("the Service has no address; warnings: %v; objects: %v", s.warnings(), s.cloud.leftovers(s.uid))
	}
	nodes, err := s.members()
	if err != nil {
		return nil, err
	}
	var want, have []string
	for _, f := range wantedFrontends(svc, addresses, nodes) {
		want = append(want, f.String())
	}
	for _, f := range s.cloud.frontends(s.uid) {
		have = append(have, f.String())
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		return nil, fmt.Errorf("clients should reach\n%s\nbut they reach\n%s\nwarnings: %v", strings.Join(want, "\n"),
			strings.Join(have, "\n"), s.warnings())
	}
	return addresses, s.checkNoExtras(max(len(svc.Spec.Ports), len(addresses)))
}

// checkNoExtras returns an error if more than most objects of any kind exist for the Service. A Service needs at most
// one of each kind per port or address.
func (s *service) checkNoExtras(most int) error {
	left := s.cloud.leftovers(s.uid)
	for kind, n := range kinds(left) {
		if n > most {
			return fmt.Errorf("%d objects of kind %s exist, at most %d are needed: %v", n, kind, most, left)
		}
	}
	return nil
}

func ingress(svc *corev1.Service) []netip.Addr {
	var out []netip.Addr
	for _, i := range svc.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(i.IP); err == nil {
			out = append(out, a)
		}
	}
	return out
}

func wantedFrontends(svc *corev1.Service, addresses []netip.Addr, nodes []netip.Addr) []frontend {
	var out []frontend
	for _, a := range addresses {
		for _, p := range svc.Spec.Ports {
			f := frontend{Address: a, Port: int(p.Port), Protocol: string(p.Protocol)}
			for _, n := range nodes {
				f.Backends = append(f.Backends, fmt.Sprintf("%s:%d", n, p.NodePort))
			}
			slices.Sort(f.Backends)
			out = append(out, f)
		}
	}
	return out
}

// members returns the addresses of the nodes to which load balancers may send traffic.
func (w *fixture) members() ([]netip.Addr, error) {
	nodes := &corev1.NodeList{}
	if err := w.client.List(w.context(), nodes); err != nil {
		return nil, err
	}
	var out []netip.Addr
	for i := range nodes.Items {
		n := &nodes.Items[i]
		_, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
		_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
		if excluded || controlPlane || !n.DeletionTimestamp.IsZero() {
			continue
		}
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
				out = append(out, ip)
			}
		}
	}
	return out, nil
}

// delete deletes the Service if it exists, and waits until the Service and all its objects are gone.
func (s *service) delete() {
	s.t.Helper()
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	s.g.Expect(client.IgnoreNotFound(s.client.Delete(s.context(), svc))).To(Succeed())
	s.g.Eventually(func() error {
		err := s.client.Get(s.context(), s.key, &corev1.Service{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("the Service still exists; warnings: %v", s.warnings()))
	}, s.timeout, poll).Should(Succeed())
	s.g.Expect(s.cloud.leftovers(s.uid)).To(BeEmpty(), "left in the cloud after the deletion of %s", s.key)
}

// warnings returns the reasons and messages of Warning events about the Service, sorted by time, newest first.
func (s *service) warnings() []string {
	return s.eventsOf("Service", s.key.Namespace, s.key.Name, corev1.EventTypeWarning)
}

func (w *fixture) eventsOf(kind, namespace, name, sort string) []string {
	events := &corev1.EventList{}
	if err := w.client.List(w.context(), events, client.InNamespace(namespace)); err != nil {
		return []string{err.Error()}
	}
	slices.SortFunc(events.Items, func(a, b corev1.Event) int { return b.LastTimestamp.Compare(a.LastTimestamp.Time) })
	var out []string
	for i := range events.Items {
		e := &events.Items[i]
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && (sort == "" || e.Type == sort) {
			out = append(out, e.Reason+": "+e.Message)
		}
	}
	return out
}

// expectRefused waits for a Warning that contains a text, and until the Service has no objects in the cloud.
func (s *service) expectRefused(because string) {
	s.t.Helper()
	s.g.Eventually(s.warnings, s.timeout, poll).Should(ContainElement(ContainSubstring(because)))
	s.g.Eventually(func() []string { return s.cloud.leftovers(s.uid) }, s.timeout, poll).Should(BeEmpty(), "half-built")
	s.g.Expect(s.cloud.frontends(s.uid)).To(BeEmpty(), "half-built")
}

// expectUnchanged checks that the objects with the Service's marker do not change during the quiet period.
func (s *service) expectUnchanged() {
	s.t.Helper()
	before := s.cloud.snapshot(s.uid)
	s.g.Consistently(func() []string { return s.cloud.snapshot(s.uid) }, quietPeriod, poll).Should(Equal(before))
}

// kinds counts leftovers by kind, which precedes the name.
func kinds(left []string) map[string]int {
	out := map[string]int{}
	for _, l := range left {
		out[l[:strings.LastIndex(l, " ")]]++
	}
	return out
}

func metaOf(s *service) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}
}
