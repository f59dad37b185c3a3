// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/chaos"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A flow is a step in the lifecycle of a Service, and checks its result.
type flow struct {
	name string
	do   func(*service)
}

// flows returns the steps in the lifecycle of a Service after its creation in Kubernetes.
func flows() []flow {
	return []flow{
		{"create", func(s *service) { s.awaitServed() }},
		{
			"change",
			func(s *service) {
				before := s.awaitServed()
				s.change(ports(port("http", 80), port("more", 8443)), func(svc *corev1.Service) {
					svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
				})
				s.g.Expect(s.awaitServed()).To(Equal(before), "the address should not change")
			},
		},
		{"delete", (*service).delete},
	}
}

// TestCrashMatrix kills the controller before and after each write in the lifecycle of a Service, for each gateway.
// Each gateway has a separate fixture, and all run in parallel. At the end, nothing may be left in the cloud.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	for _, gateway := range gatewayNames() {
		name := gateway
		if gateway == twoArm {
			name = "two arms"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "crash"+gateway, fixtureOption{})
			for _, f := range flows() {
				crash(t, w, gateway, f.name)
			}
		})
	}
}

// crash runs the lifecycle of a Service, and kills the controller at each write of the flow named fatal.
func crash(t *testing.T, w *fixture, gateway, fatal string) {
	t.Helper()
	g := NewWithT(t)
	k := chaos.New(t, chaos.Options{Victim: w.controller, Flow: fatal, Numbered: true})
	w.vcd().SetGate(k.Gate)
	defer w.vcd().SetGate(nil)
	defer w.extendTimeoutForCrashes()()
	var s *service
	for _, f := range flows() {
		k.During(f.name, func() {
			if s == nil {
				s = w.service(t, "crash-"+fatal, by(gateway), ports(port("http", 80), port("https", 443)))
			}
			f.do(s)
		})
	}
	writes := k.Writes(fatal)
	g.Expect(writes).NotTo(BeEmpty())
	for _, done := range writes {
		g.Expect(k.Killed(vcdsim.Arrived, done)).To(BeTrue(), "the controller was not killed before %v", done)
		g.Expect(k.Killed(vcdsim.Worked, done)).To(BeTrue(), "the controller was not killed after %v", done)
	}
	t.Logf("%s: %d writes; killed %d times before a write and %d times after one", fatal, len(writes),
		k.Kills(vcdsim.Arrived, ""), k.Kills(vcdsim.Worked, ""))
	g.Eventually(func() []string { return w.cloud.leftovers("") }, timeout, poll).Should(BeEmpty())
}
