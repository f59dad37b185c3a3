// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A target holds the VCD objects that the VM is created from, and its location.
type target struct {
	vdc      vcd.VDC
	nics     []placement.NIC
	networks []vcd.Network   // per NIC
	dual     bool            // the cluster is dual-stack
	static   [][]nics.Static // per NIC; empty if VCD assigns all addresses

	// Set only until the VM exists.
	template vcd.Template
	sizing   *vcd.Policy
	policy   *vcd.Policy
	storage  *vcd.StorageProfile
	disks    []vcd.NewDisk // in addition to those of the template; set even once the VM exists
}

// desiredNICs returns the desired NICs.
func (t *target) desiredNICs() []nics.NIC {
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
