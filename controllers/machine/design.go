// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

// A design describes the VM that is created for the machine.
type design struct {
	inputs *inputs
	target *target
}

// vm returns the VM to request from VCD.
func (d design) vm() vcd.VMSpec {
	name := d.inputs.vcdMachine.Spec.RecordedState.VMName
	p := d.target
	return vcd.VMSpec{
		Name:            name,
		Description:     d.inputs.marker().String(),
		Template:        p.template,
		NICs:            d.nics(),
		SizingPolicy:    p.sizing,
		PlacementPolicy: p.policy,
		StorageProfile:  p.storage,
		ComputerName:    vmname.ComputerName(name),
	}
}

// selectedTemplate returns the template of the VM in its recorded form if a selector chose it; otherwise nil.
func (d design) selectedTemplate() *infrav1.RecordedTemplate {
	if d.inputs.vcdMachine.Spec.TemplateSelector == nil {
		return nil
	}
	return &infrav1.RecordedTemplate{ID: d.target.template.ID, Name: d.target.template.Name}
}

func (d design) nics() []vcd.NIC {
	var result []vcd.NIC
	for _, nic := range d.target.desiredNICs() {
		result = append(result, nic.VCD())
	}
	return result
}

// networks returns the networks of the machine without duplicates.
func (d design) networks() []vcd.Ref {
	var refs []vcd.Ref
	for _, n := range d.target.networks {
		if !slices.Contains(refs, n.Ref) {
			refs = append(refs, n.Ref)
		}
	}
	return refs
}

// sameNetworks reports whether c needs no networks other than those of the machine.
func (d design) sameNetworks(c batch.Member) bool {
	return !slices.ContainsFunc(c.Spec.NICs, func(nic vcd.NIC) bool {
		return !slices.ContainsFunc(d.target.networks, func(n vcd.Network) bool { return n.Name == nic.Network })
	})
}
