// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// ZoneVDCs maps the zones of [NewInZones] to their VDCs.
var ZoneVDCs = map[string]string{"a": "acme-vdc", "b": "acme-vdc-b", "c": "acme-vdc-c"}

// NewZoned returns an environment without zones. The model must have the VDCs of [ZoneVDCs].
func NewZoned(t *testing.T, model vcdsim.Model, objects ...client.Object) *Env {
	t.Helper()
	return NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model}, objects...)
}

// NewInZones returns an environment with a cluster in three valid zones a, b and c. The zones are VDCs with their own
// catalogs and one common network. The cluster itself has no VDC.
func NewInZones(t *testing.T, objects ...client.Object) *Env {
	t.Helper()
	return NewInZonesOn(t, vcdsim.ThreeZones(), objects...)
}

// NewInZonesOn is [NewInZones] on a model with the same VDCs and catalogs.
func NewInZonesOn(t *testing.T, model vcdsim.Model, objects ...client.Object) *Env {
	t.Helper()
	w := NewZoned(t, model, objects...)
	c := w.VCDCluster()
	c.Spec.OVDC = ""
	c.Spec.OVDCNetwork = ""
	c.Spec.FailureDomainSelector = &metav1.LabelSelector{}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	for zone := range ZoneVDCs {
		w.CreateZone(zone)
		w.EventuallyZone(zone, clusterv1.ReadyCondition, infrav1.ReadyReason)
	}
	return w
}

// InZone returns the objects of a machine in a zone. The machine itself names no catalog.
func InZone(zone, name string, mods ...func(*infrav1.VCDMachine)) []client.Object {
	mods = append([]func(*infrav1.VCDMachine){func(m *infrav1.VCDMachine) { m.Spec.Catalog = "" }}, mods...)
	objects := NewMachine(name, mods...)
	if m, ok := objects[0].(*clusterv1.Machine); ok {
		m.Spec.FailureDomain = zone
	}
	return objects
}

// CreateZone creates a VCDDeploymentZone and its VCDFailureDomain fd-<name>.
func (w *Env) CreateZone(name string, mods ...func(*infrav1.VCDFailureDomain, *infrav1.VCDDeploymentZone)) {
	d := &infrav1.VCDFailureDomain{ObjectMeta: Meta("fd-" + name)}
	d.Spec = infrav1.VCDFailureDomainSpec{Region: "eu", Zone: "eu-" + name, OVDC: ZoneVDCs[name]}
	z := &infrav1.VCDDeploymentZone{ObjectMeta: Meta(name)}
	z.Spec = infrav1.VCDDeploymentZoneSpec{
		FailureDomain: d.Name,
		Site:          w.Sim.URL(),
		Org:           "acme",
		IdentityRef:   infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "tenant"},
		PlacementConstraint: infrav1.PlacementConstraint{
			Networks:       []string{"nodes"},
			StorageProfile: "standard",
			Catalog:        "kubernetes",
		},
	}
	if name != "a" {
		z.Spec.PlacementConstraint.Catalog += "-" + name
	}
	for _, mod := range mods {
		mod(d, z)
	}
	w.Expect(w.Client.Create(w.Ctx, d)).To(Succeed())
	w.Expect(w.Client.Create(w.Ctx, z)).To(Succeed())
}

// AddIdentity creates an identity for another user of the organization, and a Secret with the same name.
func (w *Env) AddIdentity(name, user string) {
	identity := NewIdentity(w.Sim.URL())
	secret := NewSecret(w.Sim)
	identity.Name = name
	identity.UID = types.UID("uid-of-" + name)
	identity.Spec.SecretRef.Name = name
	secret.Name = name
	secret.Data["username"] = []byte(user)
	w.Expect(w.Client.Create(w.Ctx, identity)).To(Succeed())
	w.Expect(w.Client.Create(w.Ctx, secret)).To(Succeed())
}

// DeploymentZone reads a VCDDeploymentZone from the API server. The test fails if it does not exist.
func (w *Env) DeploymentZone(name string) *infrav1.VCDDeploymentZone {
	z := &infrav1.VCDDeploymentZone{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: Namespace, Name: name}, z)).To(Succeed())
	return z
}

// ReconcileZone reconciles a VCDDeploymentZone once.
func (w *Env) ReconcileZone(name string) (ctrl.Result, error) {
	return reconcile.AsReconciler(w.Client, w.Zone).Reconcile(w.Ctx,
		ctrl.Request{NamespacedName: client.ObjectKey{Namespace: Namespace, Name: name}})
}

// EventuallyZone reconciles until the condition of the VCDDeploymentZone has the reason.
func (w *Env) EventuallyZone(name, condition, reason string) {
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileZone(name)
		g.Expect(err).NotTo(HaveOccurred())
		c := conditions.Get(w.DeploymentZone(name), condition)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal(reason), "%s", c.Message)
	}, Patience, "5ms").Should(Succeed())
}

// ReconcileDomain reconciles a VCDFailureDomain once.
func (w *Env) ReconcileDomain(name string) (ctrl.Result, error) {
	return reconcile.AsReconciler(w.Client, w.Domain).Reconcile(w.Ctx,
		ctrl.Request{NamespacedName: client.ObjectKey{Namespace: Namespace, Name: name}})
}

// DeleteVDC deletes a VDC with all its contents, as the provider does.
func (w *Env) DeleteVDC(name string) {
	w.DisableVDC(name, true)
	var id string
	w.Sim.Edit(func(e *vcdsim.Editor) { id = e.VDC(name).ID })
	w.login("administrator@System").Delete("/api/admin/vdc/" + id + "?force=true&recursive=true")
	w.Eventually(func() (gone bool) {
		w.Sim.Edit(func(e *vcdsim.Editor) { gone = e.VDC(name) == nil })
		return gone
	}, Patience, "5ms").Should(BeTrue())
}

// ReconcileIdentity reconciles the identity of the cluster once.
func (w *Env) ReconcileIdentity() {
	_, err := reconcile.AsReconciler(w.Client, w.Identity).Reconcile(w.Ctx,
		ctrl.Request{NamespacedName: client.ObjectKey{Namespace: Namespace, Name: "tenant"}})
	w.Expect(err).NotTo(HaveOccurred())
}

// DisableVDC disables a VDC in VCD, or enables it again.
func (w *Env) DisableVDC(name string, disabled bool) {
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VDC(name).Disabled = disabled })
}
