// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	infraUUID      = "11111111-2222-3333-4444-555555555555"
	diskDeleteCall = "DELETE /api/disk"
)

// newWithDisks returns an environment with a ready cluster of a policy, and with owned and foreign disks.
func newWithDisks(t *testing.T, policy infrav1.OrphanedDiskPolicy) *controllertest.Env {
	t.Helper()
	w := controllertest.New(t, controllertest.Machines("other")...)
	c := w.VCDCluster()
	c.Spec.InfraID = infraUUID
	c.Spec.OrphanedDiskPolicy = policy
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Ready("other")
	p := w.Driver()
	vdc := w.Sim.State().VApps[0].VDCID
	for name, description := range map[string]string{
		"marked":   "made by hand. " + vcd.Marker{Cluster: infraUUID}.String(),
		"by-csi":   infraUUID,
		"attached": infraUUID,
		"others":   vcd.Marker{Cluster: "another"}.String(),
		"nobodys":  "",
		"mentions": "not of " + infraUUID,
	} {
		p.Post("/api/vdc/"+vdc+"/disk",
			`<DiskCreateParams `+controllertest.VCloud+`><Disk name="`+name+`" sizeMb="1024"><Description>`+description+
				`</Description></Disk></DiskCreateParams>`)
	}
	w.Eventually(func() []vcdsim.Disk { return w.Sim.State().Disks }, controllertest.Patience, "5ms").Should(HaveLen(6))
	return w
}

// attach attaches a disk to a VM outside the cluster.
func attach(w *controllertest.Env, disk string) {
	w.ComposeForeign("theirs")
	w.AddForeign("theirs", "their-vm")
	var vm, id string
	for _, v := range w.Sim.State().VMs {
		if v.Name == "their-vm" {
			vm = v.ID
		}
	}
	for _, d := range w.Sim.State().Disks {
		if d.Name == disk {
			id = d.ID
		}
	}
	w.Person().Post("/api/vApp/vm-"+vm+"/disk/action/attach",
		`<DiskAttachOrDetachParams `+controllertest.VCloud+`><Disk href="`+w.Sim.URL()+`/api/disk/`+id+
			`"/></DiskAttachOrDetachParams>`)
	w.Eventually(func() []vcdsim.Disk { return w.Sim.State().Disks }, controllertest.Patience,
		"5ms").Should(ContainElement(And(HaveField("Name", disk), HaveField("AttachedTo", ConsistOf(vm)))))
}

func diskNames(w *controllertest.Env) []string {
	var names []string
	for _, d := range w.Sim.State().Disks {
		names = append(names, d.Name)
	}
	return names
}

func TestDisksOfADeletedClusterAreKept(t *testing.T) {
	w := newWithDisks(t, infrav1.OrphanedDiskRetain)
	w.DeleteMachine("other")

	w.DeleteCluster()

	w.Expect(w.Sim.State().Disks).To(HaveLen(6))
	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("DisksRetained"),
		ContainSubstring("marked (urn:vcloud:disk:"), ContainSubstring("by-csi ("),
		Not(ContainSubstring("others (")), Not(ContainSubstring("nobodys (")))))
}

func TestDisksOfADeletedClusterAreDeletedIfConfigured(t *testing.T) {
	w := newWithDisks(t, infrav1.OrphanedDiskDelete)
	attach(w, "attached")
	w.DeleteMachine("other")
	w.Sim.Faults().Add(vcdsim.Fault{
		Operation: diskDeleteCall,
		Status:    http.StatusForbidden,
		Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
		Message:   "no right",
		Count:     1,
	})
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

	w.EventuallyCluster(infrav1.DisksDeletedCondition, infrav1.ForbiddenReason)
	w.Expect(conditions.GetMessage(w.VCDCluster(),
		infrav1.DisksDeletedCondition)).To(ContainSubstring("spec.orphanedDiskPolicy"))
	w.Eventually(w.IsClusterGone, controllertest.Patience, "5ms").Should(BeTrue())

	w.Expect(diskNames(w)).To(ConsistOf("attached", "others", "nobodys", "mentions"))
	w.Expect(w.EventTexts()).To(ContainElements(And(ContainSubstring("DiskDeleted"), ContainSubstring("by-csi")),
		And(ContainSubstring("DisksRetained"), ContainSubstring("attached"))))
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(diskDeleteCall, 3))
}

func TestDisksOfAKeptVAppAreKept(t *testing.T) {
	w := newWithDisks(t, infrav1.OrphanedDiskDelete)
	w.AddForeign(controllertest.ClusterName, "theirs")
	w.DeleteMachine("other")
	c := w.VCDCluster()
	notes.Set(c, infrav1.KeepVAppAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	w.DeleteCluster()

	w.Expect(w.Sim.State().Disks).To(HaveLen(6))
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("DisksRetained")))
}

func TestClusterIsDeletedEvenIfItsDisksCannotBeListed(t *testing.T) {
	w := newWithDisks(t, infrav1.OrphanedDiskRetain)
	w.DeleteMachine("other")
	w.Sim.Faults().Add(vcdsim.Fault{
		Operation: "GET /api/query type=disk",
		Status:    http.StatusForbidden,
		Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
		Message:   "no right",
	})

	w.DeleteCluster()

	w.Expect(w.Sim.State().Disks).To(HaveLen(6))
}

// TestDisksAreNeverDeletedWithoutProof hides the vApp of a cluster and drops its records, as a tool that owns all
// annotations would.
func TestDisksAreNeverDeletedWithoutProof(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		lose func(*infrav1.VCDClusterRecordedState)
		gone bool
	}{
		{name: "a vApp that is no longer shared blocks the cluster", lose: func(*infrav1.VCDClusterRecordedState) {}},
		{
			name: "without the record of its URN only the cluster is deleted",
			lose: func(r *infrav1.VCDClusterRecordedState) { r.VAppIDs = nil },
			gone: true,
		},
		{
			name: "without any record, likewise",
			lose: func(r *infrav1.VCDClusterRecordedState) {
				r.VAppIDs = nil
				r.VAppCount = 0
			},
			gone: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWithDisks(t, infrav1.OrphanedDiskDelete)
			w.DeleteMachine("other")
			w.Hide(controllertest.ClusterName, true)
			w.Record(tt.lose)
			w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

			for _, later := range []time.Duration{0, 62 * time.Second, 48 * time.Hour} {
				w.Later(later)
				if w.IsClusterGone() {
					break
				}
			}

			w.Expect(w.IsClusterGone()).To(Equal(tt.gone))
			w.Expect(w.Sim.State().Disks).To(HaveLen(6))
			if tt.gone {
				w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("DisksRetained")))
			}
		})
	}
}
