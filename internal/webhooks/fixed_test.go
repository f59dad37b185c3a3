// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestAClusterCannotBeMoved(t *testing.T) {
	tests := []rejection[*infrav1.VCDCluster]{
		{"nothing of it", func(c *infrav1.VCDCluster) { c.Spec.Proxy.HTTPProxy = "http://proxy:3128" }, nil, ""},
		{"its site", func(c *infrav1.VCDCluster) { c.Spec.Site = "https://other.example.com" }, []string{"spec.site"}, "immutable"},
		{"its organization", func(c *infrav1.VCDCluster) { c.Spec.Org = "other" }, []string{"spec.org"}, "immutable"},
		{"its VDC", func(c *infrav1.VCDCluster) { c.Spec.OVDC = "other" }, []string{"spec.ovdc"}, "immutable"},
		{"its network", func(c *infrav1.VCDCluster) { c.Spec.OVDCNetwork = "other" }, []string{"spec.ovdcNetwork"}, "immutable"},
		{"its id", func(c *infrav1.VCDCluster) { c.Spec.InfraID = "" }, []string{"spec.infraID"}, "immutable"},
		{"its vApp", func(c *infrav1.VCDCluster) { c.Spec.VApp.Name = "other" }, []string{"spec.vApp"}, "immutable"},
		{
			"its host",
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneEndpoint.Host = "192.168.100.9"
			},
			[]string{"spec.controlPlaneEndpoint"},
			"immutable",
		},
		{
			"its load balancer",
			func(c *infrav1.VCDCluster) {
				c.Spec.ControlPlaneLoadBalancer.EdgeGateway = &infrav1.EdgeGatewayEndpoint{ArmMode: infrav1.ArmModeOneArm}
			},
			[]string{"spec.controlPlaneLoadBalancer.edgeGateway"},
			"immutable",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			before := cluster()
			before.Spec.InfraID = "7d8f5b8e-0000-4000-8000-000000000000"
			before.Spec.ControlPlaneEndpoint.Host = "192.168.100.200"
			before.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{Type: infrav1.EndpointEdgeGateway}
			after := before.DeepCopy()
			tt.change(after)

			_, err := clusterValidator().ValidateUpdate(t.Context(), before, after)

			g.Expect(refusedFields(g, err)).To(Equal(tt.fields))

			before.Spec.InfraID = ""
			g.Expect(clusterFixedErrors(before, after)).To(BeEmpty(), "nothing is in VCD yet")
		})
	}
}

func TestAVMCannotBeMadeAnother(t *testing.T) {
	g := NewWithT(t)
	before := &infrav1.VCDMachine{}
	before.Spec.Template = "one"
	before.Spec.Networks = []infrav1.NetworkSpec{{Name: "one"}}
	after := before.DeepCopy()
	after.Spec.Template = "two"
	after.Spec.Networks[0].Name = "two"

	g.Expect(machineFixedErrors(before, after)).To(BeEmpty())

	before.Spec.ProviderID = "vmware-cloud-director://urn:vcloud:vm:44444444-4444-4444-4444-444444444444"
	after.Spec.ProviderID = before.Spec.ProviderID
	g.Expect(machineFixedErrors(before, after)).To(ConsistOf(
		HaveField("Field", "spec.template"), HaveField("Field", "spec.networks")))
}

func TestCPUsAndMemoryChangeOnlyInPlace(t *testing.T) {
	resized := func(s *infrav1.VCDMachineSpec) {
		s.CPUs = 8
		s.Memory = ptr.To(resource.MustParse("16Gi"))
	}
	refused := []string{"spec.cpus", "spec.memory"}
	tests := []struct {
		name            string
		enabled, dryRun bool
		annotated       bool
		change          func(*infrav1.VCDMachineSpec)
		fields          []string
	}{
		{name: "a user cannot change them", enabled: true, change: resized, fields: refused},
		{name: "Cluster API can change them", enabled: true, annotated: true, change: resized},
		{name: "Cluster API can try to change them", enabled: true, dryRun: true, change: resized},
		{name: "not even Cluster API, if in-place updates are disabled", annotated: true, change: resized, fields: refused},
		{name: "not even in a dry run, if in-place updates are disabled", dryRun: true, change: resized, fields: refused},
		{
			name:      "Cluster API cannot change anything else",
			enabled:   true,
			annotated: true,
			change:    func(s *infrav1.VCDMachineSpec) { s.Template = "other" },
			fields:    []string{"spec.template"},
		},
		{
			name:    "the same value in another notation is no change",
			enabled: true,
			change:  func(s *infrav1.VCDMachineSpec) { s.Memory = ptr.To(resource.MustParse("8192Mi")) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			before := machine()
			before.Spec.SizingPolicy = ""
			before.Spec.CPUs = 4
			before.Spec.Memory = ptr.To(resource.MustParse("8Gi"))
			before.Spec.ProviderID = someProviderID
			after := before.DeepCopy()
			tt.change(&after.Spec)
			if tt.annotated {
				metav1.SetMetaDataAnnotation(&after.ObjectMeta, clusterv1.UpdateInProgressAnnotation, "")
			}

			_, err := machineValidator(tt.enabled).ValidateUpdate(request(tt.dryRun), before, after)

			g.Expect(refusedFields(g, err)).To(Equal(tt.fields))

			before.Spec.ProviderID = ""
			g.Expect(hardwareChangeErrors(&before.Spec, &after.Spec)).To(BeEmpty(), "no VM exists yet")
		})
	}
}
