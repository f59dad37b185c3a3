// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// TestRequestsFollowTheSchema validates requests against VMware's schemas, which are not part of this repository. The
// schemas end with API 30 and do not define compute policies.
func TestRequestsFollowTheSchema(t *testing.T) {
	g := NewWithT(t)
	check := filepath.Join(filepath.Dir(filepath.Dir(recordings(t, "*_api_org.xml")[0])), "check-xml")
	if _, err := exec.LookPath("xmllint"); err != nil {
		t.Skip("xmllint is not installed: install libxml2-utils")
	}
	dir := t.TempDir()
	f := newFakeVCD(t)
	keep := func(name string, then func(http.ResponseWriter)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.WriteFile(filepath.Join(dir, name+".xml"), body, 0o600)).To(Succeed())
			then(w)
		}
	}
	task := func(w http.ResponseWriter) { xmlTask(w, "queued") }
	f.on("POST /api/vdc/{id}/action/composeVApp",
		keep("compose", func(w http.ResponseWriter) { reply(w, `<VApp name="a" id="%s"/>`, testVApp) }))
	f.on("POST /api/vApp/vapp-{id}/action/recomposeVApp", keep("recompose", task))
	f.on("POST /api/vApp/vapp-{id}/action/undeploy", keep("undeploy-vapp", task))
	f.on("POST /api/vApp/vm-{id}/action/undeploy", keep("undeploy-vm", task))
	f.on("POST /api/vApp/vm-{id}/disk/action/detach", keep("detach", task))
	f.on("PUT /api/vApp/vapp-{id}/leaseSettingsSection", keep("lease", task))
	f.on("PUT /api/vApp/vapp-{id}/networkConfigSection", keep("networks", task))
	f.on("GET /api/vApp/vapp-{id}/networkConfigSection", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `<NetworkConfigSection xmlns="%s" xmlns:ovf="%s"><ovf:Info/></NetworkConfigSection>`, wire.NamespaceVCloud,
			wire.NamespaceOVF)
	})
	f.on("GET /api/vApp/vapp-{id}",
		func(w http.ResponseWriter, _ *http.Request) { reply(w, `<VApp id="%s" deployed="true"/>`, testVApp) })
	s := session(t, f)
	ctx := t.Context()
	network := Ref{ID: "urn:vcloud:network:66666666-6666-4666-8666-666666666666", Name: "nodes"}
	vm := VMSpec{
		Name:           "cp-0",
		Description:    "d",
		ComputerName:   "cp-0",
		Template:       Template{VM: Ref{ID: testVM, Name: "t"}},
		StorageProfile: &StorageProfile{Ref: Ref{ID: "urn:vcloud:vdcstorageProfile:77777777-7777-4777-8777-777777777777", Name: "s"}},
		NICs: []NIC{
			{Network: "nodes", Mode: ModeManual, Address: "192.168.100.7", Primary: true},
			{Index: 1, Network: "nodes"},
		},
	}

	_, _, err := s.VApps.ComposeVApp(ctx, inVDC(),
		VAppSpec{Name: "a", Description: "d", Networks: []Ref{network}, VMs: []VMSpec{vm, vm}})
	g.Expect(err).NotTo(HaveOccurred())
	for _, start := range []func() (Task, error){
		func() (Task, error) { return s.VApps.AddVMs(ctx, testVApp, []VMSpec{vm, vm}) },
		func() (Task, error) { return s.VApps.ConnectNetworks(ctx, testVApp, []Ref{network}) },
		func() (Task, error) { return s.VApps.SetLease(ctx, testVApp, time.Hour, 0) },
		func() (Task, error) { return s.VApps.DeleteVApp(ctx, testVApp) },
		func() (Task, error) { return s.VMs.PowerOff(ctx, testVM) },
		func() (Task, error) {
			return s.VMs.DetachDisk(ctx, testVM, "urn:vcloud:disk:88888888-8888-4888-8888-888888888888")
		},
	} {
		_, err := start()
		g.Expect(err).NotTo(HaveOccurred())
	}

	files, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(7))
	out, err := exec.CommandContext(ctx, check, files...).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
}

func TestRecordedVMsFollowTheSchemaAfterAChange(t *testing.T) {
	files := recordings(t, "003_api_vApp_vm-*.xml")
	if _, err := exec.LookPath("xmllint"); err != nil {
		t.Skip("xmllint is not installed: install libxml2-utils")
	}
	g := NewWithT(t)
	raw, err := os.ReadFile(files[0])
	g.Expect(err).NotTo(HaveOccurred())
	body, err := reconfigured(raw, VMChange{ExtraConfig: map[string]string{"guestinfo.a": "b"}})
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "vm.xml")
	g.Expect(os.WriteFile(file, body, 0o600)).To(Succeed())

	check := filepath.Join(filepath.Dir(filepath.Dir(files[0])), "check-xml")
	out, err := exec.CommandContext(t.Context(), check, file).CombinedOutput()

	g.Expect(err).NotTo(HaveOccurred(), string(out))
}
