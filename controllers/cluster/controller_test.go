// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestClusterBecomesReady(t *testing.T) {
	w := controllertest.New(t)

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	c := w.VCDCluster()
	w.Expect(c.Spec.InfraID).To(Equal("uid-of-vc1"))
	w.Expect(c.Spec.ControlPlaneEndpoint).To(Equal(clusterv1.APIEndpoint{Host: controllertest.VIP, Port: 6443}))
	w.Expect(ptr.Deref(c.Status.Initialization.Provisioned, false)).To(BeTrue())
	w.Expect(c.Status.OVDC.ID).To(HavePrefix("urn:vcloud:vdc:"))
	w.Expect(c.Status.OVDCNetwork.Name).To(Equal("nodes"))
	secret := &corev1.Secret{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "c1-kube-vip"},
		secret)).To(Succeed())
	w.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, controllertest.ClusterName))
	w.Expect(metav1.IsControlledBy(secret, c)).To(BeTrue())

	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.VCDCluster().ResourceVersion).To(Equal(c.ResourceVersion))
	w.Expect(w.Writes()).To(BeZero())

	w.DeleteCluster()
}

func TestClusterReportsProblemsAndRecovers(t *testing.T) {
	t.Parallel()
	vip := func(address string) func(*infrav1.VCDCluster) {
		return func(c *infrav1.VCDCluster) { c.Spec.ControlPlaneEndpoint.Host = address }
	}
	tests := []struct {
		name      string
		change    func(*infrav1.VCDCluster)
		condition string
		reason    string
		field     string
	}{
		{
			name:      "an unknown VDC",
			change:    func(c *infrav1.VCDCluster) { c.Spec.OVDC = "nope" },
			condition: infrav1.NetworkReadyCondition,
			reason:    infrav1.VDCNotFoundReason,
			field:     "spec.ovdc",
		},
		{
			name:      "an unknown network",
			change:    func(c *infrav1.VCDCluster) { c.Spec.OVDCNetwork = "nope" },
			condition: infrav1.NetworkReadyCondition,
			reason:    infrav1.NetworkNotFoundReason,
			field:     "spec.ovdcNetwork",
		},
		{
			name:      "an unknown organization",
			change:    func(c *infrav1.VCDCluster) { c.Spec.Org = "nope" },
			condition: infrav1.IdentityReadyCondition,
			reason:    infrav1.CredentialsRejectedReason,
			field:     "spec.org",
		},
		{
			name:      "a site that is not the identity's",
			change:    func(c *infrav1.VCDCluster) { c.Spec.Site = "https://127.0.0.1:1" },
			condition: infrav1.IdentityReadyCondition,
			reason:    infrav1.SiteNotAllowedReason,
			field:     "spec.site",
		},
		{
			name:      "an unknown identity",
			change:    func(c *infrav1.VCDCluster) { c.Spec.IdentityRef.Name = "nope" },
			condition: infrav1.IdentityReadyCondition,
			reason:    infrav1.IdentityNotFoundReason,
			field:     "spec.identityRef",
		},
		{
			name:      "a VIP in the static pool",
			change:    vip("192.168.100.20"),
			condition: infrav1.EndpointReadyCondition,
			reason:    infrav1.VIPInStaticPoolReason,
			field:     "spec.controlPlaneEndpoint",
		},
		{
			name:      "a VIP in the DHCP range",
			change:    vip("192.168.100.150"),
			condition: infrav1.EndpointReadyCondition,
			reason:    infrav1.VIPInDHCPRangeReason,
			field:     "spec.controlPlaneEndpoint",
		},
		{
			name:      "a VIP outside the network",
			change:    vip("10.0.0.1"),
			condition: infrav1.EndpointReadyCondition,
			reason:    infrav1.VIPOutsideNetworkReason,
			field:     "spec.controlPlaneEndpoint",
		},
		{
			name:      "the gateway as VIP",
			change:    vip("192.168.100.1"),
			condition: infrav1.EndpointReadyCondition,
			reason:    infrav1.VIPInvalidReason,
			field:     "spec.controlPlaneEndpoint",
		},
		{
			name:      "no VIP at all",
			change:    func(c *infrav1.VCDCluster) { c.Spec.ControlPlaneEndpoint.Host = "" },
			condition: infrav1.EndpointReadyCondition,
			reason:    infrav1.EndpointMissingReason,
			field:     "spec.controlPlaneLoadBalancer.kubeVIP",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t)
			c := w.VCDCluster()
			right := c.Spec.DeepCopy()
			tt.change(c)
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

			w.EventuallyCluster(tt.condition, tt.reason)
			c = w.VCDCluster()
			w.Expect(conditions.GetMessage(c, tt.condition)).To(ContainSubstring(tt.field))
			w.Expect(w.EventTexts()).To(ContainElement(And(HavePrefix("Warning "+tt.reason),
				ContainSubstring(tt.field))))
			w.Expect(ptr.Deref(c.Status.Initialization.Provisioned, false)).To(BeFalse())
			w.Expect(c.Spec.ControlPlaneEndpoint.Port).To(BeZero(), "it is written when the endpoint is known")
			w.Expect(c.Spec.InfraID).To(BeEmpty(), "with an ID the spec could no longer be corrected")

			c.Spec = *right
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
		})
	}
}

func TestClusterRecoversWhenItsSecretIsCorrected(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		wrong  map[string]string
		reason string
	}{
		{"an incorrect password", map[string]string{"password": "wrong-canary"}, infrav1.CredentialsRejectedReason},
		{"a certificate of an unknown authority", map[string]string{"ca.crt": ""}, infrav1.CertificateNotTrustedReason},
		{"no password", map[string]string{"password": ""}, infrav1.SecretIncompleteReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t)
			secret := controllertest.NewSecret(w.Sim)
			for key, value := range tt.wrong {
				secret.Data[key] = []byte(value)
			}
			w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())

			w.EventuallyCluster(infrav1.IdentityReadyCondition, tt.reason)
			message := conditions.GetMessage(w.VCDCluster(), infrav1.IdentityReadyCondition)
			w.Expect(message).To(ContainSubstring("Secret"))
			w.Expect(message).NotTo(ContainSubstring("canary"))

			w.Expect(w.Client.Update(w.Ctx, controllertest.NewSecret(w.Sim))).To(Succeed())
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
		})
	}
}

func TestClusterWaitsForAnExternalEndpoint(t *testing.T) {
	w := controllertest.New(t)
	c := w.VCDCluster()
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
	c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{Type: infrav1.EndpointExternal}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.WaitingForEndpointReason)

	c = w.VCDCluster()
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "api.example.com", Port: 443}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Port).To(Equal(int32(443)))
}

func TestEndpointPort(t *testing.T) {
	tests := []struct {
		name     string
		kind     infrav1.EndpointType
		host     string
		port     int32
		wantHost string
		wantPort int32
	}{
		{"a virtual IP with its own port", infrav1.EndpointKubeVIP, controllertest.VIP, 443, controllertest.VIP, 443},
		{"an external host without a port", infrav1.EndpointExternal, "api.example.com", 0, "api.example.com", 6443},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t)
			c := w.VCDCluster()
			c.Spec.ControlPlaneLoadBalancer.Type = tt.kind
			c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: tt.host, Port: tt.port}
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

			w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint).To(Equal(
				clusterv1.APIEndpoint{Host: tt.wantHost, Port: tt.wantPort}))
		})
	}
}

func TestClusterOfAnotherProviderIsNotTouched(t *testing.T) {
	w := controllertest.New(t)
	c := w.VCDCluster()
	c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "terraform"}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	before := w.VCDCluster().ResourceVersion

	_, err := w.ReconcileCluster()

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.VCDCluster().ResourceVersion).To(Equal(before))
}

func TestClusterWaitsForItsMachinesAndKeepsForeignVApps(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.EventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.WaitingForMachineDeletionReason)

	w.DeleteMachine("cp-0")
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VApp(controllertest.ClusterName).Description = "another owner's" })
	w.Eventually(func() error {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
		return w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "vc1"},
			&infrav1.VCDCluster{})
	}, controllertest.Patience, "5ms").ShouldNot(Succeed())

	w.Expect(w.Sim.State().VApps).To(HaveLen(1))
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("was not deleted")))
}

func TestClusterThatIsManagedElsewhereIsNotStopped(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	m := w.VCDMachine("cp-0") // As clusterctl move does, or a user who cleans up afterwards.
	m.Finalizers = nil
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())
	before := w.Writes()

	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.EventuallyCluster(infrav1.VAppDeletedCondition, infrav1.VAppNotEmptyReason)

	w.Expect(w.Writes()).To(Equal(before))
	w.Expect(w.Sim.State().VMs[0].PoweredOn).To(BeTrue())
}

func TestPausedClusterIsNotReconciled(t *testing.T) {
	w := controllertest.New(t)
	c := w.VCDCluster()
	c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	for range 3 {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.PausedCondition)).To(BeTrue())
	w.Expect(w.VCDCluster().Spec.InfraID).To(BeEmpty())
}

func TestIdentityProtectsItsSecretWhileInUse(t *testing.T) {
	w := controllertest.New(t)
	key := client.ObjectKey{Namespace: controllertest.Namespace, Name: "tenant"}
	pass := func() {
		_, err := reconcile.AsReconciler(w.Client, w.Identity).Reconcile(w.Ctx, reconcile.Request{NamespacedName: key})
		w.Expect(err).NotTo(HaveOccurred())
	}
	for range 4 {
		pass()
	}
	i := &infrav1.VCDIdentity{}
	secret := &corev1.Secret{}
	w.Expect(w.Client.Get(w.Ctx, key, i)).To(Succeed())
	w.Expect(conditions.IsTrue(i, clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "tenant-credentials"},
		secret)).To(Succeed())
	w.Expect(secret.Finalizers).To(ContainElement(infrav1.SecretFinalizer))
	w.Expect(secret.OwnerReferences).To(HaveLen(1))

	w.Expect(w.Client.Delete(w.Ctx, i)).To(Succeed())
	pass()
	w.Expect(w.Client.Get(w.Ctx, key, i)).To(Succeed())
	w.Expect(conditions.GetReason(i, clusterv1.ReadyCondition)).To(Equal(infrav1.InUseReason))

	w.DeleteCluster()
	w.Expect(w.Client.Delete(w.Ctx, controllertest.NewSecret(w.Sim))).To(Succeed())
	pass()
	w.Expect(w.Client.Get(w.Ctx, key, i)).NotTo(Succeed())
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(secret), secret)).NotTo(Succeed())
}

func TestReconcilingADeletedVCDClusterIsNotAnError(t *testing.T) {
	w := controllertest.New(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	stale := w.VCDCluster()
	eventuallyGone(w, stale)

	_, err := w.Cluster.Reconcile(w.Ctx, stale)

	w.Expect(err).NotTo(HaveOccurred())
}

func TestMachinesOfAnExternallyManagedCluster(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	c := w.VCDCluster()
	c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "terraform"}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	w.EventuallyMachine("cp-0", infrav1.PlacementReadyCondition, infrav1.WaitingForClusterReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"),
		infrav1.PlacementReadyCondition)).To(ContainSubstring("set spec.infraID"))

	c = w.VCDCluster()
	c.Spec.InfraID = "0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDCluster().Finalizers).To(BeEmpty())
	w.Expect(w.VCDCluster().Status).To(BeZero())

	w.DeleteMachine("cp-0")
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
}

func eventuallyGone(w *controllertest.Env, c *infrav1.VCDCluster) {
	w.Eventually(func(g Gomega) {
		_, err := reconcile.AsReconciler(w.Client, w.Cluster).Reconcile(w.Ctx,
			reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(apierrors.IsNotFound(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(c),
			&infrav1.VCDCluster{}))).To(BeTrue())
	}, controllertest.Patience, "5ms").Should(Succeed())
}
