// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta2"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const capvcdID = "NO_RDE_0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"

// makeCAPVCD converts a vApp with two VMs to that of a CAPVCD cluster, and creates the objects in a management cluster.
func makeCAPVCD(s *shell) {
	const vApp = "acme-vdc-vapp-000"
	s.sim.Edit(func(e *vcdsim.Editor) {
		v := e.VApp(vApp)
		v.Description = capvcd.VAppDescription(vApp)
		v.Metadata = map[string]vcdsim.Metadata{
			capvcd.MetadataKey: {Type: "MetadataStringValue", Value: capvcdID},
		}
		for _, n := range []string{"-000", "-001"} {
			e.VM(vApp + n).Description = capvcd.VMDescription
		}
	})
	c := &v1beta2.VCDCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: vApp}}
	c.Status.InfraID = capvcdID
	c.Status.Ready = true
	s.objects = []client.Object{c}
	for _, vm := range s.sim.State().VMs {
		if vm.VAppName != vApp {
			continue
		}
		m := &v1beta2.VCDMachine{ObjectMeta: metav1.ObjectMeta{
			Namespace:       "team-a",
			Name:            vm.Name,
			Labels:          map[string]string{"cluster.x-k8s.io/cluster-name": vApp},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Machine", Name: vm.Name}},
		}}
		m.Spec.ProviderID = ptr.To("vmware-cloud-director://urn:vcloud:vm:" + vm.ID)
		s.objects = append(s.objects, m)
	}
}

func TestAdoptPreviewsTheActionsOfTheManager(t *testing.T) {
	s := newShell(t, fleet)
	s.useEnvironment(t)
	makeCAPVCD(s)

	s.Expect(s.run(t, "adopt", "--dry-run")).To(Equal(exitOK), s.errors.String())
	s.Expect(s.out.String()).To(And(
		MatchRegexp(`team-a/acme-vdc-vapp-000 +vapp +acme-vdc-vapp-000 +adopt`),
		MatchRegexp(`vm +acme-vdc-vapp-000-001 +adopt`),
		MatchRegexp(`virtual-service +acme-vdc-vapp-000 +create`),
	))

	s.sim.Edit(func(e *vcdsim.Editor) {
		v := e.VApp("acme-vdc-vapp-000")
		v.Metadata = map[string]vcdsim.Metadata{capvcd.MetadataKey: {Type: "MetadataStringValue", Value: "another"}}
	})
	s.Expect(s.run(t, "adopt", "--dry-run", "-o", "json")).To(Equal(exitFindings))
	var printed struct{ Objects []map[string]string }
	s.Expect(json.Unmarshal(s.out.Bytes(), &printed)).To(Succeed())
	s.Expect(printed.Objects).To(ContainElement(And(HaveKeyWithValue("kind", "vapp"),
		HaveKeyWithValue("state", "unverified"), HaveKeyWithValue("why", ContainSubstring(capvcd.MetadataKey+"="+capvcdID)))))
	for _, r := range s.sim.Requests() {
		s.Expect(r.Changes()).To(BeFalse(), r.Path)
	}
}

func TestAdoptSkipsClustersOfOtherOrganizations(t *testing.T) {
	s := newShell(t, fleet)
	s.useEnvironment(t)
	makeCAPVCD(s)
	other := &v1beta2.VCDCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "globex"}}
	other.Spec.Site = s.sim.URL()
	other.Spec.Org = "globex"
	other.Status.InfraID = "NO_RDE_5ad1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
	s.objects = append(s.objects, other)

	s.Expect(s.run(t, "adopt", "--dry-run")).To(Equal(exitOK), s.errors.String())
	s.Expect(s.out.String()).To(And(ContainSubstring("team-a/acme-vdc-vapp-000"), Not(ContainSubstring("globex"))))
	s.Expect(s.errors.String()).To(And(ContainSubstring("Skipped team-b/globex"), ContainSubstring("organization globex of "+s.sim.URL())))

	s.objects = []client.Object{other}
	s.Expect(s.run(t, "adopt", "--dry-run")).To(Equal(exitError))
	s.Expect(s.errors.String()).To(ContainSubstring("nothing to adopt in organization acme"))
}

func TestAdoptReportsMissingRights(t *testing.T) {
	s := newShell(t, fleet, func(m *vcdsim.Model) {
		m.Orgs[1].Users[1].Role = vcdsim.RoleCloudProvider
	})
	s.useEnvironment(t)
	makeCAPVCD(s)

	s.Expect(s.run(t, "adopt", "--dry-run")).To(Equal(exitFindings))
	s.Expect(s.errors.String()).To(ContainSubstring(`right "vApp: Power Operations" is missing`))
}

func TestAdoptWithNothingToAdopt(t *testing.T) {
	s := newShell(t)
	s.useEnvironment(t)

	s.Expect(s.run(t, "adopt")).To(Equal(exitError))
	s.Expect(s.errors.String()).To(ContainSubstring("set --dry-run"))
	s.Expect(s.run(t, "adopt", "--dry-run")).To(Equal(exitError))
	s.Expect(s.errors.String()).To(ContainSubstring("nothing to adopt"))
}
