// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestAPausedClusterIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.cluster("paused")
	m := s.machine("paused", "paused-0")
	s.ready(m)

	s.pause("paused", true)

	for _, obj := range []conditioned{c, m} {
		s.g.Eventually(func() (string, error) { return s.state(obj, clusterv1.PausedCondition) }, timeout,
			"100ms").Should(HavePrefix("True"))
	}
	s.quiet(c, m)
	since := len(s.Requests())
	s.g.Expect(shared.client.Delete(t.Context(), m.DeepCopy())).To(Succeed())
	s.g.Consistently(func() int { return len(s.Requests()) - since }, "2s", "200ms").Should(BeZero(),
		"requests to VCD for a paused cluster")
	s.g.Expect(s.State().VMs).To(HaveLen(1))
	s.pause("paused", false)
	s.g.Eventually(func() error { return s.get(m) }, timeout, "100ms").ShouldNot(Succeed(), "the deletion continues after the pause")
	s.deleteMachine("paused-0")
	s.deleteCluster("paused")
	s.empty()
}

func TestExternallyManagedClusterIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.cluster("managed", func(c *infrav1.VCDCluster) {
		c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "another"}
	})

	s.g.Consistently(func() (int, error) { return len(c.Status.Conditions) + len(c.Finalizers), s.get(c) }, "3s",
		"200ms").Should(BeZero())

	s.g.Expect(s.Requests()).To(BeEmpty())
	s.deleteCluster("managed")
}

// pause sets spec.paused of a Cluster.
func (s *site) pause(name string, paused bool) {
	s.t.Helper()
	patch := `{"spec":{"paused":false}}`
	if paused {
		patch = `{"spec":{"paused":true}}`
	}
	cluster := &clusterv1.Cluster{ObjectMeta: s.meta(name)}
	s.g.Expect(shared.client.Patch(s.t.Context(), cluster,
		client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}
