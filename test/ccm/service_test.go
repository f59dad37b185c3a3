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

// service creates a Service, with port 80 unless a change sets other ports. If the Service still exists when the test
// ends, it is deleted, and nothing of it may be left.
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

// newService creates a Service that the test does not delete.
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

// by chooses the gateway by name; empty is the default.
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
	}, s.patience, poll).Should(Succeed())
}

// served waits until clients reach exactly the ports and nodes of the Service at the addresses in its status, and the
// cloud has no superfluous objects of it. It returns the addresses.
func (s *service) served() []netip.Addr {
	s.t.Helper()
	var addresses []netip.Addr
	s.g.Eventually(func() (err error) {
		addresses, err = s.unserved()
		return err
	}, s.patience, poll).Should(Succeed())
	return addresses
}

// unserved returns an error while the Service is not served.
func (s *service) unserved() ([]netip.Addr, error) {
	svc, err := s.get()
	if err != nil {
		return nil, err
	}
	addresses := ingress(svc)
	if len(addresses) == 0 {
		return nil, fmt.Errorf("there is no address; warnings: %v; there is: %v", s.warnings(), s.cloud.left(s.uid))
	}
	nodes, err := s.members()
	if err != nil {
		return nil, err
	}
	var want, have []string
	for _, f := range wantedFronts(svc, addresses, nodes) {
		want = append(want, f.String())
	}
	for _, f := range s.cloud.fronts(s.uid) {
		have = append(have, f.String())
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		return nil, fmt.Errorf("clients should reach\n%s\nbut they reach\n%s\nwarnings: %v", strings.Join(want, "\n"),
			strings.Join(have, "\n"), s.warnings())
	}
	return addresses, s.superfluous(max(len(svc.Spec.Ports), len(addresses)))
}

// superfluous returns an error if more objects exist than a Service needs: at most one of each kind per port or
// address.
func (s *service) superfluous(most int) error {
	left := s.cloud.left(s.uid)
	for kind, n := range kinds(left) {
		if n > most {
			return fmt.Errorf("%d of kind %s are there, where %d do: %v", n, kind, most, left)
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

func wantedFronts(svc *corev1.Service, addresses []netip.Addr, nodes []netip.Addr) []front {
	var out []front
	for _, a := range addresses {
		for _, p := range svc.Spec.Ports {
			f := front{Address: a, Port: int(p.Port), Protocol: string(p.Protocol)}
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

// delete deletes the Service, if it exists, and waits until it and all its objects are gone.
func (s *service) delete() {
	s.t.Helper()
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	s.g.Expect(client.IgnoreNotFound(s.client.Delete(s.context(), svc))).To(Succeed())
	s.g.Eventually(func() error {
		err := s.client.Get(s.context(), s.key, &corev1.Service{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("the Service is still there; warnings: %v", s.warnings()))
	}, s.patience, poll).Should(Succeed())
	s.g.Expect(s.cloud.left(s.uid)).To(BeEmpty(), "left of %s when it was gone", s.key)
}

// warnings returns the messages of Warning events about the Service, the latest first.
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

// refused waits for a Warning with the reason. The Service must have no objects in the cloud then.
func (s *service) refused(because string) {
	s.t.Helper()
	s.g.Eventually(s.warnings, s.patience, poll).Should(ContainElement(ContainSubstring(because)))
	s.g.Eventually(func() []string { return s.cloud.left(s.uid) }, s.patience, poll).Should(BeEmpty(), "half-built")
	s.g.Expect(s.cloud.fronts(s.uid)).To(BeEmpty(), "half-built")
}

// calm checks that the objects with the Service's marker do not change.
func (s *service) calm() {
	s.t.Helper()
	before := s.cloud.mark(s.uid)
	s.g.Consistently(func() []string { return s.cloud.mark(s.uid) }, pause, poll).Should(Equal(before))
}

// kinds counts leftovers by kind, which is the part before the name.
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
