package controllers

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const vcloud = `xmlns="http://www.vmware.com/vcloud/v1.5"`

// person works in VCD by hand.
type person struct {
	w     *world
	http  *http.Client
	token string
}

func (w *world) person() *person {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.sim.CA())
	p := &person{w: w, http: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}}
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.sim.URL()+"/cloudapi/1.0.0/sessions", nil)
	w.Expect(err).NotTo(HaveOccurred())
	req.SetBasicAuth("admin@acme", "password")
	req.Header.Set("Accept", "application/json;version=39.0")
	res, err := p.http.Do(req)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(res.Body.Close()).To(Succeed())
	p.token = res.Header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	w.Expect(p.token).NotTo(BeEmpty())
	return p
}

func (p *person) post(path, body string) {
	req, err := http.NewRequestWithContext(p.w.ctx, http.MethodPost, p.w.sim.URL()+path, bytes.NewBufferString(body))
	p.w.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Accept", "application/*+xml;version=39.0")
	req.Header.Set("Content-Type", "application/*+xml")
	res, err := p.http.Do(req)
	p.w.Expect(err).NotTo(HaveOccurred())
	answer, err := io.ReadAll(res.Body)
	p.w.Expect(err).NotTo(HaveOccurred())
	p.w.Expect(res.Body.Close()).To(Succeed())
	p.w.Expect(res.StatusCode).To(BeNumerically("<", 300), "%s", answer)
}

func TestIndependentDisksOutliveTheirVM(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	state := w.sim.State()
	p := w.person()
	for _, name := range []string{"data", "logs"} {
		p.post("/api/vdc/"+state.VApps[0].VDCID+"/disk", `<DiskCreateParams `+vcloud+`><Disk name="`+name+`" sizeMb="1024"/></DiskCreateParams>`)
	}
	for _, disk := range w.sim.State().Disks {
		p.post("/api/vApp/vm-"+state.VMs[0].ID+"/disk/action/attach",
			`<DiskAttachOrDetachParams `+vcloud+`><Disk href="`+w.sim.URL()+`/api/disk/`+disk.ID+`"/></DiskAttachOrDetachParams>`)
	}
	w.Expect(w.sim.State().Disks).To(HaveEach(HaveField("AttachedTo", Not(BeEmpty()))))

	w.deleteMachine("cp-0")

	w.Expect(w.sim.State().VMs).To(BeEmpty())
	w.Expect(w.sim.State().Disks).To(HaveLen(2))
	w.Expect(w.eventTexts()).To(ContainElements(ContainSubstring("independent disk data"), ContainSubstring("independent disk logs")))
	w.deleteCluster()
	w.Expect(w.sim.State().VApps).To(BeEmpty())
	w.Expect(w.eventTexts()).To(ContainElement(And(ContainSubstring("DisksLeft"), ContainSubstring("data (urn:vcloud:disk:"), ContainSubstring("logs (urn:"))))
}

func TestManyDetachedDisksDoNotKeepAMachine(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.ready("cp-0")
	c := w.vcdCluster()
	for i := range maxNotedDisks {
		c.Annotations[fmt.Sprintf("%s%08d-0000-0000-0000-000000000000", infrav1.DetachedDiskAnnotationPrefix, i)] = strings.Repeat("d", 128)
	}
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	state := w.sim.State()
	p := w.person()
	p.post("/api/vdc/"+state.VApps[0].VDCID+"/disk", `<DiskCreateParams `+vcloud+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`)
	p.post("/api/vApp/vm-"+state.VMs[0].ID+"/disk/action/attach",
		`<DiskAttachOrDetachParams `+vcloud+`><Disk href="`+w.sim.URL()+`/api/disk/`+w.sim.State().Disks[0].ID+`"/></DiskAttachOrDetachParams>`)

	w.deleteMachine("cp-0")

	w.Expect(w.sim.State().Disks).To(HaveLen(1))
	size := 0
	for key, value := range w.vcdCluster().Annotations {
		size += len(key) + len(value)
	}
	w.Expect(size).To(BeNumerically("<", 256<<10), "more is refused by Kubernetes")
}

func TestGuestIsShutDownFirstUnlessThatIsNotWished(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		seconds *int32
		want    int
	}{
		{"by default", nil, 1},
		{"with a timeout", ptr.To[int32](30), 1},
		{"not at all", ptr.To[int32](0), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, testMachine("cp-0", func(m *infrav1.VCDMachine) { m.Spec.ShutdownTimeoutSeconds = tt.seconds })...)
			w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

			w.deleteMachine("cp-0")

			w.Expect(w.sim.Counters()["POST /api/vApp/vm/power/action/shutdown"]).To(Equal(tt.want))
		})
	}
}

func TestGuestThatCannotShutDownIsPoweredOff(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault vcdsim.Fault
	}{
		{"VCD refuses", vcdsim.Fault{Operation: "POST /api/vApp/vm/power/action/shutdown", Status: http.StatusBadRequest, Message: "no VMware Tools"}},
		{"the task fails", vcdsim.Fault{FailTask: true, Operation: "vappShutdownGuest", Message: "no VMware Tools"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorldOn(t, vcdsim.Profile{Name: "test", Scale: 0.005}, testMachine("cp-0")...)
			w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.sim.Faults().Add(tt.fault)

			w.deleteMachine("cp-0")

			w.Expect(w.sim.State().VMs).To(BeEmpty())
		})
	}
}

func TestShutdownTimesOut(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	m := w.vcdMachine("cp-0")
	m.Annotations[infrav1.ShutdownRequestedAnnotation] = time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, m)).To(Succeed())

	w.eventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.ShuttingDownReason)
	w.Expect(w.sim.State().VMs[0].PoweredOn).To(BeTrue())

	w.skipAhead()
	w.Eventually(func() []vcdsim.VM {
		_, err := w.reconcileMachine("cp-0")
		w.Expect(err).NotTo(HaveOccurred())
		return w.sim.State().VMs
	}, patience, "5ms").Should(BeEmpty())
}

func TestMachineWithAVAppOfItsOwn(t *testing.T) {
	w := newWorld(t, testMachine("md-0", func(m *infrav1.VCDMachine) {
		m.Spec.VMNamingTemplate = `{{ .vcdMachine.Name | replace "md" "worker" }}`
	})...)
	c := w.vcdCluster()
	c.Spec.VApp.Layout = infrav1.VAppPerMachine
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.eventuallyMachine("md-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.sim.State().VApps).To(ConsistOf(HaveField("Name", "worker-0")))
	w.Expect(w.sim.State().VMs).To(ConsistOf(HaveField("Name", "worker-0")))
	w.expectSettled("md-0")

	w.deleteMachine("md-0")
	w.Expect(w.sim.State().VApps).To(BeEmpty())
}
