// SPDX-License-Identifier: Apache-2.0

package zone_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A misplaced machine of zone d cannot be created with its current configuration.
type misplaced struct {
	name    string
	prepare func(*controllertest.Env)
	machine func(*infrav1.VCDMachine)

	reason string
	words  []string // field and remedy
	mend   func(*controllertest.Env)
}

// createD creates zone d, a further zone in the VDC of zone a.
func createD(w *controllertest.Env, mods ...func(*infrav1.VCDFailureDomain, *infrav1.VCDDeploymentZone)) {
	mods = append([]func(*infrav1.VCDFailureDomain, *infrav1.VCDDeploymentZone){
		func(d *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
			d.Spec.OVDC = "acme-vdc"
			z.Spec.PlacementConstraint.Catalog = "kubernetes"
		},
	}, mods...)
	w.CreateZone("d", mods...)
}

// editD changes zone d.
func editD(w *controllertest.Env, change func(*infrav1.VCDDeploymentZone)) {
	z := w.DeploymentZone("d")
	change(z)
	w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())
}

func valid(w *controllertest.Env) {
	w.EventuallyZone("d", clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func misplacedMachines() []misplaced {
	created := func(w *controllertest.Env) { createD(w) }
	reset := func(w *controllertest.Env) {
		m := w.VCDMachine("cp-d")
		m.Spec.PlacementPolicy = ""
		m.Spec.Networks = nil
		m.Spec.StorageProfile = ""
		w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	}
	return append(foreignZones(created), misplaced{
		"another placement policy than that of the zone",
		func(w *controllertest.Env) {
			createD(w, func(d *infrav1.VCDFailureDomain, _ *infrav1.VCDDeploymentZone) {
				d.Spec.PlacementPolicy = "rack-a"
			})
		},
		func(m *infrav1.VCDMachine) { m.Spec.PlacementPolicy = "rack-b" },
		infrav1.PlacementInvalidReason,
		[]string{"spec.placementPolicy", "rack-a", "rack-b"},
		reset,
	}, misplaced{
		"a placement policy that its VDC does not have",
		created,
		func(m *infrav1.VCDMachine) { m.Spec.PlacementPolicy = "nope" },
		infrav1.PlacementPolicyNotFoundReason,
		[]string{"correct spec.placementPolicy"},
		reset,
	}, misplaced{
		"a storage profile that its VDC does not have",
		created,
		func(m *infrav1.VCDMachine) { m.Spec.StorageProfile = "nope" },
		infrav1.StorageProfileNotFoundReason,
		[]string{"correct spec.storageProfile"},
		reset,
	}, misplaced{
		"a network that its VDC cannot reach",
		created,
		func(m *infrav1.VCDMachine) { m.Spec.Networks = []infrav1.NetworkSpec{{Name: "nope"}} },
		infrav1.NetworkNotFoundReason,
		[]string{"correct spec.networks[0].name"},
		reset,
	})
}

// foreignZones returns zones that the machine's cluster cannot use.
func foreignZones(created func(*controllertest.Env)) []misplaced {
	return []misplaced{
		{
			"an unknown zone",
			nil,
			nil,
			infrav1.FailureDomainNotFoundReason,
			[]string{
				"VCDDeploymentZone d does not exist in namespace " + controllertest.Namespace,
				"create it",
				"spec.failureDomain of the Machine",
			},
			created,
		},
		{
			"a zone in another namespace",
			func(w *controllertest.Env) {
				z := w.DeploymentZone("a")
				theirs := &infrav1.VCDDeploymentZone{Spec: z.Spec}
				theirs.Name = "d"
				theirs.Namespace = "team-b"
				w.Expect(w.Client.Create(w.Ctx, theirs)).To(Succeed())
			},
			nil,
			infrav1.FailureDomainNotFoundReason,
			[]string{
				"does not exist in namespace " + controllertest.Namespace,
				"spec.failureDomain of the Machine",
			},
			created,
		},
		{
			"a zone at another site",
			func(w *controllertest.Env) {
				createD(w, func(_ *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
					z.Spec.Site = "https://other.example.com"
				})
			},
			nil,
			infrav1.FailureDomainMismatchReason,
			[]string{"spec.site of VCDDeploymentZone d", "use a zone of the same site"},
			func(w *controllertest.Env) {
				editD(w, func(z *infrav1.VCDDeploymentZone) { z.Spec.Site = w.Sim.URL() })
			},
		},
		{
			"a zone in another organization",
			func(w *controllertest.Env) {
				createD(w, func(_ *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) { z.Spec.Org = "other" })
			},
			nil,
			infrav1.FailureDomainMismatchReason,
			[]string{"spec.org of VCDDeploymentZone d", "use a zone of the same organization"},
			func(w *controllertest.Env) {
				editD(w, func(z *infrav1.VCDDeploymentZone) { z.Spec.Org = "acme" })
			},
		},
		{
			"a zone whose VDC is unknown",
			func(w *controllertest.Env) {
				createD(w, func(d *infrav1.VCDFailureDomain, _ *infrav1.VCDDeploymentZone) { d.Spec.OVDC = "nope" })
			},
			nil,
			infrav1.VDCNotFoundReason,
			[]string{"correct spec.ovdc of VCDFailureDomain fd-d"},
			func(w *controllertest.Env) {
				d := &infrav1.VCDFailureDomain{}
				w.Expect(w.Client.Get(w.Ctx, clientKey("fd-d"), d)).To(Succeed())
				d.Spec.OVDC = "acme-vdc"
				w.Expect(w.Client.Update(w.Ctx, d)).To(Succeed())
			},
		},
	}
}

// TestUnplaceableMachines verifies that a machine reports the invalid field and a remedy, is not created elsewhere, and
// is created once the field is corrected.
func TestUnplaceableMachines(t *testing.T) {
	t.Parallel()
	for _, tt := range misplacedMachines() {
		t.Run(tt.name, func(t *testing.T) {
			mods := []func(*infrav1.VCDMachine){}
			if tt.machine != nil {
				mods = append(mods, tt.machine)
			}
			w := controllertest.NewInZonesOn(t, vcdsim.ThreeZones(), controllertest.InZone("d", "cp-d", mods...)...)
			if tt.prepare != nil {
				tt.prepare(w)
			}

			w.Eventually(func() string {
				_, err := w.ReconcileZone("d")
				w.Expect(err).NotTo(HaveOccurred())
				_, err = w.ReconcileCluster()
				w.Expect(err).NotTo(HaveOccurred())
				return conditions.GetReason(w.VCDCluster(), clusterv1.ReadyCondition)
			}, controllertest.Patience, "5ms").Should(Equal(infrav1.ReadyReason))
			w.EventuallyMachine("cp-d", infrav1.PlacementReadyCondition, tt.reason)

			message := conditions.GetMessage(w.VCDMachine("cp-d"), infrav1.PlacementReadyCondition)
			for _, words := range tt.words {
				w.Expect(message).To(ContainSubstring(words))
			}
			w.Expect(w.Sim.State().VApps).To(BeEmpty())

			tt.mend(w)
			valid(w)
			w.Ready("cp-d")
			w.Expect(vmLocations(w.Sim.State())).To(HaveLen(1))
		})
	}
}
