// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/chaos"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A crashCase is the lifecycle of a Service in a separate fixture. The controller is killed before and after each write
// of its fatal flows.
type crashCase struct {
	name    string
	fixture fixtureOption
	// start begins the lifecycle. It returns the flows with and then those without kills.
	start func(*testing.T, *fixture) (s *service, fatal, quiet []flow)
	// rest returns related objects that have no ownership marker and must be the same at the end. nil means none.
	rest func(*fixture) []string
}

// ourClass and otherClass are load balancer classes.
const (
	ourClass   = "example.com/vcd"
	otherClass = "example.com/other"
)

func crashCases() []crashCase {
	return []crashCase{
		{name: "certificate", fixture: fixtureOption{settings: onlyEvery(twoArm, "10s")}, start: startCertificate},
		{
			name: "ranges",
			fixture: fixtureOption{settings: settings{
				"loadbalancer.gateways":     nil,
				"loadbalancer.sourceRanges": true,
			}},
			start: startRanges,
			rest:  func(w *fixture) []string { return w.vcd().firewall() },
		},
		{name: "another-address", start: startAnotherAddress},
		{name: "move-to-arm", start: startMove(twoArm, oneArm)},
		{name: "move-to-spaces", start: startMove(oneArm, ipSpaces)},
		{
			name:    "class",
			fixture: fixtureOption{class: ourClass, settings: settings{"loadbalancer.gateways": nil}},
			start:   startClass,
		},
	}
}

// TestCrashMatrixOfRareFlows is the crash matrix of flows that only some Services have: certificates from Secrets,
// source ranges, and moves between addresses, gateways and load balancer classes.
func TestCrashMatrixOfRareFlows(t *testing.T) {
	t.Parallel()
	for _, crashCase := range crashCases() {
		t.Run(crashCase.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			w := newFixture(t, "crash-"+crashCase.name, crashCase.fixture)
			if crashCase.rest == nil {
				crashCase.rest = func(*fixture) []string { return nil }
			}
			s, fatal, quiet := crashCase.start(t, w)
			before := crashCase.rest(w)
			crashAtEachWrite(t, w, func() {
				for _, f := range fatal {
					f.do(s)
				}
			})
			for _, f := range quiet {
				f.do(s)
			}
			g.Eventually(func() []string { return w.cloud.leftovers("") }, timeout, poll).Should(BeEmpty())
			g.Expect(crashCase.rest(w)).To(Equal(before))
		})
	}
}

// crashAtEachWrite kills the controller of a fixture before and after each write to the cloud that do causes.
func crashAtEachWrite(t *testing.T, w *fixture, do func()) {
	t.Helper()
	const flow = "life"
	g := NewWithT(t)
	k := chaos.New(t, chaos.Options{Victim: w.controller, Flow: flow, Numbered: true})
	w.vcd().SetGate(k.Gate)
	defer w.vcd().SetGate(nil)
	defer w.extendTimeoutForCrashes()()
	before := w.vcd().written()

	k.During(flow, do)

	writes := k.Writes(flow)
	g.Expect(writes).NotTo(BeEmpty())
	for _, done := range writes {
		g.Expect(k.Killed(vcdsim.Arrived, done)).To(BeTrue(), "the controller was not killed before %v", done)
		g.Expect(k.Killed(vcdsim.Worked, done)).To(BeTrue(), "the controller was not killed after %v", done)
	}
	logged := w.vcd().written() - before
	t.Logf("%d writes, %d in VCD's request log; killed %d times before a write and %d times after one", len(writes), logged,
		k.Kills(vcdsim.Arrived, ""), k.Kills(vcdsim.Worked, ""))
	g.Expect(logged).To(Equal(len(writes)), "each write should have been a chance to kill the controller")
}

// written returns the number of successful writes in VCD's request log.
func (v *vcd) written() int {
	n := 0
	for _, r := range v.Requests() {
		if r.Changes() && r.Status >= http.StatusOK && r.Status < http.StatusMultipleChoices {
			n++
		}
	}
	return n
}

// startCertificate imports a certificate from a Secret, replaces it, and deletes the Secret, then the Service.
func startCertificate(t *testing.T, w *fixture) (*service, []flow, []flow) {
	t.Helper()
	g := NewWithT(t)
	ns := w.namespace(t)
	secret := &corev1.Secret{Type: corev1.SecretTypeTLS, Data: newCertificate(t, "one")}
	secret.Namespace = ns
	secret.Name = "tls"
	g.Expect(w.client.Create(t.Context(), secret)).To(Succeed())
	w.allowSecretReads(t, ns)
	https := port("https", 443)
	protocol := "https"
	https.AppProtocol = &protocol
	s := &service{}
	imported := func() []string {
		var out []string
		for _, f := range s.cloud.frontends(s.uid) {
			out = append(out, f.Certificate)
		}
		return out
	}
	var first []string
	return s, []flow{
		{
			"create",
			func(s *service) {
				*s = *w.serviceIn(t, ns, "web", ports(https), annotated(sslPorts, "443", tlsSecret, "tls"))
				s.awaitServed()
				first = imported()
				s.g.Expect(first).To(HaveExactElements(Not(BeEmpty())))
			},
		},
		{
			"rotate",
			func(s *service) {
				secret.Data = newCertificate(t, "two")
				g.Expect(w.client.Update(t.Context(), secret)).To(Succeed())
				g.Eventually(imported, w.timeout, poll).Should(And(HaveLen(1), Not(Equal(first))))
				g.Eventually(func() map[string]int { return kinds(s.cloud.leftovers(s.uid)) }, w.timeout,
					poll).Should(HaveKeyWithValue("certificate", 1))
				s.awaitServed()
			},
		},
		{
			"delete",
			func(s *service) {
				g.Expect(w.client.Delete(t.Context(), secret)).To(Succeed())
				s.delete()
			},
		},
	}, nil
}

// startRanges creates, changes and deletes firewall rules beside an administrator's rule.
func startRanges(t *testing.T, w *fixture) (*service, []flow, []flow) {
	t.Helper()
	w.vcd().foreignRule()
	s := &service{}
	guarded := func(s *service, sources string) {
		address := s.awaitServed()[0].String()
		s.g.Eventually(s.vcd().firewall, s.timeout,
			poll).Should(Equal([]string{
			"ALLOW " + sources + " to " + address,
			"DROP everybody to " + address,
			"theirs",
		}))
		s.awaitServed()
	}
	return s, []flow{
		{
			"create",
			func(s *service) {
				*s = *w.service(t, "web", ranges("192.0.2.0/24"))
				guarded(s, "192.0.2.0/24")
			},
		},
		{
			"change",
			func(s *service) {
				s.change(ranges("192.0.2.0/24", "198.51.100.0/25"))
				guarded(s, "192.0.2.0/24,198.51.100.0/25")
			},
		},
		{"delete", (*service).delete},
	}, nil
}

// startAnotherAddress changes the address of virtual services that share one. VCD accepts a new address only for new
// virtual services.
func startAnotherAddress(t *testing.T, w *fixture) (*service, []flow, []flow) {
	t.Helper()
	w.vcd().Edit(func(e *vcdsim.Editor) { e.Assumptions().SharedVIPStays = true })
	s := w.service(t, "web", by(twoArm), ports(port("http", 80), port("https", 443)))
	s.awaitServed()
	const address = "100.64.1.77"
	return s, []flow{{
		"move",
		func(s *service) {
			s.change(func(svc *corev1.Service) { svc.Spec.LoadBalancerIP = address })
			s.g.Eventually(s.checkServed, s.timeout, poll).Should(HaveExactElements(netip.MustParseAddr(address)))
		},
	}}, []flow{{"delete", (*service).delete}}
}

// startMove moves a load balancer from one gateway to another.
func startMove(from, to string) func(*testing.T, *fixture) (*service, []flow, []flow) {
	return func(t *testing.T, w *fixture) (*service, []flow, []flow) {
		t.Helper()
		theirs := w.cloud.snapshot("")
		s := w.service(t, "web", by(from))
		s.awaitServed()
		ours := slices.DeleteFunc(w.cloud.snapshot(""), func(one string) bool { return slices.Contains(theirs, one) })
		return s, []flow{{
			"move",
			func(s *service) {
				s.change(by(to))
				s.g.Eventually(func() []string { return w.cloud.snapshot("") }, w.timeout,
					poll).ShouldNot(ContainElement(BeElementOf(ours)), "the objects on the old gateway should be deleted")
				s.awaitServed()
			},
		}}, []flow{{"delete", (*service).delete}}
	}
}

// startClass changes the load balancer class of a Service to that of another controller, and back.
func startClass(t *testing.T, w *fixture) (*service, []flow, []flow) {
	t.Helper()
	s := w.service(t, "web")
	s.awaitServed()
	give := func(s *service, class string) {
		s.change(func(svc *corev1.Service) {
			svc.Spec.Type = corev1.ServiceTypeClusterIP
			svc.Spec.LoadBalancerClass = nil
			svc.Spec.Ports[0].NodePort = 0
		})
		s.g.Eventually(func() ([]string, error) {
			svc, err := s.get()
			return append(svc.Finalizers, s.cloud.leftovers("")...), err
		}, s.timeout, poll).Should(BeEmpty())
		s.change(func(svc *corev1.Service) {
			svc.Spec.Type = corev1.ServiceTypeLoadBalancer
			svc.Spec.LoadBalancerClass = &class
		})
	}
	return s, []flow{
		{"to another", func(s *service) { give(s, otherClass) }},
		{
			"and back",
			func(s *service) {
				give(s, ourClass)
				s.awaitServed()
			},
		},
	}, []flow{{"delete", (*service).delete}}
}

// TestServiceDeletedDuringACrashLeavesNothing kills the controller after each write of a creation, and deletes the
// Service before the controller starts again. The controller must delete all objects that it created before.
func TestServiceDeletedDuringACrashLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, gateway := range gatewayNames() {
		t.Run("by gateway "+gateway, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "deserted"+gateway, fixtureOption{settings: only(gateway)})
			writes := int64(0)
			for w.deleteAfterCrash(t, writes+1) {
				writes++
			}
			t.Logf("killed after each of %d writes", writes)
			NewWithT(t).Expect(writes).To(BeNumerically(">", 2))
		})
	}
}

// deleteAfterCrash creates a Service, kills the controller after the given number of writes, and deletes the Service
// before it starts the controller again. It returns false if the creation has fewer writes.
func (w *fixture) deleteAfterCrash(t *testing.T, after int64) bool {
	t.Helper()
	g := NewWithT(t)
	var writes atomic.Int64
	reached := make(chan struct{})
	dead := make(chan struct{})
	w.vcd().SetGate(func(_ context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
		if m != vcdsim.Worked || !r.Changes() || r.Status >= http.StatusMultipleChoices {
			return true
		}
		n := writes.Add(1)
		if n < after {
			return true
		}
		if n == after {
			close(reached)
		}
		<-dead
		return false
	})
	s := w.service(t, "web", ports(port("a", 81), port("b", 82)))
	killed := false
	g.Eventually(func() (err error) {
		select {
		case <-reached:
			killed = true
		default:
			_, err = s.checkServed()
		}
		return err
	}, timeout, poll).Should(Succeed())
	w.vcd().SetGate(nil)
	if killed {
		g.Expect(w.controller.Kill()).To(Succeed())
		g.Expect(w.client.Delete(t.Context(), &corev1.Service{ObjectMeta: metaOf(s)})).To(Succeed())
		close(dead)
		g.Expect(w.controller.Start(t.Context())).To(Succeed())
	}
	s.delete()
	return killed
}

// crashesWhileNodesChange kills the controllers of two fixtures at each write that follows a change of nodes. In one,
// nodes are members of an IP set. In the other, which lacks the right to create IP sets, they are members of each pool.
func crashesWhileNodesChange(t *testing.T, h *cluster) {
	t.Helper()
	sets := newFixture(t, "crash-node", fixtureOption{cluster: h, settings: only(twoArm)})
	pools := newFixture(t, "crash-members", fixtureOption{cluster: h, settings: only(oneArm)})
	pools.vcd().Faults().Add(vcdsim.Fault{
		Operation: "POST /cloudapi/1.0.0/firewallGroups",
		Status:    http.StatusForbidden,
		Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
	})
	fixtures := []*fixture{sets, pools}
	var all []*service
	for _, w := range fixtures {
		all = append(all, w.service(t, "web", ports(port("a", 81), port("b", 82))))
	}
	served := func() {
		t.Helper()
		for _, s := range all {
			s.awaitServed()
		}
	}
	served()
	m := spare(sets, 5)
	crashAtEachWrite(t, sets, func() {
		crashAtEachWrite(t, pools, func() {
			n := sets.node(t, m, balanced, initialized(m))
			served()
			NewWithT(t).Expect(sets.client.Delete(t.Context(), n)).To(Succeed())
			served()
		})
	})
}
