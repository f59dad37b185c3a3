package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestClusterBecomesReady(t *testing.T) {
	w := newWorld(t)

	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	c := w.vcdCluster()
	w.Expect(c.Spec.InfraID).To(Equal("uid-of-vc1"))
	w.Expect(c.Spec.ControlPlaneEndpoint).To(Equal(clusterv1.APIEndpoint{Host: testVIP, Port: 6443}))
	w.Expect(ptr.Deref(c.Status.Initialization.Provisioned, false)).To(BeTrue())
	w.Expect(c.Status.OVDC.ID).To(HavePrefix("urn:vcloud:vdc:"))
	w.Expect(c.Status.OVDCNetwork.Name).To(Equal("nodes"))
	secret := &corev1.Secret{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "c1-kube-vip"}, secret)).To(Succeed())
	w.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, testCluster))
	w.Expect(metav1.IsControlledBy(secret, c)).To(BeTrue())

	_, err := w.reconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.vcdCluster().ResourceVersion).To(Equal(c.ResourceVersion))
	w.Expect(w.writes()).To(BeZero())

	w.deleteCluster()
}

func TestClusterSaysWhatIsWrongAndHeals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		change    func(*infrav1.VCDCluster)
		condition string
		reason    string
		field     string
	}{
		{"an unknown VDC", func(c *infrav1.VCDCluster) { c.Spec.OVDC = "nope" }, infrav1.NetworkReadyCondition, infrav1.VDCNotFoundReason, "spec.ovdc"},
		{"an unknown network", func(c *infrav1.VCDCluster) { c.Spec.OVDCNetwork = "nope" }, infrav1.NetworkReadyCondition, infrav1.NetworkNotFoundReason, "spec.ovdcNetwork"},
		{"an unknown organisation", func(c *infrav1.VCDCluster) { c.Spec.Org = "nope" }, infrav1.IdentityReadyCondition, infrav1.CredentialsRefusedReason, "spec.org"},
		{"a site that is not the identity's", func(c *infrav1.VCDCluster) { c.Spec.Site = "https://127.0.0.1:1" }, infrav1.IdentityReadyCondition, infrav1.SiteNotAllowedReason, "spec.site"},
		{"an unknown identity", func(c *infrav1.VCDCluster) { c.Spec.IdentityRef.Name = "nope" }, infrav1.IdentityReadyCondition, infrav1.IdentityNotFoundReason, "spec.identityRef"},
		{"a VIP in the static pool", func(c *infrav1.VCDCluster) { c.Spec.Endpoint.KubeVIP.Address = "192.168.100.20" }, infrav1.EndpointReadyCondition, infrav1.VIPInStaticPoolReason, "spec.endpoint.kubeVIP.address"},
		{"a VIP in the DHCP range", func(c *infrav1.VCDCluster) { c.Spec.Endpoint.KubeVIP.Address = "192.168.100.150" }, infrav1.EndpointReadyCondition, infrav1.VIPInDHCPRangeReason, "spec.endpoint.kubeVIP"},
		{"a VIP outside the network", func(c *infrav1.VCDCluster) { c.Spec.Endpoint.KubeVIP.Address = "10.0.0.1" }, infrav1.EndpointReadyCondition, infrav1.VIPOutsideNetworkReason, "spec.endpoint.kubeVIP"},
		{"the gateway as VIP", func(c *infrav1.VCDCluster) { c.Spec.Endpoint.KubeVIP.Address = "192.168.100.1" }, infrav1.EndpointReadyCondition, infrav1.VIPInvalidReason, "spec.endpoint.kubeVIP"},
		{"no VIP at all", func(c *infrav1.VCDCluster) { c.Spec.Endpoint.KubeVIP.Address = "" }, infrav1.EndpointReadyCondition, infrav1.EndpointMissingReason, "spec.endpoint.kubeVIP"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.vcdCluster()
			right := c.Spec.DeepCopy()
			tt.change(c)
			w.Expect(w.client.Update(w.ctx, c)).To(Succeed())

			w.eventuallyCluster(tt.condition, tt.reason)
			c = w.vcdCluster()
			w.Expect(conditions.GetMessage(c, tt.condition)).To(ContainSubstring(tt.field))
			w.Expect(w.eventTexts()).To(ContainElement(And(HavePrefix("Warning "+tt.reason), ContainSubstring(tt.field))))
			w.Expect(ptr.Deref(c.Status.Initialization.Provisioned, false)).To(BeFalse())
			w.Expect(c.Spec.ControlPlaneEndpoint.IsZero()).To(BeTrue())

			right.InfraID = c.Spec.InfraID
			c.Spec = *right
			w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
			w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
		})
	}
}

func TestClusterHealsWhenItsSecretIsCorrected(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		wrong  map[string]string
		reason string
	}{
		{"a wrong password", map[string]string{"password": "wrong-canary"}, infrav1.CredentialsRefusedReason},
		{"a certificate nobody vouches for", map[string]string{"ca.crt": ""}, infrav1.CertificateNotTrustedReason},
		{"no password", map[string]string{"password": ""}, infrav1.SecretIncompleteReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			secret := testSecret(w.sim)
			for key, value := range tt.wrong {
				secret.Data[key] = []byte(value)
			}
			w.Expect(w.client.Update(w.ctx, secret)).To(Succeed())

			w.eventuallyCluster(infrav1.IdentityReadyCondition, tt.reason)
			message := conditions.GetMessage(w.vcdCluster(), infrav1.IdentityReadyCondition)
			w.Expect(message).To(ContainSubstring("Secret"))
			w.Expect(message).NotTo(ContainSubstring("canary"))

			w.Expect(w.client.Update(w.ctx, testSecret(w.sim))).To(Succeed())
			w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
		})
	}
}

func TestClusterClaimsItsAddress(t *testing.T) {
	w := newWorld(t)
	c := w.vcdCluster()
	c.Spec.Endpoint.KubeVIP = &infrav1.KubeVIPEndpoint{PoolRef: &infrav1.IPPoolReference{Name: "vips", Kind: "InClusterIPPool", APIGroup: "ipam.cluster.x-k8s.io"}}
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.eventuallyCluster(infrav1.EndpointReadyCondition, infrav1.AddressClaimedReason)

	claim := &ipamv1.IPAddressClaim{}
	key := client.ObjectKey{Namespace: testNamespace, Name: "c1-vip"}
	w.Expect(w.client.Get(w.ctx, key, claim)).To(Succeed())
	w.Expect(claim.Spec.ClusterName).To(Equal(testCluster))
	address := &ipamv1.IPAddress{ObjectMeta: meta("c1-vip")}
	address.Spec.Address = "192.168.100.210"
	w.Expect(w.client.Create(w.ctx, address)).To(Succeed())
	claim.Status.AddressRef.Name = "c1-vip"
	w.Expect(w.client.Status().Update(w.ctx, claim)).To(Succeed())

	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.vcdCluster().Spec.ControlPlaneEndpoint.Host).To(Equal("192.168.100.210"))

	w.deleteCluster()
	w.Expect(client.IgnoreNotFound(w.client.Get(w.ctx, key, claim))).To(Succeed())
	w.Expect(w.client.Get(w.ctx, key, claim)).NotTo(Succeed())
}

func TestClusterWaitsForAnExternalEndpoint(t *testing.T) {
	w := newWorld(t)
	c := w.vcdCluster()
	c.Spec.Endpoint = infrav1.EndpointSpec{Type: infrav1.EndpointExternal}
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.eventuallyCluster(infrav1.EndpointReadyCondition, infrav1.WaitingForEndpointReason)

	c = w.vcdCluster()
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "api.example.com", Port: 443}
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.vcdCluster().Spec.ControlPlaneEndpoint.Port).To(Equal(int32(443)))
}

func TestClusterOfSomebodyElseIsNotTouched(t *testing.T) {
	w := newWorld(t)
	c := w.vcdCluster()
	c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "terraform"}
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	before := w.vcdCluster().ResourceVersion

	_, err := w.reconcileCluster()

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.vcdCluster().ResourceVersion).To(Equal(before))
}

func TestClusterWaitsForItsMachinesAndSparesForeignVApps(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
	w.eventuallyCluster(infrav1.LoadBalancersDeletedCondition, infrav1.MachinesRemainReason)

	w.deleteMachine("cp-0")
	w.sim.Edit(func(e *vcdsim.Editor) { e.VApp(testCluster).Description = "somebody else's" })
	w.Eventually(func() error {
		_, err := w.reconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
		return w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "vc1"}, &infrav1.VCDCluster{})
	}, patience, "5ms").ShouldNot(Succeed())

	w.Expect(w.sim.State().VApps).To(HaveLen(1))
	w.Expect(w.eventTexts()).To(ContainElement(ContainSubstring("left alone")))
}

func TestClusterThatLivesElsewhereIsNotStopped(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	m := w.vcdMachine("cp-0") // As clusterctl move does, and as a person who cleans up after it.
	m.Finalizers = nil
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, m)).To(Succeed())
	before := w.writes()

	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
	w.eventuallyCluster(infrav1.VAppDeletedCondition, infrav1.VAppNotEmptyReason)

	w.Expect(w.writes()).To(Equal(before))
	w.Expect(w.sim.State().VMs[0].PoweredOn).To(BeTrue())
}

func TestPausedClusterIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	c := w.vcdCluster()
	c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())

	for range 3 {
		_, err := w.reconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.Expect(conditions.IsTrue(w.vcdCluster(), clusterv1.PausedCondition)).To(BeTrue())
	w.Expect(w.vcdCluster().Spec.InfraID).To(BeEmpty())
}

func TestIdentityKeepsItsSecretWhileItIsUsed(t *testing.T) {
	w := newWorld(t)
	key := client.ObjectKey{Namespace: testNamespace, Name: "tenant"}
	pass := func() {
		_, err := reconcile.AsReconciler(w.client, w.identity).Reconcile(w.ctx, reconcile.Request{NamespacedName: key})
		w.Expect(err).NotTo(HaveOccurred())
	}
	for range 4 {
		pass()
	}
	i, secret := &infrav1.VCDIdentity{}, &corev1.Secret{}
	w.Expect(w.client.Get(w.ctx, key, i)).To(Succeed())
	w.Expect(conditions.IsTrue(i, clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "tenant-credentials"}, secret)).To(Succeed())
	w.Expect(secret.Finalizers).To(ContainElement(infrav1.SecretFinalizer))
	w.Expect(secret.OwnerReferences).To(HaveLen(1))

	w.Expect(w.client.Delete(w.ctx, i)).To(Succeed())
	pass()
	w.Expect(w.client.Get(w.ctx, key, i)).To(Succeed())
	w.Expect(conditions.GetReason(i, clusterv1.ReadyCondition)).To(Equal(infrav1.InUseReason))

	w.deleteCluster()
	w.Expect(w.client.Delete(w.ctx, testSecret(w.sim))).To(Succeed())
	pass()
	w.Expect(w.client.Get(w.ctx, key, i)).NotTo(Succeed())
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(secret), secret)).NotTo(Succeed())
}

func TestClusterIdentityIsForTheNamespacesItNames(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	tests := []struct {
		name    string
		allowed *infrav1.AllowedNamespaces
		want    string
	}{
		{"nobody is allowed by default", nil, infrav1.NamespaceNotAllowedReason},
		{"an empty choice is nobody", &infrav1.AllowedNamespaces{}, infrav1.NamespaceNotAllowedReason},
		{"another namespace is not this one", &infrav1.AllowedNamespaces{List: []string{"team-b"}}, infrav1.NamespaceNotAllowedReason},
		{"a listed namespace", &infrav1.AllowedNamespaces{List: []string{testNamespace}}, ""},
		{"a selected namespace", &infrav1.AllowedNamespaces{Selector: selector}, ""},
		{"an empty selector is everybody", &infrav1.AllowedNamespaces{Selector: &metav1.LabelSelector{}}, ""},
		{"a selector that cannot be read is nobody", &infrav1.AllowedNamespaces{Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Nonsense"}},
		}}, infrav1.NamespaceNotAllowedReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			identity := &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
			identity.Spec.Site, identity.Spec.Orgs, identity.Spec.SecretRef.Name = "https://vcd.example.com", []string{infrav1.AnyOrg}, "s"
			identity.Spec.AllowedNamespaces = tt.allowed
			c := fakeClient(identity,
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testNamespace, Labels: map[string]string{"team": "a"}}},
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "capvcd-system", Name: "s"}, Data: map[string][]byte{"apiToken": []byte("t\n")}},
			)

			l, out, err := Identities{Client: c, Live: c, Namespace: "capvcd-system"}.resolve(t.Context(), testNamespace, infrav1.VCDClusterSpec{
				Site: "https://vcd.example.com/", IdentityRef: infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "shared"},
			})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.reason).To(Equal(tt.want))
			if tt.want == "" {
				g.Expect(l.config.Credentials.APIToken).To(Equal("t"))
				g.Expect(l.config.Site).To(Equal("https://vcd.example.com"))
			}
		})
	}
}

func TestAPassOnAVCDClusterThatIsGoneAlreadyIsNoError(t *testing.T) {
	w := newWorld(t)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
	stale := w.vcdCluster()
	w.eventuallyGone(stale)

	_, err := w.cluster.Reconcile(w.ctx, stale)

	w.Expect(err).NotTo(HaveOccurred())
}

func TestMachinesOfAClusterThatSomebodyElseManages(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	c := w.vcdCluster()
	c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "terraform"}
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())

	w.eventuallyMachine("cp-0", infrav1.PlacementReadyCondition, infrav1.WaitingForClusterReason)
	w.Expect(conditions.GetMessage(w.vcdMachine("cp-0"), infrav1.PlacementReadyCondition)).To(ContainSubstring("set spec.infraID"))

	c = w.vcdCluster()
	c.Spec.InfraID = "made-by-terraform"
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.vcdCluster().Finalizers).To(BeEmpty())
	w.Expect(w.vcdCluster().Status).To(BeZero())

	w.deleteMachine("cp-0")
	w.Expect(w.sim.State().VMs).To(BeEmpty())
}

func (w *world) eventuallyGone(c *infrav1.VCDCluster) {
	w.Eventually(func(g Gomega) {
		_, err := reconcile.AsReconciler(w.client, w.cluster).Reconcile(w.ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(apierrors.IsNotFound(w.client.Get(w.ctx, client.ObjectKeyFromObject(c), &infrav1.VCDCluster{}))).To(BeTrue())
	}, patience, "5ms").Should(Succeed())
}
