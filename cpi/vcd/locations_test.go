// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestServicesOfOneNameInTwoNamespacesAreTwoLoadBalancers(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	one := c.service("shop")
	two := c.service("blog", func(s *corev1.Service) { s.UID = "uid-2" })

	first := c.ensured(t, one)
	second := c.ensured(t, two)
	c.Expect(first).NotTo(Equal(second))

	c.Eventually(func() error { return c.them.EnsureLoadBalancerDeleted(t.Context(), "", one) }).Should(Succeed())
	c.Expect(c.ensured(t, two)).To(Equal(second))
}

func TestTwoNamesOfOneGatewayAreOnePlace(t *testing.T) {
	arm := oneArm()
	arm.Name = "inside"
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"), arm)
	s := c.service("shop")

	address := c.ensured(t, s)
	writes := c.writes()
	c.Expect(c.ensured(t, s)).To(Equal(address))
	c.Expect(c.writes()).To(Equal(writes), "what stands is not left behind")

	metav1.SetMetaDataAnnotation(&s.ObjectMeta, gatewayAnnotation, "inside")
	c.Expect(c.ensured(t, s)).To(Equal(address), "it is the same gateway")
	c.Expect(c.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(Succeed())
	c.Expect(c.sets()).To(BeEmpty())
}

func TestAGatewayThatCannotBeFoundDoesNotConcernOthers(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"),
		network("dmz", "typo"))
	s := c.service("shop")

	c.ensured(t, s)

	_, exists, err := c.them.GetLoadBalancer(t.Context(), "", s)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(exists).To(BeTrue())
	c.Expect(c.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(Succeed())
	c.Expect(c.sets()).To(BeEmpty())
}

func TestObjectsOnARemovedGatewayAreDeleted(t *testing.T) {
	c := newClusterAtTwo(t)
	s := c.service("shop",
		func(s *corev1.Service) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, gatewayAnnotation, "dmz") })
	c.ensured(t, s)

	c.configure(t, network("", "nodes")) // and begin anew

	_, exists, err := c.them.GetLoadBalancer(t.Context(), "", s)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(exists).To(BeTrue())
	c.Expect(c.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(Succeed())
	c.Expect(c.sets()).To(BeEmpty())
}

func TestSharedObjectsAreLeftToTheGatewayThatUsesThem(t *testing.T) {
	c := newClusterAtTwo(t)
	s := c.service("shop",
		func(s *corev1.Service) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, gatewayAnnotation, "dmz") })

	c.Expect(c.ensured(t, s)).To(HavePrefix("203.0.113.2"))
	writes := c.writes()
	c.ensured(t, s)
	c.Expect(c.writes()).To(Equal(writes), "the port profiles are in use at the other gateway")

	c.Expect(c.them.EnsureLoadBalancerDeleted(t.Context(), "", s)).To(Succeed())
	c.Expect(c.sets()).To(BeEmpty())
}

func TestAMovedLoadBalancerRemovesUnsharedObjects(t *testing.T) {
	c := newClusterAtTwo(t)
	all := []*corev1.Service{c.service("shop"), c.service("blog", func(s *corev1.Service) { s.UID = "uid-2" })}
	for _, s := range all {
		c.ensured(t, s)
	}
	before := c.sets()

	for _, s := range all { // before either is looked at
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, gatewayAnnotation, "dmz")
		c.Expect(c.services.Update(s.DeepCopy())).To(Succeed())
	}
	for _, s := range all {
		c.ensured(t, s)
	}

	c.Expect(before).To(HaveLen(1))
	c.Expect(c.sets()).To(HaveLen(1))
	c.Expect(c.sets()).NotTo(Equal(before))
}
