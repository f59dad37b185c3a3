// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestMovedObjectsAreAdmitted(t *testing.T) {
	m := machine()
	m.Annotations = map[string]string{infrav1.VMGoneAnnotation: "yes"}
	m.Spec.Networks = []infrav1.NetworkSpec{{Nameservers: []string{"127.0.0.1"}}}
	c := cluster()
	c.Annotations = map[string]string{infrav1.KeepVAppAnnotation: "yes"}
	c.Spec.ControlPlaneEndpoint.Host = "127.0.0.1"

	for _, existed := range []bool{false, true} {
		g := NewWithT(t)
		if existed { // clusterctl move and restores of backups keep finalizers
			m.Finalizers = []string{infrav1.MachineFinalizer}
			c.Finalizers = []string{infrav1.ClusterFinalizer}
		}

		warningsOfM, errM := machineValidator(false).ValidateCreate(t.Context(), m)
		warningsOfC, errC := clusterValidator().ValidateCreate(t.Context(), c)

		if existed {
			g.Expect(errM).NotTo(HaveOccurred())
			g.Expect(errC).NotTo(HaveOccurred())
			g.Expect(warningsOfM).To(ConsistOf(
				ContainSubstring("spec.networks[0].nameservers[0]"), ContainSubstring(infrav1.VMGoneAnnotation)))
			g.Expect(warningsOfC).To(ConsistOf(
				ContainSubstring("spec.controlPlaneEndpoint.host"), ContainSubstring(infrav1.KeepVAppAnnotation)))
			continue
		}
		g.Expect(refusedFields(g, errM)).To(HaveLen(2))
		g.Expect(refusedFields(g, errC)).To(HaveLen(2))
	}
}

func TestSwitchesInTemplatesAreChecked(t *testing.T) {
	const annotations = "spec.template.metadata.annotations"
	tests := []struct {
		name, key, value string
		refused          bool
	}{
		{"a switch that is set", infrav1.DriftInReadyAnnotation, "true", false},
		{"a switch with a value that has no effect", infrav1.DriftInReadyAnnotation, "yes", true},
		{"the loss of a VM is no matter of a template", infrav1.VMGoneAnnotation, "true", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var refused []string
			if tt.refused {
				refused = []string{annotations + "[" + tt.key + "]"}
			}
			machines := machineTemplate()
			clusters := clusterTemplate()
			machines.Spec.Template.ObjectMeta.Annotations = map[string]string{tt.key: tt.value}
			clusters.Spec.Template.ObjectMeta.Annotations = map[string]string{tt.key: tt.value}

			_, err := machineTemplateValidator().ValidateCreate(t.Context(), machines)
			g.Expect(refusedFields(g, err)).To(Equal(refused))
			_, err = clusterTemplateValidator().ValidateCreate(t.Context(), clusters)
			g.Expect(err != nil).To(Equal(tt.refused && tt.key != infrav1.VMGoneAnnotation))

			machines.OwnerReferences = []metav1.OwnerReference{{Kind: "Cluster"}}
			_, err = machineTemplateValidator().ValidateCreate(t.Context(), machines)
			g.Expect(err != nil).To(Equal(tt.key == infrav1.VMGoneAnnotation), "a move brings it along")
		})
	}
}
