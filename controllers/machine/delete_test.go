// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestIndependentDisksOutliveTheirVM(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	state := w.Sim.State()
	p := w.Driver()
	for _, name := range []string{"data", "logs"} {
		p.Post("/api/vdc/"+state.VApps[0].VDCID+"/disk",
			`<DiskCreateParams `+controllertest.VCloud+`><Disk name="`+name+`" sizeMb="1024"/></DiskCreateParams>`)
	}
	for _, disk := range w.Sim.State().Disks {
		p.Post("/api/vApp/vm-"+state.VMs[0].ID+"/disk/action/attach",
			`<DiskAttachOrDetachParams `+controllertest.VCloud+`><Disk href="`+w.Sim.URL()+`/api/disk/`+disk.ID+
				`"/></DiskAttachOrDetachParams>`)
	}
	w.Expect(w.Sim.State().Disks).To(HaveEach(HaveField("AttachedTo", Not(BeEmpty()))))

	w.DeleteMachine("cp-0")

	w.Expect(w.Sim.State().VMs).To(BeEmpty())
	w.Expect(w.Sim.State().Disks).To(HaveLen(2))
	w.Expect(w.EventTexts()).To(ContainElements(ContainSubstring("independent disk data"),
		ContainSubstring("independent disk logs")))
	w.DeleteCluster()
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring("DisksRetained"),
		ContainSubstring("data (urn:vcloud:disk:"), ContainSubstring("logs (urn:"))))
}

func TestAForeignDiskBlocksTheDeletionUntilItIsDetached(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	state := w.Sim.State()
	owner := w.Person()
	owner.Post("/api/vdc/"+state.VApps[0].VDCID+"/disk",
		`<DiskCreateParams `+controllertest.VCloud+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`)
	disk := `<DiskAttachOrDetachParams ` + controllertest.VCloud + `><Disk href="` + w.Sim.URL() + `/api/disk/` +
		w.Sim.State().Disks[0].ID + `"/></DiskAttachOrDetachParams>`
	owner.Post("/api/vApp/vm-"+state.VMs[0].ID+"/disk/action/attach", disk)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())

	w.EventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.ForbiddenReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"), infrav1.VMDeletedCondition)).To(
		ContainSubstring("allowed for its owner and organization administrators"))
	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
	owner.Post("/api/vApp/vm-"+state.VMs[0].ID+"/disk/action/detach", disk)
	skipAhead(w)
	w.Eventually(func() bool { return isGone(w, "cp-0") }, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Sim.State().Disks).To(HaveLen(1))
}

func TestManyDetachedDisksDoNotBlockTheDeletion(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	w.Record(func(r *infrav1.VCDClusterRecordedState) {
		r.DetachedDisks = map[string]string{}
		for i := range machine.MaxNotedDisks {
			r.DetachedDisks[fmt.Sprintf("%08d-0000-0000-0000-000000000000", i)] = strings.Repeat("d", 128)
		}
	})
	state := w.Sim.State()
	p := w.Driver()
	p.Post("/api/vdc/"+state.VApps[0].VDCID+"/disk",
		`<DiskCreateParams `+controllertest.VCloud+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`)
	p.Post("/api/vApp/vm-"+state.VMs[0].ID+"/disk/action/attach",
		`<DiskAttachOrDetachParams `+controllertest.VCloud+`><Disk href="`+w.Sim.URL()+`/api/disk/`+
			w.Sim.State().Disks[0].ID+`"/></DiskAttachOrDetachParams>`)

	w.DeleteMachine("cp-0")

	w.Expect(w.Sim.State().Disks).To(HaveLen(1))
	size := 0
	for key, value := range w.VCDCluster().Annotations {
		size += len(key) + len(value)
	}
	w.Expect(size).To(BeNumerically("<", 256<<10), "Kubernetes rejects larger objects")
}

func TestGuestIsShutDownFirstUnlessDisabled(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		seconds *int32
		want    int
	}{
		{"by default", nil, 1},
		{"with a timeout", ptr.To[int32](30), 1},
		{"without a graceful shutdown", ptr.To[int32](0), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t,
				controllertest.NewMachine("cp-0",
					func(m *infrav1.VCDMachine) { m.Spec.ShutdownTimeoutSeconds = tt.seconds })...)
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

			w.DeleteMachine("cp-0")

			w.Expect(w.Sim.Counters()["POST /api/vApp/vm/power/action/shutdown"]).To(Equal(tt.want))
		})
	}
}

func TestGuestThatCannotShutDownIsPoweredOff(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault vcdsim.Fault
	}{
		{
			"VCD rejects",
			vcdsim.Fault{
				Operation: "POST /api/vApp/vm/power/action/shutdown",
				Status:    http.StatusBadRequest,
				Message:   "no VMware Tools",
			},
		},
		{"the task fails", vcdsim.Fault{FailTask: true, Operation: "vappShutdownGuest", Message: "no VMware Tools"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.NewOn(t, vcdsim.Profile{Name: "test", Scale: 0.005},
				controllertest.NewMachine("cp-0")...)
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.Sim.Faults().Add(tt.fault)

			w.DeleteMachine("cp-0")

			w.Expect(w.Sim.State().VMs).To(BeEmpty())
		})
	}
}

func TestShutdownTimesOut(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	m := w.VCDMachine("cp-0")
	m.Spec.RecordedState.ShutdownRequestedAt = ptr.To(metav1.NewTime(time.Now().Add(-time.Second)))
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())

	w.EventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.ShuttingDownReason)
	w.Expect(w.Sim.State().VMs[0].PoweredOn).To(BeTrue())

	skipAhead(w)
	w.Eventually(func() []vcdsim.VM {
		_, err := w.ReconcileMachine("cp-0")
		w.Expect(err).NotTo(HaveOccurred())
		return w.Sim.State().VMs
	}, controllertest.Patience, "5ms").Should(BeEmpty())
}

func TestMachineWithItsOwnVApp(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("md-0", func(m *infrav1.VCDMachine) {
		m.Spec.VMNamingTemplate = `{{ .vcdMachine.Name | replace "md" "worker" }}`
	})...)
	c := w.VCDCluster()
	c.Spec.VApp.Layout = infrav1.VAppPerMachine
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("md-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.Sim.State().VApps).To(ConsistOf(HaveField("Name", "worker-0")))
	w.Expect(w.Sim.State().VMs).To(ConsistOf(HaveField("Name", "worker-0")))
	w.ExpectSettled("md-0")

	w.DeleteMachine("md-0")
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}
