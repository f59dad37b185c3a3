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

// TestWhatOthersHaveStays adds load balancers of another cluster on the same gateways, which the old CPI created for a
// Service with the same name.
func TestWhatOthersHaveStays(t *testing.T) {
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
	for _, way := range ways() {
		other := oldCPI{
			admin:   v.admin(t),
			cluster: "another" + way,
			gateway: v.gateway(way),
			nodes:   v.machines()[standing : standing+2],
		}
		taken = append(taken, other.make(way, theirs))
	}
	before := v.inventory(func(string) bool { return true }, true)
	for _, name := range v.everything() {
		v.before[name] = true // It is not a leftover of this test.
	}

	ns := w.namespace(t)
	for i, way := range ways() {
		s := w.serviceIn(t, ns, "web", by(way))
		g.Expect(fmt.Sprint(s.served())).NotTo(ContainSubstring(taken[i]))
		s.delete()

		asked := w.serviceIn(t, ns, "asked", by(way), at(taken[i]), ports(port("other", 81)))
		asked.refused(taken[i])
		asked.delete()
	}

	g.Expect(v.inventory(func(string) bool { return true }, true)).To(Equal(before), "they are unchanged")
}

// TestWhatPeopleSetInAPoolStays manually changes settings of a pool that the controller does not manage.
func TestWhatPeopleSetInAPoolStays(t *testing.T) {
	t.Parallel()
	w := shared(t)
	v := w.vcd()
	s := w.service(t, "web")
	s.served()
	v.changeByHand(t, s.uid, poolsPath, func(body map[string]any) {
		body["gracefulTimeoutPeriod"] = 7
		body["passiveMonitoringEnabled"] = false
	})

	s.change(func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	s.g.Eventually(func() bool { return s.cloud.fronts(s.uid)[0].Sticky }, patience, poll).Should(BeTrue())

	s.g.Expect(v.owned(poolsPath, s.uid)).To(HaveEach(WithTransform(func(d vcdsim.Document) map[string]any {
		return decode[map[string]any](d)
	}, And(HaveKeyWithValue("gracefulTimeoutPeriod", 7.0), HaveKeyWithValue("passiveMonitoringEnabled", false)))))
}

func TestADryRunReportsAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := shared(t)
	s := w.service(t, "web", annotated(dryRun, "true"))
	s.g.Eventually(func() string { return strings.Join(s.eventsOf("Service", s.key.Namespace, s.key.Name, ""), "\n") },
		patience, poll).
		Should(ContainSubstring("create virtual-service"))
	s.g.Expect(s.cloud.left(s.uid)).To(BeEmpty())

	s.change(annotated(dryRun, ""))
	s.served()
}
