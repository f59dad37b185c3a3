// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// Edit changes the VM of a machine in VCD.
func (w *Env) Edit(name string, change func(*vcdsim.Editor, *vcdsim.VM)) {
	w.Sim.Edit(func(e *vcdsim.Editor) { change(e, e.VM(name)) })
}
