package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// identify reconciles a VCDIdentity a few times.
func (w *world) identify(name string) {
	key := client.ObjectKey{Namespace: testNamespace, Name: name}
	for range 4 {
		_, err := reconcile.AsReconciler(w.client, w.identity).Reconcile(w.ctx, reconcile.Request{NamespacedName: key})
		w.Expect(err).NotTo(HaveOccurred())
	}
}

func (w *world) secret(name string) *corev1.Secret {
	secret := &corev1.Secret{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: name}, secret)).To(Succeed())
	return secret
}

func (w *world) referTo(identity, secret string) {
	i := &infrav1.VCDIdentity{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: identity}, i)).To(Succeed())
	i.Spec.SecretRef.Name = secret
	w.Expect(w.client.Update(w.ctx, i)).To(Succeed())
}

func TestIdentityReleasesTheSecretItNoLongerRefersTo(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"next", "not-there-yet"} {
		t.Run(next, func(t *testing.T) {
			w := newWorld(t)
			other := testSecret(w.sim)
			other.ObjectMeta = meta("next")
			w.Expect(w.client.Create(w.ctx, other)).To(Succeed())
			w.identify("tenant")
			w.Expect(w.secret("tenant-credentials").Finalizers).To(ContainElement(infrav1.SecretFinalizer))

			w.referTo("tenant", next)
			w.identify("tenant")

			old := w.secret("tenant-credentials")
			w.Expect(old.Finalizers).To(BeEmpty())
			w.Expect(old.OwnerReferences).To(BeEmpty())
			w.Expect(w.client.Delete(w.ctx, old)).To(Succeed())
			w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(old), old)).NotTo(Succeed())
		})
	}
}

func TestSharedSecretStaysUntilTheLastIdentityGoes(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"refers to another", "is deleted"} {
		t.Run("the first "+how, func(t *testing.T) {
			w := newWorld(t)
			second := testIdentity(w.sim.URL())
			second.ObjectMeta = meta("second")
			w.Expect(w.client.Create(w.ctx, second)).To(Succeed())
			w.identify("tenant")
			w.identify("second")
			w.Expect(w.secret("tenant-credentials").OwnerReferences).To(HaveLen(2))

			if how == "refers to another" {
				w.referTo("second", "another")
			} else {
				w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(second), second)).To(Succeed())
				w.Expect(w.client.Delete(w.ctx, second)).To(Succeed())
			}
			w.identify("second")

			secret := w.secret("tenant-credentials")
			w.Expect(secret.Finalizers).To(ContainElement(infrav1.SecretFinalizer))
			w.Expect(secret.OwnerReferences).To(ConsistOf(HaveField("Name", "tenant")))

			w.deleteCluster()
			first := testIdentity(w.sim.URL())
			w.Expect(w.client.Delete(w.ctx, first)).To(Succeed())
			w.identify("tenant")
			w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(first), first)).NotTo(Succeed())
			w.Expect(w.secret("tenant-credentials").Finalizers).To(BeEmpty())
		})
	}
}
