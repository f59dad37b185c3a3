// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
)

// identityOf returns the identity after a reconcile.
func identityOf(w *controllertest.Env) *infrav1.VCDIdentity {
	w.Identify("tenant")
	i := &infrav1.VCDIdentity{}
	key := client.ObjectKey{Namespace: controllertest.Namespace, Name: "tenant"}
	w.Expect(w.Client.Get(w.Ctx, key, i)).To(Succeed())
	return i
}

func TestAnIdentityInUseReportsItsLogin(t *testing.T) {
	w := controllertest.New(t)
	i := identityOf(w)
	w.Expect(conditions.IsTrue(i, infrav1.LoggedInCondition)).To(BeTrue())
	w.Expect(conditions.IsTrue(i, "Ready")).To(BeTrue())

	wrong := controllertest.NewSecret(w.Sim)
	wrong.Data["password"] = []byte("wrong-canary")
	w.Expect(w.Client.Update(w.Ctx, wrong)).To(Succeed())

	i = identityOf(w)
	w.Expect(conditions.IsTrue(i, infrav1.SecretReadyCondition)).To(BeTrue())
	w.Expect(conditions.GetReason(i, "Ready")).To(Equal(infrav1.CredentialsRejectedReason))
	w.Expect(conditions.GetMessage(i, "Ready")).To(And(ContainSubstring("VCDIdentity tenant"),
		Not(ContainSubstring("canary"))))

	w.Expect(w.Client.Update(w.Ctx, controllertest.NewSecret(w.Sim))).To(Succeed())
	w.Expect(conditions.IsTrue(identityOf(w), "Ready")).To(BeTrue())
}

func TestAnUnusedIdentityReportsNoLogin(t *testing.T) {
	w := controllertest.New(t)
	logins := w.Sim.Counters()["POST /cloudapi/1.0.0/sessions"]
	w.DeleteCluster()

	i := identityOf(w)

	w.Expect(conditions.Has(i, infrav1.LoggedInCondition)).To(BeFalse())
	w.Expect(conditions.IsTrue(i, "Ready")).To(BeTrue())
	w.Expect(w.Sim.Counters()["POST /cloudapi/1.0.0/sessions"]).To(Equal(logins))
}

// TestNoLoginForAnExternallyManagedCluster uses the annotation of Cluster API's contract, or the label that some of its
// pages mention.
func TestNoLoginForAnExternallyManagedCluster(t *testing.T) {
	for name, change := range map[string]func(*infrav1.VCDCluster){
		"annotation": func(c *infrav1.VCDCluster) {
			c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "another"}
		},
		"label": func(c *infrav1.VCDCluster) {
			c.Labels = map[string]string{clusterv1.ManagedByAnnotation: "another"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := controllertest.New(t)
			c := w.VCDCluster()
			change(c)
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

			i := identityOf(w)

			w.Expect(conditions.Has(i, infrav1.LoggedInCondition)).To(BeFalse())
			w.Expect(w.Sim.Counters()["POST /cloudapi/1.0.0/sessions"]).To(BeZero())
		})
	}
}
