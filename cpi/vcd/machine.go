// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Get reads one VM. If VCD does not show it, the error contains the evidence of its absence.
func (m *Machines) Get(ctx context.Context, providerID string) (cpi.Machine, error) {
	id, err := providerid.Parse(strings.ToLower(strings.TrimSpace(providerID)))
	if err != nil {
		return cpi.Machine{}, err
	}
	session, err := m.opts.Session(ctx)
	if err != nil {
		return cpi.Machine{}, err
	}
	vm, absence, err := session.FindLost(ctx, m.lostVM(id))
	switch {
	case err != nil:
		return cpi.Machine{}, err
	case !absence.Shown:
		return cpi.Machine{}, &cpi.AbsenceError{Evidence: gone.Evidence(absence)}
	}
	return m.detailed(vm), nil
}

// lostVM returns the known location of a VM and of its siblings, as input for the search.
func (m *Machines) lostVM(id string) vcd.Lost {
	m.mu.Lock()
	defer m.mu.Unlock()
	lost := vcd.Lost{ID: id, VDCs: slices.Clone(m.opts.VDCs), Siblings: m.siblings(id)}
	if home, ok := m.homes[id]; ok {
		lost.VDCs = []string{home.vdc}
		lost.VApp = home.vApp
	}
	return lost
}

// detailed converts a VM that was read with all its data.
func (m *Machines) detailed(vm vcd.VM) cpi.Machine {
	machine := cpi.Machine{
		ProviderID: providerid.Format(vm.ID),
		Name:       vm.Name,
		Power:      powerOf(vm.Status),
		Complete:   true,
		Doubtful:   !m.marked(vm),
	}
	for _, nic := range vm.NICs {
		n := cpi.NIC{Index: nic.Index, Network: nic.Network, Primary: nic.Primary}
		for _, s := range []string{nic.Address, nic.Secondary} {
			if a, err := netip.ParseAddr(s); err == nil {
				n.Addresses = append(n.Addresses, a.Unmap())
			}
		}
		machine.NICs = append(machine.NICs, n)
	}
	return machine
}

// marked reports whether a VM carries the cluster's marker.
func (m *Machines) marked(vm vcd.VM) bool {
	marker, ok := vcd.ParseMarker(vm.Description)
	return ok && m.opts.ClusterID != "" && marker.Cluster == m.opts.ClusterID
}

// siblings returns the URNs of other VMs of the cluster. Those in the last snapshot come first.
func (m *Machines) siblings(id string) []string {
	var ids []string
	for _, machine := range m.machines {
		ids = append(ids, machine.ProviderID)
	}
	var out []string
	for _, providerID := range append(ids, m.opts.Nodes().ProviderIDs...) {
		urn, err := providerid.Parse(strings.ToLower(providerID))
		if err == nil && urn != strings.ToLower(id) && !slices.Contains(out, urn) {
			out = append(out, urn)
		}
	}
	return out
}

// hidden reports whether VCD does not show the requested object, whether or not it exists.
func hidden(err error) bool {
	return errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrForbidden)
}
