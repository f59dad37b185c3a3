// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestClassTransform(t *testing.T) {
	tests := []struct {
		name  string
		class *string
		only  bool
		ours  bool
	}{
		{"a Service without a class is reconciled", nil, false, true},
		{"a Service of our class, too", ptr.To("example.com/ours"), false, true},
		{"a Service of another class is not", ptr.To("example.com/theirs"), false, false},
		{"a Service without a class is not, if only our class is reconciled", nil, true, false},
		{"a Service of our class is, in that case", ptr.To("example.com/ours"), true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			transform := classTransform("example.com/ours", tt.only)
			byHand := &corev1.Service{Spec: corev1.ServiceSpec{LoadBalancerClass: tt.class}}
			byHand.Annotations = map[string]string{claimedAnnotation: "example.com/ours"}
			for _, service := range []any{
				&corev1.Service{Spec: corev1.ServiceSpec{LoadBalancerClass: tt.class}},
				byHand,
			} {
				for range 3 {
					var err error
					service, err = transform(service)
					g.Expect(err).NotTo(HaveOccurred())
					ours := service.(*corev1.Service).Spec.LoadBalancerClass == nil
					g.Expect(ours).To(Equal(tt.ours))
				}
			}
		})
	}
}

func TestClassTransformLeavesOtherObjects(t *testing.T) {
	node := &corev1.Node{}

	NewWithT(t).Expect(classTransform("", false)(node)).To(BeIdenticalTo(node))
}
