// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// image returns a copy of the template of a model, with a name and a creation day in March.
func image(m *vcdsim.Model, name string, day int) vcdsim.Template {
	t := m.Orgs[1].Catalogs[0].Templates[0]
	t.ID = ""
	t.ItemID = ""
	t.Name = name
	t.Created = time.Date(2026, time.March, day, 12, 0, 0, 0, time.UTC)
	t.VMs = slices.Clone(t.VMs)
	t.VMs[0].ID = ""
	return t
}

// addImage adds the newest image to the catalog of a running simulator.
func addImage(w *controllertest.Env, name string) {
	w.Sim.Edit(func(e *vcdsim.Editor) {
		templates := &e.Model.Orgs[1].Catalogs[0].Templates
		*templates = append(*templates, image(e.Model, name, 20))
	})
}

// newImages returns a simulator whose catalog has images with the given names, oldest first, and a machine.
func newImages(t *testing.T, names []string, objects ...client.Object) *controllertest.Env {
	t.Helper()
	model := vcdsim.K8sTenant()
	for i, name := range names {
		templates := &model.Orgs[1].Catalogs[0].Templates
		*templates = append(*templates, image(&model, name, i+1))
	}
	return controllertest.NewWith(t, vcdsim.Config{
		Profile: vcdsim.Profile{Name: "test", Scale: 0.001},
		Model:   model,
	}, objects...)
}

// selecting returns a machine of version v1.36.3 with a selector.
func selecting(name string, selector infrav1.TemplateSelector) []client.Object {
	objects := controllertest.NewMachine(name, func(m *infrav1.VCDMachine) {
		m.Spec.Template = ""
		m.Spec.TemplateSelector = &selector
	})
	objects[0].(*clusterv1.Machine).Spec.Version = "v1.36.3"
	return objects
}

var byName = infrav1.TemplateSelector{NamePattern: "node-v{kubernetesVersion}*"}

func TestTheNewestMatchingTemplateIsSelectedOnce(t *testing.T) {
	names := []string{"node-v1.36.3-b1", "node-v1.36.3-b2", "node-v1.36.30-b1", "other-v1.36.3"}
	w := newImages(t, names, selecting("a", byName)...)

	w.Ready("a")

	recorded := w.VCDMachine("a").Spec.RecordedState.Template
	w.Expect(recorded).To(HaveField("Name", "node-v1.36.3-b2"))
	w.Expect(w.Sim.State().VMs[0].TemplateName).To(Equal("node-v1.36.3-b2"))

	addImage(w, "node-v1.36.3-b3")
	for _, o := range selecting("b", byName) {
		w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
	}
	w.Ready("b")
	w.Expect(w.VCDMachine("b").Spec.RecordedState.Template).To(HaveField("Name", "node-v1.36.3-b3"))
	w.Expect(w.VCDMachine("a").Spec.RecordedState.Template).To(Equal(recorded))
	w.ExpectSettled("a")
}

func TestARepeatedCreationUsesTheRecordedTemplate(t *testing.T) {
	w := newImages(t, []string{"node-v1.36.3-b1", "node-v1.36.3-b2"}, selecting("a", byName)...)
	for _, template := range w.Sim.State().Model.Orgs[1].Catalogs[0].Templates {
		if template.Name == "node-v1.36.3-b1" {
			m := w.VCDMachine("a")
			m.Spec.RecordedState.CreationRequestedAt = &metav1.Time{Time: time.Now().Add(-time.Hour)}
			m.Spec.RecordedState.Template = &infrav1.RecordedTemplate{
				ID:   vcdsim.URN("vapptemplate", template.ID),
				Name: template.Name,
			}
			w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
		}
	}

	w.Ready("a")

	w.Expect(w.Sim.State().VMs[0].TemplateName).To(Equal("node-v1.36.3-b1"))
}

func TestTemplatesAreSelectedByMetadata(t *testing.T) {
	w := newImages(t, []string{"golden-1", "golden-2", "golden-3"}, selecting("a", infrav1.TemplateSelector{
		MatchMetadata:        []infrav1.TemplateMetadata{{Key: "image role", Value: "node image"}},
		KubernetesVersionKey: "kubernetes",
	})...)
	tag := func(name, role, version string) {
		for _, template := range w.Sim.State().Model.Orgs[1].Catalogs[0].Templates {
			if template.Name != name {
				continue
			}
			entry := func(key, value string) string {
				return `<MetadataEntry><Key>` + key + `</Key><TypedValue xsi:type="MetadataStringValue"><Value>` + value +
					`</Value></TypedValue></MetadataEntry>`
			}
			w.Person().Post("/api/vAppTemplate/vappTemplate-"+template.ID+"/metadata",
				`<Metadata `+controllertest.VCloud+` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">`+
					entry("image role", role)+entry("kubernetes", version)+`</Metadata>`)
		}
	}
	tag("golden-1", "node image", "v1.36.3")
	tag("golden-2", "router", "v1.36.3")
	tag("golden-3", "node image", "v1.37.0")

	w.Ready("a")

	w.Expect(w.Sim.State().VMs[0].TemplateName).To(Equal("golden-1"))
}

func TestAMachineWaitsForAMatchingTemplate(t *testing.T) {
	w := newImages(t, []string{"node-v1.36.2"}, selecting("a", byName)...)
	w.Ready()
	w.EventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.TemplateNotFoundReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("a"), infrav1.PlacementReadyCondition)).To(And(
		ContainSubstring("name node-v1.36.3*"),
		ContainSubstring("in catalog kubernetes"),
		ContainSubstring("add such a template to the catalog, or correct spec.templateSelector of the VCDMachine")))

	addImage(w, "node-v1.36.3")
	w.Ready("a")
	w.Expect(w.Sim.State().VMs[0].TemplateName).To(Equal("node-v1.36.3"))
}

func TestAMachineWithoutAVersionSelectsNoTemplate(t *testing.T) {
	objects := selecting("a", byName)
	objects[0].(*clusterv1.Machine).Spec.Version = ""
	w := newImages(t, []string{"node-v1.36.3"}, objects...)
	w.Ready()
	w.EventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.TemplateNotFoundReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("a"), infrav1.PlacementReadyCondition)).To(
		ContainSubstring("set spec.version of the Machine"))
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
}

// Otherwise another tenant could make machines boot its image by sharing a catalog with the same name.
func TestTemplatesInCatalogsWithTheSameNameAreNotSelected(t *testing.T) {
	w := newImages(t, []string{"node-v1.36.3"})
	share(w, "kubernetes", true)
	w.Sim.Edit(func(e *vcdsim.Editor) {
		theirs := &e.Model.Orgs[len(e.Model.Orgs)-1].Catalogs[0].Templates[0]
		theirs.Name = "node-v1.36.3-evil"
		theirs.Created = time.Date(2026, time.April, 1, 0, 0, 0, 0, time.UTC)
	})
	for _, o := range selecting("a", byName) {
		w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
	}
	w.Ready()
	w.EventuallyMachine("a", infrav1.PlacementReadyCondition, infrav1.TemplateInvalidReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("a"), infrav1.PlacementReadyCondition)).To(
		ContainSubstring("the URN of the catalog you mean"))
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
}
