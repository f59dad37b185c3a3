// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A target is what a machine is made of and where, as VCD knows it.
type target struct {
	vdc      vcd.VDC
	nics     []placement.NIC
	networks []vcd.Network   // of each NIC
	dual     bool            // the cluster is dual-stack
	static   [][]nics.Static // of each NIC; none if all addresses are VCD's to assign

	// Only until the VM exists.
	template vcd.Template
	sizing   *vcd.Policy
	policy   *vcd.Policy
	storage  *vcd.StorageProfile
	disks    []vcd.NewDisk // besides those of the template, once the VM exists, too
}

// wished returns the NICs as they should be.
func (t *target) wished() []nics.NIC {
	all := make([]nics.NIC, 0, len(t.nics))
	for i, nic := range t.nics {
		n := nics.NIC{Index: i, Spec: nic.NetworkSpec, Network: t.networks[i], DualStack: t.dual}
		if i < len(t.static) {
			n.Static = t.static[i]
		}
		all = append(all, n)
	}
	return all
}
