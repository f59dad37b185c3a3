// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// share adds a catalog with that name to another organization, readable by acme if shared, and returns the URN of its
// template.
func share(w *controllertest.Env, catalog string, shared bool) string {
	w.Sim.Edit(func(e *vcdsim.Editor) {
		theirs := vcdsim.Catalog{Name: catalog, Templates: slices.Clone(e.Model.Orgs[1].Catalogs[0].Templates[:1])}
		theirs.Templates[0].ID = ""
		theirs.Templates[0].ItemID = ""
		theirs.Templates[0].VMs = slices.Clone(theirs.Templates[0].VMs)
		theirs.Templates[0].VMs[0].ID = ""
		if shared {
			theirs.SharedWith = []string{"acme"}
		}
		e.Model.Orgs = append(e.Model.Orgs, vcdsim.Org{
			Name: "images",
			VDCs: []vcdsim.VDC{{
				Name:            "images-vdc",
				StorageProfiles: []vcdsim.StorageProfile{{Name: "standard", Default: true}},
			}},
			Catalogs: []vcdsim.Catalog{theirs},
		})
	})
	orgs := w.Sim.State().Model.Orgs
	return vcdsim.URN("vapptemplate", orgs[len(orgs)-1].Catalogs[0].Templates[0].ID)
}

func TestTemplatesOfOtherOrganizations(t *testing.T) {
	t.Parallel()
	const template = "ubuntu-2404-kube-v1.36.3"
	tests := []struct {
		name            string
		catalog         string // theirs
		shared          bool
		spec            infrav1.VCDMachineSpec
		byURN           bool
		reason, message string // empty: the machine becomes ready
	}{
		{
			name:    "by name, from a shared catalog",
			catalog: "golden",
			shared:  true,
			spec:    infrav1.VCDMachineSpec{Catalog: "golden", Template: template},
		},
		{name: "by URN, from a shared catalog", catalog: "golden", shared: true, byURN: true},
		{
			name:    "by name, from an unshared catalog",
			catalog: "golden",
			spec:    infrav1.VCDMachineSpec{Catalog: "golden", Template: template},
			reason:  infrav1.CatalogNotFoundReason,
			message: "golden",
		},
		{
			name:    "by URN, from an unshared catalog",
			catalog: "golden",
			byURN:   true,
			reason:  infrav1.TemplateNotFoundReason,
			message: "spec.template",
		},
		{
			name:    "by a name in two catalogs with the same name",
			catalog: "kubernetes",
			shared:  true,
			spec:    infrav1.VCDMachineSpec{Catalog: "kubernetes", Template: template},
			reason:  infrav1.TemplateInvalidReason,
			message: "URN",
		},
		{name: "by URN, if the name is not unique", catalog: "kubernetes", shared: true, byURN: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t)
			urn := share(w, tt.catalog, tt.shared)
			for _, object := range controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
				m.Spec = tt.spec
				if tt.byURN {
					m.Spec = infrav1.VCDMachineSpec{Template: urn}
				}
			}) {
				w.Expect(w.Client.Create(w.Ctx, object)).To(Succeed())
			}
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

			if tt.reason != "" {
				w.EventuallyMachine("cp-0", infrav1.PlacementReadyCondition, tt.reason)
				w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"),
					infrav1.PlacementReadyCondition)).To(ContainSubstring(tt.message))
				w.Expect(w.Sim.State().VMs).To(BeEmpty())
				return
			}
			w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.Expect(w.Sim.State().VMs).To(HaveLen(1))
		})
	}
}

func TestAReplacedTemplateIsLookedUpAgain(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a", "b")...)
	pool := vcd.NewPool(vcd.PoolOptions{TaskPoll: 5 * time.Millisecond, LookupTTL: time.Hour})
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	w.Machine.Sessions = session.Of(pool)
	w.Ready("a")
	w.Sim.Edit(func(e *vcdsim.Editor) {
		template := &e.Model.Orgs[1].Catalogs[0].Templates[0]
		template.ID = "0a000000-0000-4000-8000-000000000001"
		template.VMs = slices.Clone(template.VMs)
		template.VMs[0].ID = "0a000000-0000-4000-8000-000000000002"
	})

	ahead := time.Duration(0)
	w.Eventually(func() bool {
		ahead += 2 * time.Second
		w.Later(ahead)
		_, err := w.ReconcileMachine("b")
		w.Expect(err).NotTo(HaveOccurred())
		return conditions.IsTrue(w.VCDMachine("b"), clusterv1.ReadyCondition)
	}, controllertest.Patience, "5ms").Should(BeTrue())
}

func TestAnIncorrectTemplateOfTheFirstControlPlaneNamesItsReplacement(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", controllertest.ControlPlane,
		func(m *infrav1.VCDMachine) { m.Spec.Template = "nope" })...)
	w.Ready()
	w.EventuallyMachine("cp-0", infrav1.PlacementReadyCondition, infrav1.TemplateNotFoundReason)

	m := w.VCDMachine("cp-0")
	w.Expect(conditions.GetMessage(m, infrav1.PlacementReadyCondition)).To(And(
		ContainSubstring("correct spec.template of the VCDMachine"),
		ContainSubstring("set it in the KubeadmControlPlane, and delete Machine cp-0")))
	m.Spec.Template = "ubuntu-2404-kube-v1.36.3"
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Ready("cp-0")
}

func TestAnImageOfAnotherKubernetesVersionIsReportedBeforeCreation(t *testing.T) {
	tests := []struct {
		name       string
		version    string
		properties map[string]string
		warns      string
	}{
		{name: "the image has the version", version: "v1.36.3"},
		{name: "the Machine has no version"},
		{name: "the name contains another version", version: "v1.35.4", warns: "has Kubernetes v1.36.3, but the version of the machines is v1.35.4"},
		{
			name:       "the product section contains another version",
			version:    "v1.36.3",
			properties: map[string]string{"KUBERNETES_SEMVER": "v1.34.1+vmware.1"},
			warns:      "has Kubernetes v1.34.1+vmware.1, but the version of the machines is v1.36.3",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := vcdsim.K8sTenant()
			model.Orgs[1].Catalogs[0].Templates[0].VMs[0].Properties = tt.properties
			objects := controllertest.NewMachine("md-0")
			objects[0].(*clusterv1.Machine).Spec.Version = tt.version
			w := controllertest.NewWith(t, vcdsim.Config{
				Profile: vcdsim.Profile{Name: "test", Scale: 0.001},
				Model:   model,
			}, objects...)

			w.Ready("md-0")

			texts := w.EventTexts()
			warned := 0
			for i, text := range texts {
				if strings.HasPrefix(text, "Warning "+infrav1.KubernetesVersionMismatchReason) {
					warned++
					w.Expect(text).To(ContainSubstring(tt.warns))
					w.Expect(strings.Join(texts[:i], "\n")).NotTo(ContainSubstring("VMCreated"))
				}
			}
			if tt.warns == "" {
				w.Expect(warned).To(BeZero())
			} else {
				w.Expect(warned).To(Equal(1), "once")
			}
		})
	}
}

// TestATemplateCapturedFromANodeGivesItsMachinesTheirOwnBootstrapData captures a node. Its template contains the guest
// metadata of that node, and any bootstrap data that the guest left.
func TestATemplateCapturedFromANodeGivesItsMachinesTheirOwnBootstrapData(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("node")...)
	w.Ready("node")
	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.PowerOff(e.VM("node"))
		e.VM("node").ExtraConfig[guestinfo.KeyIgnition] = "left"
	})
	state := w.Sim.State()
	w.Person().Post("/api/catalog/"+state.Model.Orgs[1].Catalogs[0].ID+"/action/captureVApp",
		`<CaptureVAppParams `+controllertest.VCloud+` name="captured"><Source href="`+w.Sim.URL()+
			"/api/vApp/vapp-"+state.VApps[0].ID+`"/></CaptureVAppParams>`)
	for _, o := range controllertest.NewMachine("a", func(m *infrav1.VCDMachine) { m.Spec.Template = "captured" }) {
		w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
	}

	w.Ready("a")

	vm := w.Sim.State().VMs[1]
	w.Expect(vm.TemplateName).To(Equal("captured"))
	id := w.VCDMachine("a").Spec.RecordedState.InstanceID
	w.Expect(guestinfo.IsFor(vm.ExtraConfig, id)).To(BeTrue())
	w.Expect(vm.ExtraConfig).NotTo(HaveKey(guestinfo.KeyIgnition))
}
