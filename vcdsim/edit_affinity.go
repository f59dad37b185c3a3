// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// AffinityRules returns the live rules. Callers may change them.
func (e *Editor) AffinityRules() []*store.AffinityRule { return store.Sorted(e.cloud.Store.Affinity) }

// DeleteAffinityRules removes all rules.
func (e *Editor) DeleteAffinityRules() { clear(e.cloud.Store.Affinity) }

// AddAffinityRule creates a rule that keeps VMs of one vApp, or of several vApps of a VDC, apart.
func (e *Editor) AddAffinityRule(name string, vms ...*store.VM) {
	vapp := e.cloud.Store.VApps[vms[0].VAppID]
	rule := &store.AffinityRule{
		ID:       e.cloud.IDs.Next("vmAffinityRule"),
		Name:     name,
		OrgID:    vapp.OrgID,
		VDCID:    vapp.VDCID,
		Enabled:  true,
		Polarity: store.PolarityApart,
	}
	for _, vm := range vms {
		rule.VMs = append(rule.VMs, vm.ID)
	}
	e.cloud.Store.Affinity[rule.ID] = rule
}
