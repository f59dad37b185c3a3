// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// rejection is an object with one thing changed and the fields and words with which it must be refused; none means
// admitted.
type rejection[T client.Object] struct {
	name   string
	change func(obj T)
	fields []string
	words  string
}

func (r rejection[T]) checkCreate(t *testing.T, v *validator[T], obj T) {
	t.Helper()
	g := NewWithT(t)
	r.change(obj)

	_, err := v.ValidateCreate(context.Background(), obj)

	g.Expect(refusedFields(g, err)).To(Equal(r.fields))
	if r.words != "" {
		g.Expect(err).To(MatchError(ContainSubstring(r.words)))
	}
}

// refusedFields returns the fields that an error of admission names, in order.
func refusedFields(g *WithT, err error) []string {
	if err == nil {
		return nil
	}
	status := &apierrors.StatusError{}
	g.Expect(errors.As(err, &status)).To(BeTrue(), "not an error of validation: %v", err)
	var fields []string
	for _, cause := range status.ErrStatus.Details.Causes {
		fields = append(fields, cause.Field)
		g.Expect(cause.Message).ToNot(BeEmpty())
	}
	return fields
}

func cluster() *infrav1.VCDCluster {
	return &infrav1.VCDCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Namespace: "default"},
		Spec: infrav1.VCDClusterSpec{
			Site:                 "https://vcd.example.com",
			Org:                  "acme",
			OVDC:                 "acme-vdc",
			OVDCNetwork:          "nodes",
			IdentityRef:          infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "acme"},
			VApp:                 infrav1.VAppSpec{Layout: infrav1.VAppPerFailureDomain},
			CloudProvider:        infrav1.CloudProviderSpec{Mode: infrav1.CloudProviderNone},
			RDE:                  infrav1.RDESpec{Mode: infrav1.RDENone},
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "192.168.100.200"},
			ControlPlaneLoadBalancer: infrav1.ControlPlaneLoadBalancerSpec{
				Type:    infrav1.EndpointKubeVIP,
				KubeVIP: &infrav1.KubeVIPEndpoint{},
			},
			OrphanedDiskPolicy: infrav1.OrphanedDiskRetain,
		},
	}
}

func clusterTemplate() *infrav1.VCDClusterTemplate {
	return &infrav1.VCDClusterTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Namespace: "default"},
		Spec:       infrav1.VCDClusterTemplateSpec{Template: infrav1.VCDClusterTemplateResource{Spec: cluster().Spec}},
	}
}

func machine() *infrav1.VCDMachine {
	return &infrav1.VCDMachine{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-md-0-abcde-fghij", Namespace: "default"},
		Spec: infrav1.VCDMachineSpec{
			Catalog:        "kubernetes",
			Template:       "ubuntu",
			SizingPolicy:   "small",
			PowerOffPolicy: infrav1.PowerOffReport,
			Networks: []infrav1.NetworkSpec{
				{AddressSource: infrav1.AddressStaticPool},
				{
					Name:          "storage",
					AddressSource: infrav1.AddressDHCP,
					Nameservers:   []string{"10.0.0.53"},
					SearchDomains: []string{"example.com"},
				},
			},
		},
	}
}

func machineTemplate() *infrav1.VCDMachineTemplate {
	return &infrav1.VCDMachineTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-md-0", Namespace: "default"},
		Spec:       infrav1.VCDMachineTemplateSpec{Template: infrav1.VCDMachineTemplateResource{Spec: machine().Spec}},
	}
}

// request is a context as the webhook server makes it.
func request(dryRun bool) context.Context {
	return admission.NewContextWithRequest(context.Background(),
		admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Update,
			DryRun:    &dryRun,
		}})
}

func TestValidateUpdate(t *testing.T) {
	broken := func(mods ...func(*infrav1.VCDCluster)) *infrav1.VCDCluster {
		c := cluster()
		c.Spec.ControlPlaneEndpoint.Host = "no host"
		for _, mod := range mods {
			mod(c)
		}
		return c
	}
	tests := []struct {
		name    string
		newObj  *infrav1.VCDCluster
		refused []string
	}{
		{
			name: "an object that would not be admitted today can be paused",
			newObj: broken(func(c *infrav1.VCDCluster) {
				c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
			}),
		},
		{name: "it can be written by the controller", newObj: broken(func(c *infrav1.VCDCluster) { c.Spec.InfraID = "id" })},
		{
			name:    "it cannot get worse",
			newObj:  broken(func(c *infrav1.VCDCluster) { c.Spec.ControlPlaneEndpoint.Host = "127.0.0.1" }),
			refused: []string{"spec.controlPlaneEndpoint.host"},
		},
		{
			name: "it can be deleted, whatever is changed on the way",
			newObj: broken(func(c *infrav1.VCDCluster) {
				now := metav1.Now()
				c.DeletionTimestamp = &now
				c.Spec.ControlPlaneEndpoint.Host = "127.0.0.1"
			}),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := clusterValidator().ValidateUpdate(request(false), broken(), tt.newObj)

			g.Expect(refusedFields(g, err)).To(Equal(tt.refused))
		})
	}
}

func TestSwitchesThatHaveNoEffectAreRefused(t *testing.T) {
	deleted := func(c *infrav1.VCDCluster, annotations map[string]string) *infrav1.VCDCluster {
		now := metav1.Now()
		c.DeletionTimestamp = &now
		c.Annotations = annotations
		return c
	}
	const key = infrav1.KeepLoadBalancersAnnotation
	const acknowledged = infrav1.GoneAcknowledgedAnnotation
	tests := []struct {
		name     string
		from, to map[string]string
		refused  []string
	}{
		{name: "one that is set", to: map[string]string{key: "true"}},
		{name: "one that is unset", from: map[string]string{key: "true"}, to: map[string]string{key: "false"}},
		{
			name:    "one with another value, though the object is deleted",
			to:      map[string]string{key: "yes"},
			refused: []string{"metadata.annotations[" + key + "]"},
		},
		{name: "one that was admitted before", from: map[string]string{key: "yes"}, to: map[string]string{key: "yes"}},
		{name: "an acknowledgement", to: map[string]string{acknowledged: "true"}},
		{
			name: "the time of an acknowledgement, which the controller writes",
			from: map[string]string{acknowledged: "true"},
			to:   map[string]string{acknowledged: "2026-01-02T03:04:05Z"},
		},
		{
			name:    "an acknowledgement with another value",
			to:      map[string]string{acknowledged: "True"},
			refused: []string{"metadata.annotations[" + acknowledged + "]"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := clusterValidator().ValidateUpdate(request(false), deleted(cluster(), tt.from),
				deleted(cluster(), tt.to))

			g.Expect(refusedFields(g, err)).To(Equal(tt.refused))
		})
	}
}

func TestTemplatesAreImmutable(t *testing.T) {
	dryRunAnnotation := map[string]string{clusterv1.TopologyDryRunAnnotation: ""}
	tests := []struct {
		name        string
		dryRun      bool
		annotations map[string]string
		refused     []string
	}{
		{"a change is refused", false, nil, []string{"spec.template"}},
		{"the topology controller may ask what a change would be", true, dryRunAnnotation, nil},
		{"the annotation alone allows nothing", false, dryRunAnnotation, []string{"spec.template"}},
		{"another dry run is refused", true, nil, []string{"spec.template"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			m := machineTemplate()
			c := clusterTemplate()
			m.Annotations = tt.annotations
			m.Spec.Template.Spec.SizingPolicy = "large"
			c.Annotations = tt.annotations
			c.Spec.Template.Spec.OVDC = "other"

			_, machineErr := machineTemplateValidator().ValidateUpdate(request(tt.dryRun), machineTemplate(), m)
			_, clusterErr := clusterTemplateValidator().ValidateUpdate(request(tt.dryRun), clusterTemplate(), c)

			g.Expect(refusedFields(g, machineErr)).To(Equal(tt.refused))
			g.Expect(refusedFields(g, clusterErr)).To(Equal(tt.refused))
		})
	}
}

func TestAnIdentityReplacesTheCredentialsOfATemplate(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*infrav1.VCDClusterSpec)
		refused []string
	}{
		{
			name: "the credentials are removed",
			change: func(s *infrav1.VCDClusterSpec) {
				s.CAPVCDCredentials = nil
				s.IdentityRef = infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "other"}
			},
		},
		{
			name:    "the credentials stay",
			change:  func(s *infrav1.VCDClusterSpec) { s.IdentityRef.Name = "other" },
			refused: []string{"spec.template"},
		},
		{
			name: "another field changes, too",
			change: func(s *infrav1.VCDClusterSpec) {
				s.CAPVCDCredentials = nil
				s.OVDC = "other"
			},
			refused: []string{"spec.template"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			before := clusterTemplate()
			before.Spec.Template.Spec.CAPVCDCredentials = &infrav1.CAPVCDCredentials{}
			after := before.DeepCopy()
			tt.change(&after.Spec.Template.Spec)

			_, err := clusterTemplateValidator().ValidateUpdate(request(false), before, after)

			g.Expect(refusedFields(g, err)).To(Equal(tt.refused))
		})
	}
}

func TestTemplatesFollowTheRulesOfTheirObjects(t *testing.T) {
	g := NewWithT(t)
	m := machineTemplate()
	c := clusterTemplate()
	m.Spec.Template.Spec.VMMetadata = []infrav1.MetadataEntry{{Key: "a/b"}}
	c.Spec.Template.Spec.ControlPlaneEndpoint.Host = "no host"

	_, machineErr := machineTemplateValidator().ValidateCreate(request(false), m)
	_, clusterErr := clusterTemplateValidator().ValidateCreate(request(false), c)

	g.Expect(refusedFields(g, machineErr)).To(Equal([]string{"spec.template.spec.vmMetadata[0].key"}))
	g.Expect(refusedFields(g, clusterErr)).To(Equal([]string{"spec.template.spec.controlPlaneEndpoint.host"}))
}

func TestTemplateMetadataCanChange(t *testing.T) {
	g := NewWithT(t)
	labeled := machineTemplate()
	labeled.Labels = map[string]string{"a": "b"}

	_, err := machineTemplateValidator().ValidateUpdate(request(false), machineTemplate(), labeled)

	g.Expect(err).ToNot(HaveOccurred())
}

func TestDeletionIsAdmitted(t *testing.T) {
	g := NewWithT(t)

	_, err := clusterValidator().ValidateDelete(request(false), &infrav1.VCDCluster{})

	g.Expect(err).ToNot(HaveOccurred())
}
