package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// sharedIdentity is a VCDClusterIdentity that the tests' namespace may use, with its Secret.
func sharedIdentity(site string, orgs ...string) []client.Object {
	i := &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	i.Spec.Site, i.Spec.Orgs, i.Spec.SecretRef.Name = site, orgs, "s"
	i.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{List: []string{testNamespace}}
	return []client.Object{i, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capvcd-system", Name: "s"}, Data: map[string][]byte{"apiToken": []byte("t")},
	}}
}

func TestAnIdentityIsForItsSiteAlone(t *testing.T) {
	tests := []struct {
		name, identity, cluster, want string
	}{
		{"the same site", "https://vcd.example.com", "https://vcd.example.com", ""},
		{"a slash at the end of either", "https://vcd.example.com", "https://vcd.example.com/", ""},
		{"host names have no case", "https://VCD.example.com", "https://vcd.Example.com", ""},
		{"the port of https may be said", "https://vcd.example.com", "https://vcd.example.com:443", ""},
		{"another host", "https://vcd.example.com", "https://evil.example.com", infrav1.SiteNotAllowedReason},
		{"a host that begins the same", "https://vcd.example.com", "https://vcd.example.com.evil.example", infrav1.SiteNotAllowedReason},
		{"a host that ends the same", "https://vcd.example.com", "https://evilvcd.example.com", infrav1.SiteNotAllowedReason},
		{"a host behind what looks like a user", "https://vcd.example.com", "https://vcd.example.com@evil.example", infrav1.SiteNotAllowedReason},
		{"another port", "https://vcd.example.com", "https://vcd.example.com:8443", infrav1.SiteNotAllowedReason},
		{"without TLS", "https://vcd.example.com", "http://vcd.example.com:443", infrav1.SiteNotAllowedReason},
		{"what is no URL", "https://vcd.example.com", "https://vcd.example.com:%", infrav1.SiteNotAllowedReason},
		{"an identity from before it had a site", "", "https://vcd.example.com", infrav1.SiteNotAllowedReason},
		{"nothing is not the same as nothing", "", "", infrav1.SiteNotAllowedReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := fakeClient(sharedIdentity(tt.identity, "acme")...)

			l, out, err := Identities{Client: c, Live: c, Namespace: "capvcd-system"}.resolve(t.Context(), testNamespace, infrav1.VCDClusterSpec{
				Site: tt.cluster, Org: "acme", IdentityRef: infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "shared"},
			})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.reason).To(Equal(tt.want))
			if tt.want == "" {
				g.Expect(l.config.Site).To(Equal(tt.identity), "credentials go where the identity says")
				return
			}
			g.Expect(out.message).To(And(ContainSubstring("spec.site of VCDClusterIdentity shared"), ContainSubstring("spec.site of the VCDCluster")))
			g.Expect(l.config.Credentials).To(BeZero())
		})
	}
}

func TestAClusterIdentityIsForItsOrganisations(t *testing.T) {
	const site = "https://vcd.example.com"
	tests := []struct {
		name string
		orgs []string
		want string
	}{
		{"the organisation", []string{"acme"}, ""},
		{"one of several", []string{"other", "acme"}, ""},
		{"any", []string{infrav1.AnyOrg}, ""},
		{"another", []string{"other"}, infrav1.OrgNotAllowedReason},
		{"no pattern but any", []string{"ac*"}, infrav1.OrgNotAllowedReason},
		{"an identity from before it had organisations", nil, infrav1.OrgNotAllowedReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := fakeClient(sharedIdentity(site, tt.orgs...)...)

			_, out, err := Identities{Client: c, Live: c, Namespace: "capvcd-system"}.resolve(t.Context(), testNamespace, infrav1.VCDClusterSpec{
				Site: site, Org: "acme", IdentityRef: infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "shared"},
			})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.reason).To(Equal(tt.want))
			if tt.want != "" {
				g.Expect(out.message).To(And(ContainSubstring("spec.orgs of VCDClusterIdentity shared"), ContainSubstring("spec.org of the VCDCluster")))
			}
		})
	}
}

func TestASecretIsNotReadForAForeignSite(t *testing.T) {
	w := newWorld(t)
	c := w.vcdCluster()
	c.Spec.Site = "https://evil.example.com"
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, testSecret(w.sim))).To(Succeed())

	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.SiteNotAllowedReason)

	w.Expect(w.sim.Requests()).To(BeEmpty())
	w.Expect(w.eventTexts()).To(ContainElement(ContainSubstring(infrav1.SiteNotAllowedReason)))

	c = w.vcdCluster()
	c.Spec.Site = w.sim.URL()
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.SecretNotFoundReason)
}

func TestASiteWhereNothingAnswers(t *testing.T) {
	w := newWorld(t)
	moveTo := func(site string) {
		i, c := testIdentity(""), w.vcdCluster()
		w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(i), i)).To(Succeed())
		i.Spec.Site, c.Spec.Site = site, site
		w.Expect(w.client.Update(w.ctx, i)).To(Succeed())
		w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	}
	moveTo("https://127.0.0.1:1")

	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.SiteUnreachableReason)

	w.Expect(conditions.GetMessage(w.vcdCluster(), infrav1.IdentityReadyCondition)).To(ContainSubstring("spec.site"))
	moveTo(w.sim.URL())
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestAnIdentityThatIsNarrowedStopsItsMachines(t *testing.T) {
	w := newWorld(t, testMachine("m1")...)
	w.eventuallyCluster(infrav1.EndpointReadyCondition, infrav1.ReadyReason)
	i := testIdentity(w.sim.URL())
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(i), i)).To(Succeed())
	i.Spec.Site = "https://other.example.com"
	w.Expect(w.client.Update(w.ctx, i)).To(Succeed())
	before := len(w.sim.Requests())

	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine("m1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conditions.GetReason(w.vcdMachine("m1"), infrav1.PlacementReadyCondition)).To(Equal(infrav1.SiteNotAllowedReason))
	}, patience, "5ms").Should(Succeed())

	w.Expect(w.sim.Requests()).To(HaveLen(before))
}

func TestANamespaceThatIsNotAllowedIsLookedAtAgain(t *testing.T) {
	g := NewWithT(t)
	i := &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	i.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	c := fakeClient(i, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testNamespace}})

	_, out, err := Identities{Client: c, Live: c}.resolve(t.Context(), testNamespace, infrav1.VCDClusterSpec{
		IdentityRef: infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "shared"},
	})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.reason).To(Equal(infrav1.NamespaceNotAllowedReason))
	g.Expect(out.after).To(Equal(remedyPoll), "no watch sees the labels of a Namespace change")
}

func TestABundleReplacesTheSystemsRoots(t *testing.T) {
	g := NewWithT(t)
	identity := infrav1.VCDIdentitySpec{TLS: infrav1.IdentityTLS{CABundle: "one\n", InsecureSkipVerify: ptr.To(false)}}

	config := configFor(identity, &corev1.Secret{Data: map[string][]byte{infrav1.SecretCABundle: []byte("two")}})

	g.Expect(string(config.CABundle)).To(Equal("one\ntwo\n"))
	g.Expect(configFor(infrav1.VCDIdentitySpec{}, &corev1.Secret{}).CABundle).To(BeNil(), "no bundle is the system's")
}
