package controllers

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

const accountLogin = "POST /oauth/tenant/token"

// newAccountWorld makes a world whose cluster logs in as a service account.
func newAccountWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, objects...)
	w.useAccount(w.newToken(t, "manager"))
	return w
}

// newToken grants a service account, and returns its first token.
func (w *world) newToken(t *testing.T, name string) string {
	t.Helper()
	return vcdsimtest.ServiceAccount(t, w.sim, name, vcdsim.RoleClusterAuthor)
}

// useAccount makes the identity that of a service account with a token.
func (w *world) useAccount(token string) {
	i := &infrav1.VCDIdentity{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "tenant"}, i)).To(Succeed())
	i.Spec.Type = infrav1.CredentialServiceAccount
	w.Expect(w.client.Update(w.ctx, i)).To(Succeed())
	w.writeToken(token)
}

// writeToken is what a person does who writes a token into the Secret: they leave alone what else is there.
func (w *world) writeToken(token string) {
	secret := w.secret("tenant-credentials")
	secret.Data = map[string][]byte{"apiToken": []byte(token), "ca.crt": w.sim.CA()}
	w.Expect(w.client.Update(w.ctx, secret)).To(Succeed())
}

func (w *world) token() string { return string(w.secret("tenant-credentials").Data["apiToken"]) }

// accountLogins counts the logins as a service account, tried ones too.
func (w *world) accountLogins() int { return w.sim.Counters()[accountLogin] }

func (w *world) expireSessions() { w.sim.Edit(func(e *vcdsim.Editor) { e.ExpireSessions() }) }

// afterAWhile is when sessions try again after what went wrong.
func (w *world) afterAWhile() { w.clock.Add(int64(loginPoll)) }

func TestAClusterLogsInAsAServiceAccount(t *testing.T) {
	w := newAccountWorld(t, testMachine("m1")...)
	first := w.token()
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("m1", clusterv1.ReadyCondition, infrav1.ReadyReason)
	version, before := w.vcdCluster().Annotations[infrav1.CredentialsAcceptedAnnotation], w.accountLogins()

	seen := map[string]bool{first: true, w.token(): true}
	for range 5 {
		w.expireSessions()
		w.eventuallyMachine("m1", clusterv1.ReadyCondition, infrav1.ReadyReason)
		w.afterAWhile()
		w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
		seen[w.token()] = true
	}

	w.Expect(w.accountLogins()).To(BeNumerically("~", before+5, 1), "our own change of the token is no reason to log in again")
	w.Expect(len(seen)).To(BeNumerically(">=", 6), "each login gives another token")
	w.Expect(w.vcdCluster().Annotations).To(HaveKeyWithValue(infrav1.CredentialsAcceptedAnnotation, version))
	w.restart(t, events.NewFakeRecorder(1000))
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	secret := w.secret("tenant-credentials")
	w.Expect(secret.Data).To(HaveKeyWithValue("ca.crt", w.sim.CA()))
	for token := range seen {
		w.Expect(secret.Annotations[infrav1.TokenChainAnnotation]).NotTo(ContainSubstring(token))
	}
	chain, _ := chainOf(secret)
	w.Expect(chain).To(Equal(tokenChain{Holder: managerHolds, First: fingerprint(first), Last: fingerprint(w.token())}))
}

func TestATokenThatAPersonReplacesIsUsedAtOnce(t *testing.T) {
	w := newAccountWorld(t)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	replaced, before := w.token(), w.accountLogins()

	w.writeToken("mistyped")
	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CredentialsRefusedReason)
	for range 5 {
		result, err := w.reconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(result.RequeueAfter).To(BeNumerically("<", time.Minute), "somebody else may write the next token down")
	}
	w.Expect(w.accountLogins()).To(Equal(before+1), "a token that was refused is tried once")
	w.Expect(conditions.GetMessage(w.vcdCluster(), infrav1.IdentityReadyCondition)).NotTo(ContainSubstring("mistyped"))

	w.writeToken(replaced)
	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.ReadyReason)

	another := w.newToken(t, "another")
	w.writeToken(another)
	before = w.accountLogins()
	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.ReadyReason)
	w.Expect(w.accountLogins()).To(Equal(before+1), "what a person writes is logged in with, although the session before still works")
	w.Expect(w.token()).NotTo(Equal(another))
}

func TestTheFirstTokenComesBack(t *testing.T) {
	w := newAccountWorld(t)
	first := w.token()
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	last, before := w.token(), w.accountLogins()

	w.writeToken(first) // as a program does that holds the Secret against a repository
	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.TokenOutdatedReason)
	w.expireSessions()
	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.TokenOutdatedReason)
	w.Expect(w.accountLogins()).To(Equal(before), "a token that VCD has replaced is never tried")

	w.writeToken(last)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestTheAnswerToALoginIsLost(t *testing.T) {
	w := newAccountWorld(t)
	w.sim.Faults().Add(vcdsim.Fault{Operation: accountLogin, DropAfter: true, Count: 1})

	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.SiteUnreachableReason)
	w.afterAWhile()
	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.CredentialsRefusedReason)
	w.Expect(conditions.GetMessage(w.vcdCluster(), infrav1.IdentityReadyCondition)).To(ContainSubstring("grant it anew"))

	w.writeToken(w.newToken(t, "manager-again"))
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

// refuseWrites makes writes of the credentials fail while refuse says why.
func (w *world) refuseWrites(t *testing.T, refuse func(*corev1.Secret) error) {
	t.Helper()
	watched, ok := w.client.(client.WithWatch)
	w.Expect(ok).To(BeTrue())
	w.client = interceptor.NewClient(watched, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if secret, ok := obj.(*corev1.Secret); ok && obj.GetName() == "tenant-credentials" {
				if err := refuse(secret); err != nil {
					return err
				}
			}
			return c.Update(ctx, obj, opts...)
		},
	})
	w.restart(t, events.NewFakeRecorder(1000))
}

func TestNobodyLogsInWhileTheNextTokenCannotBeWritten(t *testing.T) {
	w := newAccountWorld(t)
	first := w.token()
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "tenant-credentials", errors.New("no right"))
	w.refuseWrites(t, func(*corev1.Secret) error {
		if refusal != nil {
			return refusal
		}
		return nil
	})

	w.eventuallyCluster(infrav1.IdentityReadyCondition, infrav1.TokenNotWritableReason)
	w.Expect(w.accountLogins()).To(Equal(1), "but for the grant itself")

	refusal = nil
	w.afterAWhile()
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.token()).NotTo(Equal(first))
}

func TestATokenIsWrittenAlthoughSomebodyElseWritesTheSecret(t *testing.T) {
	w := newAccountWorld(t)
	conflicts := 3
	w.refuseWrites(t, func(*corev1.Secret) error {
		if conflicts--; conflicts >= 0 {
			return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "tenant-credentials", nil)
		}
		return nil
	})

	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.expireSessions()
	w.restart(t, events.NewFakeRecorder(1000))
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

// pauseCluster pauses the Cluster, or goes on.
func (w *world) pauseCluster(paused bool) {
	cluster := testCAPICluster()
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
	cluster.Spec.Paused = ptr.To(paused)
	w.Expect(w.client.Update(w.ctx, cluster)).To(Succeed())
}

func TestNobodyLogsInForPausedClusters(t *testing.T) {
	w := newAccountWorld(t)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	s, _, err := w.cluster.Identities.open(w.ctx, w.cluster.Sessions, w.vcdCluster())
	w.Expect(err).NotTo(HaveOccurred())
	token, before := w.token(), w.accountLogins()

	w.pauseCluster(true)
	w.expireSessions()
	_, err = s.FindTemplate(w.ctx, "kubernetes", "ubuntu-2404-kube-v1.36.3")

	w.Expect(err).To(MatchError(ContainSubstring("are paused")), "what goes on in the background, too")
	w.Expect(w.token()).To(Equal(token), "what moves to another management cluster is the last token")
	w.Expect(w.accountLogins()).To(Equal(before))
	w.pauseCluster(false)
	w.afterAWhile()
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.accountLogins()).To(Equal(before + 1))
}

func TestSeveralNamespacesUseAServiceAccount(t *testing.T) {
	w := newWorld(t)
	wide := &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "wide"}}
	wide.Spec.Site, wide.Spec.SecretRef.Name, wide.Spec.Type, wide.Spec.Orgs = w.sim.URL(), "wide", infrav1.CredentialServiceAccount, []string{"acme"}
	wide.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{List: []string{testNamespace}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "capvcd-system", Name: "wide", UID: "uid-of-wide"}, Data: map[string][]byte{
		"refreshToken": []byte(w.newToken(t, "wide")), "ca.crt": w.sim.CA(),
	}}
	w.Expect(w.client.Create(w.ctx, wide)).To(Succeed())
	w.Expect(w.client.Create(w.ctx, secret)).To(Succeed())
	c := w.vcdCluster()
	c.Spec.IdentityRef = infrav1.IdentityReference{Kind: infrav1.ClusterIdentity, Name: "wide"}
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	before := string(secret.Data["refreshToken"])

	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	w.Expect(string(secret.Data["refreshToken"])).NotTo(Equal(before), "the token is written where it was")
	w.Expect(secret.Data).NotTo(HaveKey("apiToken"))
}

func TestTheSessionOfAServiceAccountEndsWithItsIdentity(t *testing.T) {
	w := newAccountWorld(t)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.identify("tenant")
	w.deleteCluster()
	i := testIdentity(w.sim.URL())
	w.Expect(w.client.Delete(w.ctx, i)).To(Succeed())

	w.identify("tenant")

	w.Eventually(func() int { return w.sim.Counters()["DELETE /api/session"] }, patience, "5ms").Should(Equal(1))
}

// held says whether clusterctl has to wait with the Secret.
func (w *world) held() bool {
	_, held := w.secret("tenant-credentials").Annotations[clusterctlv1.BlockMoveAnnotation]
	return held
}

func TestATokenMovesWhenNobodyLogsInAnyMore(t *testing.T) {
	w := newAccountWorld(t)
	held := func() bool {
		w.identify("tenant")
		return w.held()
	}
	w.Expect(held()).To(BeFalse(), "nobody has used the token")
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(held()).To(BeTrue())

	w.pauseCluster(true)
	w.Expect(held()).To(BeFalse())
	w.pauseCluster(false)
	w.Expect(held()).To(BeTrue())

	i := testIdentity("")
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(i), i)).To(Succeed())
	i.Spec.Type = infrav1.CredentialUser
	w.Expect(w.client.Update(w.ctx, i)).To(Succeed())
	w.Expect(held()).To(BeFalse(), "a user's token stays the same")
}

func TestATokenThatIsNotWrittenDownDoesNotMove(t *testing.T) {
	w := newAccountWorld(t)
	first, written := w.token(), true
	w.refuseWrites(t, func(secret *corev1.Secret) error {
		if !written && string(secret.Data["apiToken"]) != first {
			return errors.New("no API server")
		}
		return nil
	})
	written = false
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.identify("tenant")
	w.Expect(w.held()).To(BeTrue())
	w.pauseCluster(true)

	key := client.ObjectKey{Namespace: testNamespace, Name: "tenant"}
	_, err := reconcile.AsReconciler(w.client, w.identity).Reconcile(w.ctx, reconcile.Request{NamespacedName: key})
	w.Expect(err).To(MatchError(ContainSubstring("no API server")))
	w.Expect(w.held()).To(BeTrue())

	written = true
	w.identify("tenant")
	w.Expect(w.held()).To(BeFalse())
	w.Expect(w.token()).NotTo(Equal(first))
}
