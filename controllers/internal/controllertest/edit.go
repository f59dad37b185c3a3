// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// Edit changes the VM of a machine in VCD.
func (w *Env) Edit(name string, change func(*vcdsim.Editor, *vcdsim.VM)) {
	w.Sim.Edit(func(e *vcdsim.Editor) { change(e, e.VM(name)) })
}

// Record changes the recorded state of the VCDCluster.
func (w *Env) Record(change func(recorded *infrav1.VCDClusterRecordedState)) {
	c := w.VCDCluster()
	change(&c.Spec.RecordedState)
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}
