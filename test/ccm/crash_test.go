// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/chaos"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A flow is a part of a Service's life, and the conditions that must hold at its end.
type flow struct {
	name string
	do   func(*service)
}

// flows returns the flows of a Service's life after its creation in Kubernetes.
func flows() []flow {
	return []flow{
		{"create", func(s *service) { s.served() }},
		{
			"change",
			func(s *service) {
				before := s.served()
				s.change(ports(port("http", 80), port("more", 8443)), func(svc *corev1.Service) {
					svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
				})
				s.g.Expect(s.served()).To(Equal(before), "the address stays")
			},
		},
		{"delete", (*service).delete},
	}
}

// TestCrashMatrix kills the controller before and after each write of a Service's life, for each way to create a load
// balancer. Each way has a fixture of its own, and all run in parallel. In the end, the cloud must be as it was in the
// beginning.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	for _, way := range ways() {
		name := way
		if way == twoArm {
			name = "two arms"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "crash"+way, fixtureOption{})
			for _, f := range flows() {
				crash(t, w, way, f.name)
			}
		})
	}
}

// crash runs the life of a Service, and kills the controller at each write of one of its flows.
func crash(t *testing.T, w *fixture, way, fatal string) {
	t.Helper()
	g := NewWithT(t)
	k := chaos.New(t, chaos.Options{Victim: w.controller, Flow: fatal, Numbered: true})
	w.vcd().SetGate(k.Gate)
	defer w.vcd().SetGate(nil)
	defer w.patientWithCrashes()()
	var s *service
	for _, f := range flows() {
		k.During(f.name, func() {
			if s == nil {
				s = w.service(t, "crash-"+fatal, by(way), ports(port("http", 80), port("https", 443)))
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
	t.Logf("%s: %d writes, killed %d times before and %d times after one", fatal, len(writes),
		k.Kills(vcdsim.Arrived, ""), k.Kills(vcdsim.Worked, ""))
	g.Eventually(func() []string { return w.cloud.left("") }, patience, poll).Should(BeEmpty())
}
