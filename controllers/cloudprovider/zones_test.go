// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
)

func TestNodesAreSearchedAndLabeledInSelectedZonesAndZonesWithMachines(t *testing.T) {
	const vdcA, vdcB = "urn:vcloud:vdc:a", "urn:vcloud:vdc:b"
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	objects := fake.NewClientBuilder().WithScheme(scheme)
	for zone, vdc := range map[string]string{"a": vdcA, "b": vdcB, "never-found": ""} {
		meta := metav1.ObjectMeta{Namespace: "team-a", Name: zone, Labels: map[string]string{"zone": zone}}
		d := &infrav1.VCDFailureDomain{ObjectMeta: meta}
		d.Spec = infrav1.VCDFailureDomainSpec{Region: "eu", Zone: "eu-" + zone, OVDC: vdc}
		z := &infrav1.VCDDeploymentZone{ObjectMeta: meta}
		z.Spec = infrav1.VCDDeploymentZoneSpec{FailureDomain: zone, Site: "https://vcd.example.com", Org: "acme"}
		if vdc != "" {
			z.Status.OVDC = &infrav1.ResourceReference{ID: vdc}
		}
		objects.WithObjects(d, z)
	}
	c := &infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a",
		Name:      "c1",
	}}
	c.Spec.RecordedState.Zones = map[string]infrav1.VCDClusterZoneRecord{
		"b":    {OVDCID: vdcB, VAppCount: 2}, // It is no longer selected.
		"gone": {OVDCID: "urn:vcloud:vdc:gone", VAppCount: 1},
	}
	c.Spec.Site = "https://vcd.example.com"
	c.Spec.Org = "acme"
	c.Spec.FailureDomainSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key:      "zone",
		Operator: metav1.LabelSelectorOpIn,
		Values:   []string{"a", "never-found"},
	}}}
	w := nodeLocations{}

	g.Expect(w.find(t.Context(), objects.Build(), c, "c1")).To(Succeed())

	g.Expect(w).To(Equal(nodeLocations{
		vdcs:  []string{vdcA, vdcB, "urn:vcloud:vdc:gone"},
		vApps: []string{"c1-a", "c1-b", "c1-b-2", "c1-gone"},
		zones: []vcdconfig.Zone{
			{Name: "eu-a", Region: "eu", VDC: vdcA},
			{Name: "eu-b", Region: "eu", VDC: vdcB},
		},
	}))
}
