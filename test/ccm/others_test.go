// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestLoadBalancersOfOtherClustersStay adds load balancers of another cluster to the same gateways, which the old CPI
// created for a Service with the same name.
func TestLoadBalancersOfOtherClustersStay(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "others", fixtureOption{})
	g := NewWithT(t)
	v := w.vcd()
	theirs := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{
		Name:     "http",
		Port:     80,
		NodePort: 32080,
	}}}}
	theirs.Name = "web"
	theirs.Namespace = "default"
	var taken []string
	for _, gateway := range gatewayNames() {
		other := oldCPI{
			admin:   v.admin(t),
			cluster: "another" + gateway,
			gateway: v.gateway(gateway),
			nodes:   v.machines()[baseNodes : baseNodes+2],
		}
		taken = append(taken, other.create(gateway, theirs))
	}
	before := v.inventory(func(string) bool { return true }, true)
	for _, name := range v.everything() {
		v.before[name] = true // It belongs to the other cluster.
	}

	ns := w.namespace(t)
	for i, gateway := range gatewayNames() {
		s := w.serviceIn(t, ns, "web", by(gateway))
		g.Expect(fmt.Sprint(s.awaitServed())).NotTo(ContainSubstring(taken[i]))
		s.delete()

		requested := w.serviceIn(t, ns, "asked", by(gateway), at(taken[i]), ports(port("other", 81)))
		requested.expectRefused(taken[i])
		requested.delete()
	}

	g.Expect(v.inventory(func(string) bool { return true }, true)).To(Equal(before), "the other cluster should not change")
}

// TestManualSettingsOfAPoolAreKept manually changes pool settings that the controller does not manage.
func TestManualSettingsOfAPoolAreKept(t *testing.T) {
	t.Parallel()
	w := shared(t)
	v := w.vcd()
	s := w.service(t, "web")
	s.awaitServed()
	v.changeByHand(t, s.uid, poolsPath, func(body map[string]any) {
		body["gracefulTimeoutPeriod"] = 7
		body["passiveMonitoringEnabled"] = false
	})

	s.change(func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	s.g.Eventually(func() bool { return s.cloud.frontends(s.uid)[0].Sticky }, timeout, poll).Should(BeTrue())

	s.g.Expect(v.owned(poolsPath, s.uid)).To(HaveEach(WithTransform(func(d vcdsim.Document) map[string]any {
		return decode[map[string]any](d)
	}, And(HaveKeyWithValue("gracefulTimeoutPeriod", 7.0), HaveKeyWithValue("passiveMonitoringEnabled", false)))))
}

func TestDryRunReportsAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := shared(t)
	s := w.service(t, "web", annotated(dryRun, "true"))
	s.g.Eventually(func() string { return strings.Join(s.eventsOf("Service", s.key.Namespace, s.key.Name, ""), "\n") },
		timeout, poll).
		Should(ContainSubstring("create virtual-service"))
	s.g.Expect(s.cloud.leftovers(s.uid)).To(BeEmpty())

	s.change(annotated(dryRun, ""))
	s.awaitServed()
}
