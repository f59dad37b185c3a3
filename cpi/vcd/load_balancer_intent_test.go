// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAnAddressThatAServiceHasLeftIsNoLongerWrittenDown(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	s := c.service("shop")
	stored := func() *corev1.Service {
		now, err := c.client.CoreV1().Services(s.Namespace).Get(t.Context(), s.Name, metav1.GetOptions{})
		c.Expect(err).NotTo(HaveOccurred())
		return now
	}
	first := c.ensured(t, s)
	c.Expect(stored().Annotations).To(HaveKeyWithValue(intentAnnotation, HavePrefix(first+"=")))
	s = stored()
	s.Spec.LoadBalancerIP = "203.0.113.33"
	c.Expect(c.services.Update(s)).To(Succeed())

	c.Expect(c.ensured(t, s)).To(Equal("203.0.113.33"))

	c.Expect(stored().Annotations).NotTo(HaveKey(intentAnnotation),
		"who asks for an address by name needs nothing written down")
}
