// SPDX-License-Identifier: Apache-2.0

package zone_test

import (
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func clientKey(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: controllertest.Namespace, Name: name}
}

// published returns the names of the failure domains of the cluster.
func published(w *controllertest.Env) []string {
	var names []string
	for _, d := range w.VCDCluster().Status.FailureDomains {
		names = append(names, d.Name)
	}
	return names
}

// expectOthersUnaffected expects that machines in zones a and c are ready, and that new machines are rejected in b and
// created in c.
func expectOthersUnaffected(w *controllertest.Env, refused string) {
	w.Ready("cp-a", "cp-c")
	w.Expect(published(w)).To(Equal([]string{"a", "c"}), "control planes are remediated into other zones")
	w.Expect(conditions.GetReason(w.VCDCluster(), infrav1.FailureDomainsReadyCondition)).To(
		Equal(infrav1.FailureDomainsExcludedReason))
	w.EventuallyMachine("late-b", infrav1.PlacementReadyCondition, refused)
	w.Ready("late-c")
	w.Expect(vmLocations(w.Sim.State())).To(And(HaveKey("late-c"), Not(HaveKey("late-b"))))
}

// newInLostZone returns an environment with a machine in each zone, and two that are not reconciled yet.
func newInLostZone(t *testing.T, changes ...func(*vcdsim.Org)) *controllertest.Env {
	t.Helper()
	model := vcdsim.ThreeZones()
	for _, change := range changes {
		change(&model.Orgs[1])
	}
	objects := append(threeMachines(), controllertest.InZone("b", "late-b")...)
	w := controllertest.NewInZonesOn(t, model, append(objects, controllertest.InZone("c", "late-c")...)...)
	if len(changes) > 0 { // Its networks may differ, and kube-vip does not span networks.
		c := w.VCDCluster()
		c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{Type: infrav1.EndpointExternal}
		c.Spec.ControlPlaneEndpoint.Host = "api.example.com"
		w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	}
	w.Ready("cp-a", "cp-b", "cp-c")
	return w
}

func TestADisabledVDCGetsNoNewMachinesAndOtherZonesAreUnaffected(t *testing.T) {
	w := newInLostZone(t)

	w.DisableVDC("acme-vdc-b", true)

	w.EventuallyZone("b", infrav1.FailureDomainReadyCondition, infrav1.VDCDisabledReason)
	expectOthersUnaffected(w, infrav1.VDCDisabledReason)
	w.Ready("cp-b")

	w.DisableVDC("acme-vdc-b", false)
	w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Ready("late-b")
	w.Expect(published(w)).To(Equal([]string{"a", "b", "c"}))
}

// TestALossIsNoticedAtTheNextValidation caches lookups for longer than the interval of zone validation.
func TestALossIsNoticedAtTheNextValidation(t *testing.T) {
	w := controllertest.NewInZones(t)
	w.LookupTTL = time.Hour
	w.Restart(t, events.NewFakeRecorder(100))
	next := func(name, condition, reason string) {
		w.Clock.Add(int64(intervals.Remedy))
		w.EventuallyZone(name, condition, reason)
	}
	w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)
	calls := len(w.Sim.Requests())
	w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.Sim.Requests()).To(HaveLen(calls), "a recent result is not requested again")

	w.DisableVDC("acme-vdc-b", true)
	next("b", infrav1.FailureDomainReadyCondition, infrav1.VDCDisabledReason)
	w.DisableVDC("acme-vdc-b", false)
	next("b", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Sim.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].Catalogs[1].Name = "renamed" })
	next("b", infrav1.ConstraintReadyCondition, infrav1.CatalogNotFoundReason)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].Catalogs[1].Name = "kubernetes-b" })
	next("b", clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestMachinesOfADeletedVDCAreUnknownAndOtherZonesAreUnaffected(t *testing.T) {
	w := newInLostZone(t, func(acme *vcdsim.Org) { // VCD does not delete a VDC in a group.
		acme.VDCGroups[0].VDCs = []string{"acme-vdc", "acme-vdc-c"}
		acme.VDCs[1].Networks = []vcdsim.Network{{
			Name:    "nodes",
			Type:    vcdsim.Isolated,
			Gateway: netip.MustParsePrefix("192.168.101.1/24"),
			StaticPool: []vcdsim.Range{{
				From: netip.MustParseAddr("192.168.101.10"),
				To:   netip.MustParseAddr("192.168.101.99"),
			}},
		}}
	})

	w.DeleteVDC("acme-vdc-b")

	w.EventuallyZone("b", infrav1.FailureDomainReadyCondition, infrav1.VDCNotFoundReason)
	expectOthersUnaffected(w, infrav1.VDCNotFoundReason)
	w.EventuallyMachine("cp-b", clusterv1.ReadyCondition, infrav1.VMUnverifiedReason)
	w.Expect(conditions.IsUnknown(w.VCDMachine("cp-b"), clusterv1.ReadyCondition)).To(BeTrue())
}

func TestAnUnsharedCatalogBlocksNewMachines(t *testing.T) {
	w := newInLostZone(t)
	share := func(with ...string) {
		w.Sim.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[2].Catalogs[0].SharedWith = with })
	}
	w.Sim.Edit(func(e *vcdsim.Editor) { // The catalog of zone b belongs to another organization.
		acme := &e.Model.Orgs[1]
		images := acme.Catalogs[1]
		images.Name = "images"
		e.Model.Orgs = append(e.Model.Orgs, vcdsim.Org{
			Name:     "images",
			Catalogs: []vcdsim.Catalog{images},
			VDCs: []vcdsim.VDC{{
				Name:            "images-vdc",
				StorageProfiles: []vcdsim.StorageProfile{{Name: "standard", Default: true}},
			}},
		})
		acme.Catalogs = slices.Delete(acme.Catalogs, 1, 2)
	})
	share("acme")
	z := w.DeploymentZone("b")
	z.Spec.PlacementConstraint.Catalog = "images"
	w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())
	w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)

	share()

	w.EventuallyZone("b", infrav1.ConstraintReadyCondition, infrav1.CatalogNotFoundReason)
	expectOthersUnaffected(w, infrav1.CatalogNotFoundReason)
	w.Ready("cp-b")

	share("acme")
	w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Ready("late-b")
	w.Expect(published(w)).To(Equal([]string{"a", "b", "c"}))
}

// newWithIdentity returns an environment in which zone b has its own identity, of user admin.
func newWithIdentity(t *testing.T) *controllertest.Env {
	t.Helper()
	objects := append(threeMachines(), controllertest.InZone("b", "late-b")...)
	w := controllertest.NewInZones(t, append(objects, controllertest.InZone("c", "late-c")...)...)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.SetRole("acme", "admin", vcdsim.RoleClusterAuthor) })
	w.AddIdentity("of-b", "admin")
	z := w.DeploymentZone("b")
	z.Spec.IdentityRef.Name = "of-b"
	w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())
	w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Ready("cp-a", "cp-b", "cp-c")
	return w
}

func TestAZoneLosesAndRegainsAccess(t *testing.T) {
	t.Parallel()
	password := func(value string) func(*controllertest.Env) {
		return func(w *controllertest.Env) {
			secret := &corev1.Secret{}
			w.Expect(w.Client.Get(w.Ctx, clientKey("of-b"), secret)).To(Succeed())
			secret.Data["password"] = []byte(value)
			w.Expect(w.Client.Update(w.Ctx, secret)).To(Succeed())
		}
	}
	for _, tc := range []struct {
		name             string
		lose, regain     func(*controllertest.Env)
		condition        string // of the zone
		reason, machines string
	}{
		{
			name:      "an incorrect password",
			lose:      password("wrong"),
			regain:    password("password"),
			condition: infrav1.IdentityReadyCondition,
			reason:    infrav1.CredentialsRejectedReason,
			machines:  infrav1.CredentialsRejectedReason,
		},
		{
			name: "no rights",
			lose: func(w *controllertest.Env) {
				w.Sim.Faults().Add(vcdsim.Fault{Operation: "GET *", User: "admin@acme", Status: http.StatusForbidden})
			},
			regain:    func(w *controllertest.Env) { w.Sim.Faults().Clear() },
			condition: infrav1.FailureDomainReadyCondition,
			reason:    infrav1.VDCNotFoundReason,
			machines:  infrav1.ForbiddenReason,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWithIdentity(t)

			tc.lose(w)

			w.EventuallyZone("b", tc.condition, tc.reason)
			expectOthersUnaffected(w, tc.reason)
			w.EventuallyMachine("cp-b", clusterv1.ReadyCondition, tc.machines)
			w.Expect(conditions.IsUnknown(w.VCDMachine("cp-b"), clusterv1.ReadyCondition)).To(BeTrue())

			tc.regain(w)

			w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.Ready("cp-b")
			for _, name := range []string{"cp-a", "cp-b", "cp-c", "late-b", "late-c"} {
				w.DeleteMachine(name)
			}
			w.DeleteCluster()
			w.Expect(w.Sim.State().VApps).To(BeEmpty())
		})
	}
}

// TestTheCredentialsOfAZoneAreKeptForItsVApp deletes a zone with the identity of the cloud controller manager. The deletion
// of its cluster can only fall back to the identity of the cluster, which may not see the vApp in the zone.
func TestTheCredentialsOfAZoneAreKeptForItsVApp(t *testing.T) {
	for identity, kept := range map[string]bool{"tenant": false, "ccm": true} {
		t.Run(identity, func(t *testing.T) {
			w := controllertest.NewZoned(t, vcdsim.ThreeZones())
			w.AddIdentity("ccm", "capvcd")
			w.CreateZone("a", func(_ *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
				z.Spec.IdentityRef.Name = identity
			})
			c := w.VCDCluster()
			c.Spec.CloudProvider.IdentityRef = &infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity, Name: "ccm"}
			c.Spec.RecordedState.Zones = map[string]infrav1.VCDClusterZoneRecord{"a": {}}
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
			w.EventuallyZone("a", clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.Expect(w.Client.Delete(w.Ctx, w.DeploymentZone("a"))).To(Succeed())

			for range 3 {
				_, err := w.ReconcileZone("a")
				w.Expect(err).NotTo(HaveOccurred())
			}

			err := w.Client.Get(w.Ctx, clientKey("a"), &infrav1.VCDDeploymentZone{})
			w.Expect(err == nil).To(Equal(kept), "%v", err)
		})
	}
}

func TestDeletionOfAZoneWaitsForItsMachines(t *testing.T) {
	w := controllertest.NewInZones(t, threeMachines()...)
	w.Ready("cp-a", "cp-b", "cp-c")
	w.Expect(w.Client.Delete(w.Ctx, w.DeploymentZone("b"))).To(Succeed())

	w.EventuallyZone("b", infrav1.ReleasedCondition, infrav1.InUseReason)
	w.Expect(conditions.GetMessage(w.DeploymentZone("b"), infrav1.ReleasedCondition)).To(ContainSubstring("cp-b"))
	w.Ready("cp-b")
	w.Expect(published(w)).To(Equal([]string{"a", "c"}))

	w.DeleteMachine("cp-b")
	_, err := w.ReconcileZone("b")
	w.Expect(err).NotTo(HaveOccurred())
	list := &infrav1.VCDDeploymentZoneList{}
	w.Expect(w.Client.List(w.Ctx, list)).To(Succeed())
	w.Expect(list.Items).To(HaveLen(2))

	// Remaining resources in the zone are deleted with the cluster, although the zone's definition no longer exists.
	w.DeleteMachine("cp-a")
	w.DeleteMachine("cp-c")
	w.DeleteCluster()
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

func TestUnusableZones(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		change    func(*infrav1.VCDFailureDomain, *infrav1.VCDDeploymentZone)
		condition string
		reason    string
		remedy    string
	}{
		{
			name:      "unknown VDC",
			change:    func(d *infrav1.VCDFailureDomain, _ *infrav1.VCDDeploymentZone) { d.Spec.OVDC = "nope" },
			condition: infrav1.FailureDomainReadyCondition,
			reason:    infrav1.VDCNotFoundReason,
			remedy:    "correct spec.ovdc of VCDFailureDomain fd-d",
		},
		{
			name:      "policy that the VDC does not have",
			change:    func(d *infrav1.VCDFailureDomain, _ *infrav1.VCDDeploymentZone) { d.Spec.PlacementPolicy = "nope" },
			condition: infrav1.FailureDomainReadyCondition,
			reason:    infrav1.PlacementPolicyNotFoundReason,
			remedy:    "assign the policy to the VDC",
		},
		{
			name:      "no failure domain",
			change:    func(_ *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) { z.Spec.FailureDomain = "nope" },
			condition: infrav1.FailureDomainReadyCondition,
			reason:    infrav1.FailureDomainNotFoundReason,
			remedy:    "create it",
		},
		{
			name: "unknown network",
			change: func(_ *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
				z.Spec.PlacementConstraint.Networks = []string{"nope"}
			},
			condition: infrav1.ConstraintReadyCondition,
			reason:    infrav1.NetworkNotFoundReason,
			remedy:    "connect the network to the VDC",
		},
		{
			name: "unknown storage profile",
			change: func(_ *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
				z.Spec.PlacementConstraint.StorageProfile = "nope"
			},
			condition: infrav1.ConstraintReadyCondition,
			reason:    infrav1.StorageProfileNotFoundReason,
			remedy:    "add and enable the profile in the VDC",
		},
		{
			name: "unknown sizing policy",
			change: func(_ *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
				z.Spec.PlacementConstraint.SizingPolicy = "nope"
			},
			condition: infrav1.ConstraintReadyCondition,
			reason:    infrav1.SizingPolicyNotFoundReason,
			remedy:    "assign the policy to the VDC",
		},
		{
			name: "an identity of another site",
			change: func(_ *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
				z.Spec.Site = "https://other.example.com"
			},
			condition: infrav1.IdentityReadyCondition,
			reason:    infrav1.SiteNotAllowedReason,
			remedy:    "spec.site of the VCDDeploymentZone d",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := controllertest.NewZoned(t, vcdsim.ThreeZones())
			w.CreateZone("d", func(d *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
				d.Spec.OVDC = "acme-vdc"
				z.Spec.PlacementConstraint.Catalog = "kubernetes"
				tc.change(d, z)
			})

			w.EventuallyZone("d", tc.condition, tc.reason)

			z := w.DeploymentZone("d")
			w.Expect(conditions.GetMessage(z, tc.condition)).To(ContainSubstring(tc.remedy))
			w.Expect(z.Status.Usable).To(Equal(ptr.To(false)), "it is not published")
		})
	}
}

func TestZoneOfAnotherOrganizationIsNotPublished(t *testing.T) {
	w := controllertest.NewInZones(t, controllertest.InZone("d", "cp-d")...)
	w.CreateZone("d", func(d *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
		d.Spec.OVDC = "acme-vdc"
		z.Spec.Org = "other"
	})

	w.Ready()

	w.Expect(published(w)).To(Equal([]string{"a", "b", "c"}))
	w.EventuallyMachine("cp-d", infrav1.PlacementReadyCondition, infrav1.FailureDomainMismatchReason)
}

func TestMachineWithoutAFailureDomainIsNotCreatedInAnyZone(t *testing.T) {
	w := controllertest.NewInZones(t, controllertest.NewMachine("cp-x")...)
	w.Ready()

	w.EventuallyMachine("cp-x", infrav1.PlacementReadyCondition, infrav1.PlacementInvalidReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("cp-x"), infrav1.PlacementReadyCondition)).To(
		ContainSubstring("spec.failureDomain of the Machine must be one"))
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
}

func TestAFailureDomainIsValidatedAndKeptWhileAZoneReferencesIt(t *testing.T) {
	w := controllertest.NewInZones(t)
	read := func() *infrav1.VCDFailureDomain {
		d := &infrav1.VCDFailureDomain{}
		_, err := w.ReconcileDomain("fd-b")
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.Client.Get(w.Ctx, clientKey("fd-b"), d)).To(Succeed())
		return d
	}
	w.Eventually(func() string { return conditions.GetReason(read(), infrav1.VDCReadyCondition) },
		controllertest.Patience, "5ms").Should(Equal(infrav1.ReadyReason))
	w.Expect(read().Status.OVDC.Name).To(Equal("acme-vdc-b"))

	w.Expect(w.Client.Delete(w.Ctx, read())).To(Succeed())

	w.Expect(conditions.GetReason(read(), infrav1.ReleasedCondition)).To(Equal(infrav1.InUseReason))
}

func TestAnIdentityIsKeptWhileAZoneUsesIt(t *testing.T) {
	w := controllertest.NewZoned(t, vcdsim.ThreeZones())
	w.CreateZone("a")
	w.DeleteCluster()
	identity := &infrav1.VCDIdentity{}
	w.Expect(w.Client.Get(w.Ctx, clientKey("tenant"), identity)).To(Succeed())
	w.ReconcileIdentity()
	w.Expect(w.Client.Get(w.Ctx, clientKey("tenant"), identity)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, identity)).To(Succeed())

	w.Eventually(func() string {
		w.ReconcileIdentity()
		w.Expect(w.Client.Get(w.Ctx, clientKey("tenant"), identity)).To(Succeed())
		return conditions.GetMessage(identity, infrav1.SecretReadyCondition)
	}, controllertest.Patience, "5ms").Should(ContainSubstring("VCDDeploymentZone"))
}
