// SPDX-License-Identifier: Apache-2.0

package vsphere_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vsphere"
)

// TestContract runs the contract suite of all backends.
func TestContract(t *testing.T) {
	cpitest.Run(t, func(t *testing.T) cpitest.Cloud {
		t.Helper()
		s := newSite(t)
		s.counted()
		names := s.rename(len(s.all()))
		machines := map[string]string{}
		for _, name := range names {
			machines[name] = s.vm(name).Guest.Net[0].IpAddress[0]
		}
		return cpitest.Cloud{
			Start: func(p cpitest.Process) cpi.Backend {
				m := s.machines(p.Clock, func(o *vsphere.MachineOptions) {
					o.NodeIDs = func() []string {
						all, _ := p.Nodes.List(labels.Everything())
						return vsphere.NodeIDs(slices.Clone(all))
					}
				})
				return cpi.Backend{Name: vsphere.ProviderName, Machines: m, Explain: vsphere.Explain, Parts: []cpi.Starter{m}}
			},
			Machines: machines,
			PowerOff: s.powerOff,
			Remove:   s.destroy,
			SetAway:  s.setAway,
		}
	})
}
