// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"strconv"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// findNetworks looks up the networks of the NICs with which the VM was created. A NIC without a network in the spec
// gets the network of the zone or the cluster, which may have changed since.
func (i *injection) findNetworks(ctx context.Context) (phases.Result, error) {
	p := i.target
	vm := i.vm.current()
	if created := len(vm.NICs); len(i.inputs.vcdMachine.Spec.Networks) == 0 && created > 0 {
		p.nics = append(p.nics, make([]placement.NIC, max(0, created-len(p.nics)))...)[:created]
	}
	for index, desired := range p.nics {
		network, err := i.networkOf(ctx, index, desired)
		if err != nil {
			return problems.OfLookup(err, infrav1.NetworkNotFoundReason,
				"connect the network of NIC "+strconv.Itoa(index)+" of the VM to the VDC")
		}
		p.networks = append(p.networks, network)
	}
	return phases.Done, nil
}

// networkOf looks up the network of a NIC of the VM. It returns the desired network if the NIC is connected to it, or
// was connected before the network was renamed.
func (i *injection) networkOf(ctx context.Context, index int, desired placement.NIC) (vcd.Network, error) {
	network, err := i.session.FindNetwork(ctx, i.target.vdc, desired.Network.Name)
	is, ok := nicOf(i.vm.current(), index)
	if desired.Name != "" || !ok || err == nil && network.Name == is.Network {
		return network, err
	}
	if created, createdErr := i.session.FindNetwork(ctx, i.target.vdc, is.Network); createdErr == nil || err != nil {
		return created, createdErr
	}
	return network, nil
}

// guestNICs returns the NICs as the guest must configure them.
func (i *injection) guestNICs() ([]guestinfo.NIC, phases.Result) {
	var result []guestinfo.NIC
	for index, desired := range i.target.desiredNICs() {
		nic, ok := nicOf(i.vm.current(), index)
		if !ok || nic.MAC == "" {
			i.vm.requireReadNextPass()
			return nil, phases.Wait(intervals.Task, infrav1.WaitingForAddressReason,
				"Waiting for VCD to show NIC %d of VM %s", index, i.vm.current().Name)
		}
		guest, out := desired.Guest(nic)
		if out != phases.Done {
			i.vm.requireReadNextPass()
			return nil, out
		}
		result = append(result, guest)
	}
	return result, phases.Done
}

func nicOf(vm *vcd.VM, index int) (vcd.NIC, bool) {
	for _, nic := range vm.NICs {
		if nic.Index == index {
			return nic, true
		}
	}
	return vcd.NIC{}, false
}
