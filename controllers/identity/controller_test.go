// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
)

func referTo(w *controllertest.Env, identity, secret string) {
	i := &infrav1.VCDIdentity{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: identity},
		i)).To(Succeed())
	i.Spec.SecretRef.Name = secret
	w.Expect(w.Client.Update(w.Ctx, i)).To(Succeed())
}

func TestIdentityReleasesASecretItNoLongerReferences(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"next", "not-there-yet"} {
		t.Run(next, func(t *testing.T) {
			w := controllertest.New(t)
			other := controllertest.NewSecret(w.Sim)
			other.ObjectMeta = controllertest.Meta("next")
			w.Expect(w.Client.Create(w.Ctx, other)).To(Succeed())
			w.Identify("tenant")
			w.Expect(w.Secret("tenant-credentials").Finalizers).To(ContainElement(infrav1.SecretFinalizer))

			referTo(w, "tenant", next)
			w.Identify("tenant")

			old := w.Secret("tenant-credentials")
			w.Expect(old.Finalizers).To(BeEmpty())
			w.Expect(old.OwnerReferences).To(BeEmpty())
			w.Expect(w.Client.Delete(w.Ctx, old)).To(Succeed())
			w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(old), old)).NotTo(Succeed())
		})
	}
}

func TestSharedSecretIsProtectedUntilTheLastIdentityIsDeleted(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"refers to another", "is deleted"} {
		t.Run("the first "+how, func(t *testing.T) {
			w := controllertest.New(t)
			second := controllertest.NewIdentity(w.Sim.URL())
			second.ObjectMeta = controllertest.Meta("second")
			w.Expect(w.Client.Create(w.Ctx, second)).To(Succeed())
			w.Identify("tenant")
			w.Identify("second")
			w.Expect(w.Secret("tenant-credentials").OwnerReferences).To(HaveLen(2))

			if how == "refers to another" {
				referTo(w, "second", "another")
			} else {
				w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(second), second)).To(Succeed())
				w.Expect(w.Client.Delete(w.Ctx, second)).To(Succeed())
			}
			w.Identify("second")

			secret := w.Secret("tenant-credentials")
			w.Expect(secret.Finalizers).To(ContainElement(infrav1.SecretFinalizer))
			w.Expect(secret.OwnerReferences).To(ConsistOf(HaveField("Name", "tenant")))

			w.DeleteCluster()
			first := controllertest.NewIdentity(w.Sim.URL())
			w.Expect(w.Client.Delete(w.Ctx, first)).To(Succeed())
			w.Identify("tenant")
			w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(first), first)).NotTo(Succeed())
			w.Expect(w.Secret("tenant-credentials").Finalizers).To(BeEmpty())
		})
	}
}
