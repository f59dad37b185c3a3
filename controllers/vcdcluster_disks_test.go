package controllers

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	infraUUID      = "11111111-2222-3333-4444-555555555555"
	diskDeleteCall = "DELETE /api/disk"
)

// newWorldWithDisks makes a world with a ready cluster of a policy, and disks of its own and of others.
func newWorldWithDisks(t *testing.T, policy infrav1.OrphanedDiskPolicy) *world {
	t.Helper()
	w := newWorld(t, machines("other")...)
	c := w.vcdCluster()
	c.Spec.InfraID, c.Spec.OrphanedDiskPolicy = infraUUID, policy
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.ready("other")
	p, vdc := w.person(), w.sim.State().VApps[0].VDCID
	for name, description := range map[string]string{
		"marked":   "made by hand. " + vcd.Marker{Cluster: infraUUID}.String(),
		"by-csi":   infraUUID,
		"attached": infraUUID,
		"others":   vcd.Marker{Cluster: "another"}.String(),
		"nobodys":  "",
		"mentions": "not of " + infraUUID,
	} {
		p.post("/api/vdc/"+vdc+"/disk", `<DiskCreateParams `+vcloud+`><Disk name="`+name+`" sizeMb="1024"><Description>`+description+`</Description></Disk></DiskCreateParams>`)
	}
	w.Eventually(func() []vcdsim.Disk { return w.sim.State().Disks }, patience, "5ms").Should(HaveLen(6))
	return w
}

// attach attaches a disk to a VM that is not the cluster's.
func (w *world) attach(disk string) {
	w.composeForeign("theirs")
	w.addForeign("theirs", "their-vm")
	var vm, id string
	for _, v := range w.sim.State().VMs {
		if v.Name == "their-vm" {
			vm = v.ID
		}
	}
	for _, d := range w.sim.State().Disks {
		if d.Name == disk {
			id = d.ID
		}
	}
	w.person().post("/api/vApp/vm-"+vm+"/disk/action/attach", `<DiskAttachOrDetachParams `+vcloud+`><Disk href="`+w.sim.URL()+`/api/disk/`+id+`"/></DiskAttachOrDetachParams>`)
	w.Eventually(func() []vcdsim.Disk { return w.sim.State().Disks }, patience, "5ms").Should(ContainElement(And(HaveField("Name", disk), HaveField("AttachedTo", ConsistOf(vm)))))
}

func diskNames(w *world) []string {
	var names []string
	for _, d := range w.sim.State().Disks {
		names = append(names, d.Name)
	}
	return names
}

func TestDisksOfADeletedClusterAreKept(t *testing.T) {
	w := newWorldWithDisks(t, infrav1.OrphanedDiskRetain)
	w.deleteMachine("other")

	w.deleteCluster()

	w.Expect(w.sim.State().Disks).To(HaveLen(6))
	w.Expect(w.eventTexts()).To(ContainElement(And(ContainSubstring("DisksLeft"), ContainSubstring("marked (urn:vcloud:disk:"), ContainSubstring("by-csi ("),
		Not(ContainSubstring("others (")), Not(ContainSubstring("nobodys (")))))
}

func TestDisksOfADeletedClusterAreDeletedIfWished(t *testing.T) {
	w := newWorldWithDisks(t, infrav1.OrphanedDiskDelete)
	w.attach("attached")
	w.deleteMachine("other")
	w.sim.Faults().Add(vcdsim.Fault{Operation: diskDeleteCall, Status: http.StatusForbidden, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN", Message: "no right", Count: 1})
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())

	w.eventuallyCluster(infrav1.DisksDeletedCondition, infrav1.ForbiddenReason)
	w.Expect(conditions.GetMessage(w.vcdCluster(), infrav1.DisksDeletedCondition)).To(ContainSubstring("spec.orphanedDiskPolicy"))
	w.Eventually(w.isClusterGone, patience, "5ms").Should(BeTrue())

	w.Expect(diskNames(w)).To(ConsistOf("attached", "others", "nobodys", "mentions"))
	w.Expect(w.eventTexts()).To(ContainElements(And(ContainSubstring("DiskDeleted"), ContainSubstring("by-csi")), And(ContainSubstring("DisksLeft"), ContainSubstring("attached"))))
	w.Expect(w.sim.Counters()).To(HaveKeyWithValue(diskDeleteCall, 3))
}

func TestDisksOfAVAppThatStaysAreKept(t *testing.T) {
	w := newWorldWithDisks(t, infrav1.OrphanedDiskDelete)
	w.addForeign(testCluster, "theirs")
	w.deleteMachine("other")
	c := w.vcdCluster()
	annotate(c, infrav1.KeepVAppAnnotation, "true")
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())

	w.deleteCluster()

	w.Expect(w.sim.State().Disks).To(HaveLen(6))
	w.Expect(w.eventTexts()).To(ContainElement(ContainSubstring("DisksLeft")))
}

func TestClusterIsDeletedThoughItsDisksCannotBeListed(t *testing.T) {
	w := newWorldWithDisks(t, infrav1.OrphanedDiskRetain)
	w.deleteMachine("other")
	w.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query type=disk", Status: http.StatusForbidden, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN", Message: "no right"})

	w.deleteCluster()

	w.Expect(w.sim.State().Disks).To(HaveLen(6))
}

func TestWhoseDiskItIs(t *testing.T) {
	tests := []struct {
		name, infraID, description string
		want                       bool
	}{
		{"our marker", "prod", vcd.Marker{Cluster: "prod"}.String(), true},
		{"another's marker", infraUUID, vcd.Marker{Cluster: "prod"}.String(), false},
		{"the id, as a CSI driver writes it", infraUUID, infraUUID, true},
		{"the id of an RDE", "urn:vcloud:entity:vmware:capvcdCluster:" + infraUUID, "urn:vcloud:entity:vmware:capvcdCluster:" + infraUUID, true},
		{"a word that a person chose for both", "prod", "prod", false},
		{"the id among others", infraUUID, "copy of " + infraUUID, false},
		{"no id", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(ownsDisk(tt.infraID, vcd.NamedDisk{Description: tt.description})).To(Equal(tt.want))
		})
	}
}
