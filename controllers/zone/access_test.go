// SPDX-License-Identifier: Apache-2.0

package zone_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/nodeproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// withIdentity gives zones their own identity, of user admin.
func withIdentity(w *controllertest.Env, zones ...string) {
	w.Sim.Edit(func(e *vcdsim.Editor) { e.SetRole("acme", "admin", vcdsim.RoleClusterAuthor) })
	w.AddIdentity("of-zones", "admin")
	for _, name := range zones {
		z := w.DeploymentZone(name)
		z.Spec.IdentityRef.Name = "of-zones"
		w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())
		w.EventuallyZone(name, clusterv1.ReadyCondition, infrav1.ReadyReason)
	}
}

// expirePassword sets an incorrect password in the zones' identity, or the correct one again.
func expirePassword(w *controllertest.Env, password, reason string, zones ...string) {
	secret := &corev1.Secret{}
	w.Expect(w.Client.Get(w.Ctx, clientKey("of-zones"), secret)).To(Succeed())
	secret.Data["password"] = []byte(password)
	w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
	for _, name := range zones {
		w.EventuallyZone(name, infrav1.IdentityReadyCondition, reason)
	}
}

func TestAClusterWithInaccessibleZonesIsUnknownAndContinues(t *testing.T) {
	w := controllertest.NewInZones(t, controllertest.InZone("a", "cp-a")...)
	withIdentity(w, "a", "b", "c")
	w.Ready("cp-a")

	expirePassword(w, "wrong", infrav1.CredentialsRejectedReason, "a", "b", "c")
	w.Expect(w.Client.Delete(w.Ctx, w.Secret("c1-kube-vip"))).To(Succeed())
	w.EventuallyCluster(infrav1.FailureDomainsReadyCondition, infrav1.NoFailureDomainReason)

	c := w.VCDCluster()
	w.Expect(conditions.IsUnknown(c, clusterv1.ReadyCondition)).To(BeTrue(), "%v", c.Status.Conditions)
	w.Expect(conditions.GetMessage(c, infrav1.FailureDomainsReadyCondition)).To(
		ContainSubstring("check VCDDeploymentZone a"))
	w.Expect(published(w)).To(Equal([]string{"a", "b", "c"}))
	w.Expect(w.Secret("c1-kube-vip").Data).NotTo(BeEmpty(), "the endpoint is kept")

	expirePassword(w, "password", infrav1.ReadyReason, "a", "b", "c")
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestNodesInAnInaccessibleZoneBypassTheProxy(t *testing.T) {
	w := controllertest.NewInZones(t, append(controllertest.InZone("a", "cp-a"), controllertest.InZone("b", "cp-b")...)...)
	z := w.DeploymentZone("b")
	z.Spec.PlacementConstraint.Networks = []string{"nodes", "storage"}
	w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())
	withIdentity(w, "b")
	c := w.VCDCluster()
	c.Spec.Proxy = infrav1.ProxySpec{HTTPProxy: "http://proxy:3128"}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Ready("cp-a", "cp-b")
	direct := func() []string {
		found, _ := nodeproxy.DirectOf(w.Secret("c1-proxy-settings").Data, "")
		return found
	}
	before := direct()
	w.Expect(before).To(ContainElement("10.20.0.0/24"))

	expirePassword(w, "wrong", infrav1.CredentialsRejectedReason, "b")
	w.Ready("cp-a")
	w.Expect(published(w)).To(Equal([]string{"a", "c"}))
	w.Expect(direct()).To(Equal(before))

	w.DeleteMachine("cp-a")
	expirePassword(w, "password", infrav1.ReadyReason, "b")
	w.DeleteMachine("cp-b")
	expirePassword(w, "wrong", infrav1.CredentialsRejectedReason, "b")
	w.Ready()
	w.Expect(direct()).NotTo(ContainElement("10.20.0.0/24"), "the cluster has no nodes there")
}
