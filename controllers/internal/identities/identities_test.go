// SPDX-License-Identifier: Apache-2.0

package identities_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// sharedIdentity returns a VCDClusterIdentity that allows the tests' namespace, with its Secret.
func sharedIdentity(site string, orgs ...string) []client.Object {
	i := &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	i.Spec.Site = site
	i.Spec.Orgs = orgs
	i.Spec.SecretRef.Name = "s"
	i.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{List: []string{controllertest.Namespace}}
	return []client.Object{
		i,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "capvcd-system", Name: "s"},
			Data:       map[string][]byte{"apiToken": []byte("t")},
		},
	}
}

func TestAnIdentityIsOnlyForItsSite(t *testing.T) {
	tests := []struct {
		name, identity, cluster, want string
	}{
		{name: "the same site", identity: "https://vcd.example.com", cluster: "https://vcd.example.com"},
		{name: "a trailing slash in either", identity: "https://vcd.example.com", cluster: "https://vcd.example.com/"},
		{name: "host names are case-insensitive", identity: "https://VCD.example.com", cluster: "https://vcd.Example.com"},
		{name: "the port of https may be said", identity: "https://vcd.example.com", cluster: "https://vcd.example.com:443"},
		{name: "another host", identity: "https://vcd.example.com", cluster: "https://evil.example.com", want: infrav1.SiteNotAllowedReason},
		{
			name:     "a host with the same prefix",
			identity: "https://vcd.example.com",
			cluster:  "https://vcd.example.com.evil.example",
			want:     infrav1.SiteNotAllowedReason,
		},
		{
			name:     "a host with the same suffix",
			identity: "https://vcd.example.com",
			cluster:  "https://evilvcd.example.com",
			want:     infrav1.SiteNotAllowedReason,
		},
		{
			name:     "a host after a user name",
			identity: "https://vcd.example.com",
			cluster:  "https://vcd.example.com@evil.example",
			want:     infrav1.SiteNotAllowedReason,
		},
		{name: "another port", identity: "https://vcd.example.com", cluster: "https://vcd.example.com:8443", want: infrav1.SiteNotAllowedReason},
		{name: "without TLS", identity: "https://vcd.example.com", cluster: "http://vcd.example.com:443", want: infrav1.SiteNotAllowedReason},
		{name: "an invalid URL", identity: "https://vcd.example.com", cluster: "https://vcd.example.com:%", want: infrav1.SiteNotAllowedReason},
		{name: "an identity from before the site field", cluster: "https://vcd.example.com", want: infrav1.SiteNotAllowedReason},
		{name: "two empty sites are not the same", want: infrav1.SiteNotAllowedReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := controllertest.NewClient(sharedIdentity(tt.identity, "acme")...)

			config, out, err := identities.Resolver{Client: c, Live: c, Namespace: "capvcd-system"}.Resolve(t.Context(),
				controllertest.Namespace, infrav1.VCDClusterSpec{
					Site:        tt.cluster,
					Org:         "acme",
					IdentityRef: infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "shared"},
				})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.Reason).To(Equal(tt.want))
			if tt.want == "" {
				g.Expect(config.Site).To(Equal(tt.identity), "credentials are sent to the identity's site")
				return
			}
			g.Expect(out.Message).To(And(ContainSubstring("spec.site of VCDClusterIdentity shared"),
				ContainSubstring("spec.site of the VCDCluster")))
			g.Expect(config.Credentials).To(BeZero())
		})
	}
}

func TestAClusterIdentityIsOnlyForItsOrganizations(t *testing.T) {
	const site = "https://vcd.example.com"
	tests := []struct {
		name string
		orgs []string
		want string
	}{
		{"the same organization", []string{"acme"}, ""},
		{"one of several organizations", []string{"other", "acme"}, ""},
		{"any", []string{infrav1.AnyOrg}, ""},
		{"another", []string{"other"}, infrav1.OrgNotAllowedReason},
		{"no pattern except any", []string{"ac*"}, infrav1.OrgNotAllowedReason},
		{"an identity from before the organizations field", nil, infrav1.OrgNotAllowedReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := controllertest.NewClient(sharedIdentity(site, tt.orgs...)...)

			_, out, err := identities.Resolver{Client: c, Live: c, Namespace: "capvcd-system"}.Resolve(t.Context(),
				controllertest.Namespace, infrav1.VCDClusterSpec{
					Site:        site,
					Org:         "acme",
					IdentityRef: infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "shared"},
				})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.Reason).To(Equal(tt.want))
			if tt.want != "" {
				g.Expect(out.Message).To(And(ContainSubstring("spec.orgs of VCDClusterIdentity shared"),
					ContainSubstring("spec.org of the VCDCluster")))
			}
		})
	}
}

func TestASecretIsNotReadForAnotherSite(t *testing.T) {
	w := controllertest.New(t)
	c := w.VCDCluster()
	c.Spec.Site = "https://evil.example.com"
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, controllertest.NewSecret(w.Sim))).To(Succeed())

	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.SiteNotAllowedReason)

	w.Expect(w.Sim.Requests()).To(BeEmpty())
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring(infrav1.SiteNotAllowedReason)))

	c = w.VCDCluster()
	c.Spec.Site = w.Sim.URL()
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.SecretNotFoundReason)
}

func TestASiteThatDoesNotRespond(t *testing.T) {
	w := controllertest.New(t)
	moveTo := func(site string) {
		i := controllertest.NewIdentity("")
		c := w.VCDCluster()
		w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(i), i)).To(Succeed())
		i.Spec.Site = site
		c.Spec.Site = site
		w.Expect(w.Client.Update(w.Ctx, i)).To(Succeed())
		w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	}
	moveTo("https://127.0.0.1:1")

	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.SiteUnreachableReason)

	w.Expect(conditions.GetMessage(w.VCDCluster(), infrav1.IdentityReadyCondition)).To(ContainSubstring("spec.site"))
	moveTo(w.Sim.URL())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestNarrowingAnIdentityStopsItsMachines(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("m1")...)
	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.ReadyReason)
	i := controllertest.NewIdentity(w.Sim.URL())
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(i), i)).To(Succeed())
	i.Spec.Site = "https://other.example.com"
	w.Expect(w.Client.Update(w.Ctx, i)).To(Succeed())
	before := len(w.Sim.Requests())

	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("m1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conditions.GetReason(w.VCDMachine("m1"),
			infrav1.PlacementReadyCondition)).To(Equal(infrav1.SiteNotAllowedReason))
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Expect(w.Sim.Requests()).To(HaveLen(before))
}

func TestADisallowedNamespaceIsCheckedAgain(t *testing.T) {
	g := NewWithT(t)
	i := &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	i.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	c := controllertest.NewClient(i, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllertest.Namespace}})

	_, out, err := identities.Resolver{Client: c, Live: c}.Resolve(t.Context(), controllertest.Namespace,
		infrav1.VCDClusterSpec{
			IdentityRef: infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "shared"},
		})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.Reason).To(Equal(infrav1.NamespaceNotAllowedReason))
	g.Expect(out.After).To(Equal(intervals.Remedy), "no watch notices changed labels of a Namespace")
}

func TestCredentialsThatWorkedBeforeARestartAreRetried(t *testing.T) {
	w := controllertest.New(t)
	w.Ready()
	password := func(password string) {
		w.Sim.Edit(func(e *vcdsim.Editor) {
			e.SetPassword("acme", "capvcd", password)
			e.ExpireSessions()
		})
	}
	password("the directory behind VCD is away")
	w.Restart(t, events.NewFakeRecorder(100))
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.CredentialsRejectedReason)
	password("password")
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.ReadyCondition)).To(BeFalse(), "it is too early")

	w.Clock.Store(int64(11 * time.Minute))

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestClusterIdentityIsOnlyForItsNamespaces(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	tests := []struct {
		name    string
		allowed *infrav1.AllowedNamespaces
		want    string
	}{
		{name: "no namespace is allowed by default", want: infrav1.NamespaceNotAllowedReason},
		{name: "an empty list allows no namespace", allowed: &infrav1.AllowedNamespaces{}, want: infrav1.NamespaceNotAllowedReason},
		{
			name:    "another namespace is not allowed",
			allowed: &infrav1.AllowedNamespaces{List: []string{"team-b"}},
			want:    infrav1.NamespaceNotAllowedReason,
		},
		{name: "a listed namespace", allowed: &infrav1.AllowedNamespaces{List: []string{controllertest.Namespace}}},
		{name: "a selected namespace", allowed: &infrav1.AllowedNamespaces{Selector: selector}},
		{name: "an empty selector allows all namespaces", allowed: &infrav1.AllowedNamespaces{Selector: &metav1.LabelSelector{}}},
		{
			name: "an invalid selector allows no namespace",
			allowed: &infrav1.AllowedNamespaces{Selector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Nonsense"}},
			}},
			want: infrav1.NamespaceNotAllowedReason,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			identity := &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
			identity.Spec.Site = "https://vcd.example.com"
			identity.Spec.Orgs = []string{infrav1.AnyOrg}
			identity.Spec.SecretRef.Name = "s"
			identity.Spec.AllowedNamespaces = tt.allowed
			c := controllertest.NewClient(identity,
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Name:   controllertest.Namespace,
					Labels: map[string]string{"team": "a"},
				}},
				&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "capvcd-system", Name: "s"},
					Data:       map[string][]byte{"apiToken": []byte("t\n")},
				},
			)

			config, out, err := identities.Resolver{Client: c, Live: c, Namespace: "capvcd-system"}.Resolve(t.Context(),
				controllertest.Namespace, infrav1.VCDClusterSpec{
					Site:        "https://vcd.example.com/",
					IdentityRef: infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "shared"},
				})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.Reason).To(Equal(tt.want))
			if tt.want == "" {
				g.Expect(config.Credentials.APIToken).To(Equal("t"))
				g.Expect(config.Site).To(Equal("https://vcd.example.com"))
			}
		})
	}
}

// TestMachinesNoticeAShortGapInCredentials deletes a Secret, and recreates it before its cluster notices. No watch
// triggers a reconcile of the machine that noticed.
func TestMachinesNoticeAShortGapInCredentials(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("m1")...)
	w.Ready("m1")
	secret := w.Secret("tenant-credentials")
	secret.Finalizers = nil
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, secret)).To(Succeed())
	w.EventuallyMachine("m1", clusterv1.ReadyCondition, infrav1.SecretNotFoundReason)

	result, err := w.ReconcileMachine("m1")

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", 2*time.Minute)))
}
