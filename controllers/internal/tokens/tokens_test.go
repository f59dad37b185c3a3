// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/tokens"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// newAccountEnv returns an environment whose cluster logs in as a service account.
func newAccountEnv(t *testing.T, objects ...client.Object) *controllertest.Env {
	t.Helper()
	w := controllertest.New(t, objects...)
	w.UseAccount(w.NewToken(t, "manager"))
	return w
}

func expireSessions(w *controllertest.Env) { w.Sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() }) }

// skipLoginPause advances the clock until sessions retry after a failure.
func skipLoginPause(w *controllertest.Env) { w.Clock.Add(int64(10 * time.Minute)) }

func TestAClusterLogsInAsAServiceAccount(t *testing.T) {
	w := newAccountEnv(t, controllertest.NewMachine("m1")...)
	first := w.Token()
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("m1", clusterv1.ReadyCondition, infrav1.ReadyReason)
	version := w.VCDCluster().Spec.RecordedState.CredentialsAccepted
	before := w.AccountLogins()

	seen := map[string]bool{first: true, w.Token(): true}
	for range 5 {
		expireSessions(w)
		w.EventuallyMachine("m1", clusterv1.ReadyCondition, infrav1.ReadyReason)
		skipLoginPause(w)
		w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
		seen[w.Token()] = true
	}

	w.Expect(w.AccountLogins()).To(BeNumerically("~", before+5, 1),
		"the manager's change of the token causes no new login")
	w.Expect(len(seen)).To(BeNumerically(">=", 6), "each login returns a new token")
	w.Expect(w.VCDCluster().Spec.RecordedState.CredentialsAccepted).To(Equal(version))
	w.Restart(t, events.NewFakeRecorder(1000))
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	secret := w.Secret("tenant-credentials")
	w.Expect(secret.Data).To(HaveKeyWithValue("ca.crt", w.Sim.CA()))
	for token := range seen {
		w.Expect(secret.Annotations[infrav1.TokenChainAnnotation]).NotTo(ContainSubstring(token))
	}
	chain, _ := tokens.ChainOf(secret)
	w.Expect(chain).To(Equal(tokens.Chain{
		Holder: tokens.Manager,
		First:  tokens.Fingerprint(first),
		Last:   tokens.Fingerprint(w.Token()),
	}))
}

func TestAManuallyReplacedTokenIsUsedAtOnce(t *testing.T) {
	w := newAccountEnv(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	replaced := w.Token()
	before := w.AccountLogins()

	w.WriteToken("mistyped")
	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CredentialsRejectedReason)
	for range 5 {
		result, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(result.RequeueAfter).To(BeNumerically("<", time.Minute), "another process may store the next token")
	}
	w.Expect(w.AccountLogins()).To(Equal(before+1), "a rejected token is tried once")
	w.Expect(conditions.GetMessage(w.VCDCluster(), infrav1.IdentityReadyCondition)).NotTo(ContainSubstring("mistyped"))

	w.WriteToken(replaced)
	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.ReadyReason)

	another := w.NewToken(t, "another")
	w.WriteToken(another)
	before = w.AccountLogins()
	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.ReadyReason)
	w.Expect(w.AccountLogins()).To(Equal(before+1),
		"a user's token is used to log in, although the previous session still works")
	w.Expect(w.Token()).NotTo(Equal(another))
}

func TestTheFirstTokenIsRestored(t *testing.T) {
	w := newAccountEnv(t)
	first := w.Token()
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	last := w.Token()
	before := w.AccountLogins()

	w.WriteToken(first) // as a GitOps tool does that compares the Secret with a repository
	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.TokenOutdatedReason)
	expireSessions(w)
	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.TokenOutdatedReason)
	w.Expect(w.AccountLogins()).To(Equal(before), "a token replaced by VCD is never tried")

	w.WriteToken(last)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestALostLoginResponse(t *testing.T) {
	w := newAccountEnv(t)
	w.Sim.Faults().Add(vcdsim.Fault{Operation: controllertest.AccountLogin, DropAfter: true, Count: 1})

	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.SiteUnreachableReason)
	skipLoginPause(w)
	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CredentialsRejectedReason)
	w.Expect(conditions.GetMessage(w.VCDCluster(),
		infrav1.IdentityReadyCondition)).To(ContainSubstring("grant the service account again"))

	w.WriteToken(w.NewToken(t, "manager-again"))
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

// refuseWrites makes writes of the credentials fail while refuse returns an error.
func refuseWrites(t *testing.T, w *controllertest.Env, refuse func(*corev1.Secret) error) {
	t.Helper()
	watched, ok := w.Client.(client.WithWatch)
	w.Expect(ok).To(BeTrue())
	w.Client = interceptor.NewClient(watched, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if secret, ok := obj.(*corev1.Secret); ok && obj.GetName() == "tenant-credentials" {
				if err := refuse(secret); err != nil {
					return err
				}
			}
			return c.Update(ctx, obj, opts...)
		},
	})
	w.Restart(t, events.NewFakeRecorder(1000))
}

func TestNoLoginWhileTheNextTokenCannotBeSaved(t *testing.T) {
	w := newAccountEnv(t)
	first := w.Token()
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "tenant-credentials",
		errors.New("no right"))
	refuseWrites(t, w, func(*corev1.Secret) error {
		if refusal != nil {
			return refusal
		}
		return nil
	})

	w.EventuallyCluster(infrav1.IdentityReadyCondition, infrav1.TokenNotWritableReason)
	w.Expect(w.AccountLogins()).To(Equal(1), "except for the grant itself")

	refusal = nil
	skipLoginPause(w)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.Token()).NotTo(Equal(first))
}

func TestATokenIsSavedDespiteConcurrentWritesToTheSecret(t *testing.T) {
	w := newAccountEnv(t)
	conflicts := 3
	refuseWrites(t, w, func(*corev1.Secret) error {
		if conflicts--; conflicts >= 0 {
			return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "tenant-credentials", nil)
		}
		return nil
	})

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	expireSessions(w)
	w.Restart(t, events.NewFakeRecorder(1000))
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

// pauseCluster pauses or unpauses the Cluster.
func pauseCluster(w *controllertest.Env, paused bool) {
	cluster := controllertest.NewCAPICluster()
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
	cluster.Spec.Paused = ptr.To(paused)
	w.Expect(w.Client.Update(w.Ctx, cluster)).To(Succeed())
}

func TestNoLoginForPausedClusters(t *testing.T) {
	w := newAccountEnv(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	s, _, err := w.Cluster.Identities.Open(w.Ctx, w.Cluster.Sessions, w.VCDCluster())
	w.Expect(err).NotTo(HaveOccurred())
	token := w.Token()
	before := w.AccountLogins()

	pauseCluster(w, true)
	expireSessions(w)
	_, err = s.FindTemplate(w.Ctx, "kubernetes", "ubuntu-2404-kube-v1.36.3")

	w.Expect(err).To(MatchError(ContainSubstring("are paused")), "including background work")
	w.Expect(w.Token()).To(Equal(token), "the last token moves to the other management cluster")
	w.Expect(w.AccountLogins()).To(Equal(before))
	pauseCluster(w, false)
	skipLoginPause(w)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.AccountLogins()).To(Equal(before + 1))
}

func TestSeveralNamespacesUseAServiceAccount(t *testing.T) {
	w := controllertest.New(t)
	wide := &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "wide"}}
	wide.Spec.Site = w.Sim.URL()
	wide.Spec.SecretRef.Name = "wide"
	wide.Spec.Type = infrav1.CredentialServiceAccount
	wide.Spec.Orgs = []string{"acme"}
	wide.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{List: []string{controllertest.Namespace}}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "capvcd-system",
			Name:      "wide",
			UID:       "uid-of-wide",
		},
		Data: map[string][]byte{
			"refreshToken": []byte(w.NewToken(t, "wide")),
			"ca.crt":       w.Sim.CA(),
		},
	}
	w.Expect(w.Client.Create(w.Ctx, wide)).To(Succeed())
	w.Expect(w.Client.Create(w.Ctx, secret)).To(Succeed())
	c := w.VCDCluster()
	c.Spec.IdentityRef = infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "wide"}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	before := string(secret.Data["refreshToken"])

	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	w.Expect(string(secret.Data["refreshToken"])).NotTo(Equal(before), "the token is written to its original Secret")
	w.Expect(secret.Data).NotTo(HaveKey("apiToken"))
}

func TestTheSessionOfAServiceAccountEndsWithItsIdentity(t *testing.T) {
	w := newAccountEnv(t)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Identify("tenant")
	w.DeleteCluster()
	i := controllertest.NewIdentity(w.Sim.URL())
	w.Expect(w.Client.Delete(w.Ctx, i)).To(Succeed())

	w.Identify("tenant")

	w.Eventually(func() int { return w.Sim.Counters()["DELETE /api/session"] }, controllertest.Patience,
		"5ms").Should(Equal(1))
}

// held reports whether clusterctl has to wait for the Secret.
func held(w *controllertest.Env) bool {
	_, held := w.Secret("tenant-credentials").Annotations[clusterctlv1.BlockMoveAnnotation]
	return held
}

func TestATokenMovesOnceNoClusterCanLogIn(t *testing.T) {
	w := newAccountEnv(t)
	held := func() bool {
		w.Identify("tenant")
		return held(w)
	}
	w.Expect(held()).To(BeFalse(), "the token is unused")
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(held()).To(BeTrue())

	pauseCluster(w, true)
	w.Expect(held()).To(BeFalse())
	pauseCluster(w, false)
	w.Expect(held()).To(BeTrue())

	i := controllertest.NewIdentity("")
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(i), i)).To(Succeed())
	i.Spec.Type = infrav1.CredentialUser
	w.Expect(w.Client.Update(w.Ctx, i)).To(Succeed())
	w.Expect(held()).To(BeFalse(), "a user's token stays the same")
}

func TestAnUnsavedTokenDoesNotMove(t *testing.T) {
	w := newAccountEnv(t)
	first := w.Token()
	written := true
	refuseWrites(t, w, func(secret *corev1.Secret) error {
		if !written && string(secret.Data["apiToken"]) != first {
			return errors.New("no API server")
		}
		return nil
	})
	written = false
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Identify("tenant")
	w.Expect(held(w)).To(BeTrue())
	pauseCluster(w, true)

	key := client.ObjectKey{Namespace: controllertest.Namespace, Name: "tenant"}
	_, err := reconcile.AsReconciler(w.Client, w.Identity).Reconcile(w.Ctx, reconcile.Request{NamespacedName: key})
	w.Expect(err).To(MatchError(ContainSubstring("no API server")))
	w.Expect(held(w)).To(BeTrue())

	written = true
	w.Identify("tenant")
	w.Expect(held(w)).To(BeFalse())
	w.Expect(w.Token()).NotTo(Equal(first))
}

// TestACacheOfOneNamespaceIsEnough logs in with a VCDClusterIdentity whose Secret is in a namespace outside the cache.
func TestACacheOfOneNamespaceIsEnough(t *testing.T) {
	g := NewWithT(t)
	all := controllertest.NewClient()
	cache := interceptor.NewClient(all.(client.WithWatch), interceptor.Funcs{
		List: func(
			ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption,
		) error {
			in := (&client.ListOptions{}).ApplyOptions(opts).Namespace
			if in != "" && in != controllertest.Namespace {
				return errors.New("unknown namespace for the cache")
			}
			return c.List(ctx, list, opts...)
		},
	})
	api := tokens.API{Client: cache, Live: all, Namespace: "capvcd-system"}

	users, err := api.UsersOf(t.Context(), client.ObjectKey{Namespace: "capvcd-system", Name: "shared"})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(users).To(Equal(tokens.Users{}))
}

// TestUsersOf counts the possible users of a Secret: a move must not find its token spent.
func TestUsersOf(t *testing.T) {
	paused := map[string]string{clusterv1.PausedAnnotation: ""}
	cluster := func(name, identity string, annotations map[string]string) client.Object {
		c := &infrav1.VCDCluster{ObjectMeta: controllertest.Meta(name)}
		c.Annotations = annotations
		c.Spec.IdentityRef.Name = identity
		return c
	}
	zone := func(name, identity string, annotations map[string]string) client.Object {
		z := &infrav1.VCDDeploymentZone{ObjectMeta: controllertest.Meta(name)}
		z.Annotations = annotations
		z.Spec.IdentityRef.Name = identity
		return z
	}
	for _, tc := range []struct {
		name    string
		objects []client.Object
		users   tokens.Users
	}{
		{
			name: "an identity without users is neither active nor paused",
		},
		{
			name:    "a cluster with another identity does not count",
			objects: []client.Object{cluster("c", "other", nil)},
		},
		{
			name:    "a cluster is a user",
			objects: []client.Object{cluster("c", "mine", nil), cluster("d", "mine", paused)},
			users:   tokens.Users{Active: 1, Paused: 1},
		},
		{
			name:    "a zone without clusters is active",
			objects: []client.Object{zone("z", "mine", nil)},
			users:   tokens.Users{Active: 1},
		},
		{
			name:    "a zone is active as long as one cluster of its namespace is",
			objects: []client.Object{zone("z", "mine", nil), cluster("c", "other", nil), cluster("d", "other", paused)},
			users:   tokens.Users{Active: 1},
		},
		{
			name:    "a zone is paused with the clusters that move",
			objects: []client.Object{zone("z", "mine", nil), cluster("c", "other", paused)},
			users:   tokens.Users{Paused: 1},
		},
		{
			name:    "a zone can be paused",
			objects: []client.Object{zone("z", "mine", paused)},
			users:   tokens.Users{Paused: 1},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			identity := &infrav1.VCDIdentity{ObjectMeta: controllertest.Meta("mine")}
			identity.Spec.SecretRef.Name = "token"
			all := controllertest.NewClient(append(tc.objects, identity)...)
			api := tokens.API{Client: all, Live: all, Namespace: "capvcd-system"}

			users, err := api.UsersOf(t.Context(),
				client.ObjectKey{Namespace: controllertest.Namespace, Name: "token"})

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(users).To(Equal(tc.users))
		})
	}
}
