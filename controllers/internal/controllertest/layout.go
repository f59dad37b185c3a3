// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// SetLayout changes the layout of the cluster, which must not have machines yet.
func (w *Env) SetLayout(layout infrav1.VAppLayout) {
	c := w.VCDCluster()
	c.Spec.VApp.Layout = layout
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

// Hide revokes or grants the user's access to a vApp. Another user owns the vApp.
func (w *Env) Hide(vApp string, hidden bool) {
	level := "FullControl"
	if hidden {
		level = ""
	}
	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.SetOwner(e.VApp(vApp), "admin")
		e.Share(e.VApp(vApp), "capvcd", level)
	})
}

// DeleteVAppByHand deletes a vApp as an administrator does, so that VCD's task log shows it.
func (w *Env) DeleteVAppByHand(t *testing.T, name string) {
	t.Helper()
	admin := w.Admin(t)
	var vApp vcdsim.VApp
	for _, v := range w.Sim.State().VApps {
		if v.Name == name {
			vApp = v
		}
	}
	for _, vm := range w.Sim.State().VMs {
		if vm.VAppID == vApp.ID {
			task, err := admin.VMs.PowerOff(w.Ctx, "urn:vcloud:vm:"+vm.ID)
			w.Expect(err).NotTo(HaveOccurred())
			w.Await(admin, task)
		}
	}
	for range 2 { // The first task undeploys it.
		task, err := admin.VApps.DeleteVApp(w.Ctx, "urn:vcloud:vapp:"+vApp.ID)
		if err != nil {
			break // It was already undeployed.
		}
		w.Await(admin, task)
	}
	w.Expect(w.Sim.State().VApps).NotTo(ContainElement(HaveField("Name", name)))
}

// Machines returns the objects of several machines, each created by [NewMachine].
func Machines(names ...string) []client.Object {
	var objects []client.Object
	for _, name := range names {
		objects = append(objects, NewMachine(name)...)
	}
	return objects
}

// ComposeForeign creates a vApp by hand.
func (w *Env) ComposeForeign(name string) {
	vdc := w.VCDCluster().Status.OVDC.ID
	w.Person().Post("/api/vdc/"+vdc[strings.LastIndex(vdc, ":")+1:]+"/action/composeVApp",
		`<ComposeVAppParams `+VCloud+` name="`+name+`"/>`)
	w.Eventually(func() []vcdsim.VApp { return w.Sim.State().VApps }, Patience,
		"5ms").Should(ContainElement(HaveField("Name", name)))
	w.Sim.Edit(func(e *vcdsim.Editor) { e.Share(e.VApp(name), "capvcd", "ReadOnly") })
}

// AddForeign adds a VM to a vApp by hand.
func (w *Env) AddForeign(vApp, name string) {
	var into, source string
	for _, v := range w.Sim.State().VApps {
		if v.Name == vApp {
			into = v.ID
		}
	}
	for _, org := range w.Sim.State().Model.Orgs {
		for _, catalog := range org.Catalogs {
			source = catalog.Templates[0].VMs[0].ID
		}
	}
	w.Person().Post("/api/vApp/vapp-"+into+"/action/recomposeVApp",
		`<RecomposeVAppParams `+VCloud+`><SourcedItem><Source href="`+w.Sim.URL()+
			`/api/vAppTemplate/vm-`+source+`"/><VmGeneralParams><Name>`+name+
			`</Name></VmGeneralParams></SourcedItem><AllEULAsAccepted>true</AllEULAsAccepted></RecomposeVAppParams>`)
	w.Eventually(func() []vcdsim.VM { return w.Sim.State().VMs }, Patience,
		"5ms").Should(ContainElement(HaveField("Name", name)))
}
