// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	servicecontroller "k8s.io/cloud-provider/controllers/service"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/utils/ptr"
)

// TestDeletionOfAServiceOfAnotherClass checks how Kubernetes' own controller handles its finalizer on Services of
// another class. It removes the finalizer only on deletion, and calls us first. So the load balancer that we created
// before the class was set is deleted, too.
func TestDeletionOfAServiceOfAnotherClass(t *testing.T) {
	now := metav1.Now()
	theirs := func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("example.com/theirs") }
	lives := balanced("lives", theirs)
	deleted := balanced("deleted", theirs, func(s *corev1.Service) { s.DeletionTimestamp = &now })
	made := balanced("made", theirs, func(s *corev1.Service) { s.DeletionTimestamp = &now })
	b := newBench(t, lives, deleted)
	ours := made.DeepCopy()
	ours.Spec.LoadBalancerClass = nil
	ours.DeletionTimestamp = nil
	b.Expect(b.client.Tracker().Add(ours)).To(Succeed())
	b.services.add(ours)
	_, err := b.ensure(ours)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(b.balancer.left()).NotTo(BeZero())
	b.Expect(b.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("services"), made,
		made.Namespace)).To(Succeed())
	services := b.informer.Core().V1().Services()
	b.Expect(services.Informer().SetTransform(classTransform("", false))).To(Succeed())
	controller, err := servicecontroller.New(&Cloud{balancers: b.them}, b.client, services,
		b.informer.Core().V1().Nodes(), "", nil)
	b.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	b.informer.Start(ctx.Done())
	running.Go(func() { controller.Run(ctx, 1, controllersmetrics.NewControllerManagerMetrics("test")) })

	finalizers := func(name string) func() ([]string, error) {
		return func() ([]string, error) {
			s, err := b.client.CoreV1().Services("shop").Get(ctx, name, metav1.GetOptions{})
			return s.Finalizers, err
		}
	}
	b.Eventually(finalizers("deleted")).Should(BeEmpty())
	b.Eventually(finalizers("made")).Should(BeEmpty())
	b.Expect(b.balancer.left()).To(BeZero(), "our load balancer is gone")
	b.Expect(finalizers("lives")()).NotTo(BeEmpty())
}
