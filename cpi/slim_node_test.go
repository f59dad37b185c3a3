// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCachesHoldOnlyFieldsThatAreRead(t *testing.T) {
	g := NewWithT(t)
	fields := []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	node := worker("a", "10.0.0.1")
	want := node.DeepCopy()
	node.ManagedFields = fields
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example.com/a"}}}
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{"named-disk.csi.cloud-director.vmware.com^a"}
	s := balanced("web")
	s.ManagedFields = fields

	slimmed, err := slimNode(node)
	g.Expect(err).NotTo(HaveOccurred())
	ours, err := classTransform("", false)(s)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(slimmed).To(Equal(want))
	g.Expect(ours).To(HaveField("ManagedFields", BeNil()))
}
