package vcd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// askedSiblings is how many other VMs of the cluster are asked for until one is seen.
const askedSiblings = 3

// Get reads one VM. It is gone, as far as this look can tell, if VCD shows neither the VM nor a row of it anywhere in the
// organisation, but shows the VDC and another VM of the cluster.
func (m *Machines) Get(ctx context.Context, providerID string) (cpi.Machine, error) {
	id, err := providerid.Parse(strings.ToLower(strings.TrimSpace(providerID)))
	if err != nil {
		return cpi.Machine{}, fmt.Errorf("%w: %w", cpi.ErrUnknown, err)
	}
	session, err := m.opts.Session(ctx)
	if err != nil {
		return cpi.Machine{}, err
	}
	vm, err := session.VMs.VM(ctx, id)
	switch {
	case err == nil:
		return m.detailed(vm), nil
	case !hidden(err):
		return cpi.Machine{}, fmt.Errorf("reading %s: %w", id, err)
	}
	return cpi.Machine{}, m.prove(ctx, session, id)
}

// detailed says what a VM in full tells.
func (m *Machines) detailed(vm vcd.VM) cpi.Machine {
	machine := cpi.Machine{
		ProviderID: providerid.Format(vm.ID), Name: vm.Name, Power: powerOf(vm.Status), Complete: true, Doubtful: !m.marked(vm),
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

// marked says whether a VM carries the cluster's marker.
func (m *Machines) marked(vm vcd.VM) bool {
	marker, ok := vcd.ParseMarker(vm.Description)
	return ok && m.opts.ClusterID != "" && marker.Cluster == m.opts.ClusterID
}

// prove returns what one look says of a VM that VCD does not show: [cpi.ErrGone], or that it proves nothing.
func (m *Machines) prove(ctx context.Context, session *vcd.Session, id string) error {
	_, err := session.Inventory.QueryVM(ctx, id)
	switch {
	case err == nil:
		return fmt.Errorf("%s is listed but cannot be read: grant the user access to it: %w", id, cpi.ErrUnknown)
	case !errors.Is(err, vcd.ErrNotFound):
		return fmt.Errorf("looking for %s in the organisation: %w", id, err)
	}
	for _, look := range []func(context.Context, *vcd.Session, string) error{m.showsVDC, m.showsSibling} {
		if err := look(ctx, session, id); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", id, cpi.ErrGone)
}

// showsVDC makes sure that VCD shows the VDC that a VM was in, or all where it may have been.
func (m *Machines) showsVDC(ctx context.Context, session *vcd.Session, id string) error {
	m.mu.Lock()
	vdcs := slices.Clone(m.opts.VDCs)
	if home := m.homes[id]; home != "" {
		vdcs = []string{home}
	}
	m.mu.Unlock()
	session.Refresh()
	for _, name := range vdcs {
		if _, err := session.VDCs.FindVDC(ctx, name); err != nil {
			if hidden(err) {
				return fmt.Errorf("neither %s nor VDC %s is shown: %w", id, name, cpi.ErrUnknown)
			}
			return fmt.Errorf("reading VDC %s: %w", name, err)
		}
	}
	return nil
}

// showsSibling makes sure that VCD shows another VM of the cluster.
func (m *Machines) showsSibling(ctx context.Context, session *vcd.Session, id string) error {
	asked := 0
	for _, sibling := range m.siblings(id) {
		if asked++; asked > askedSiblings {
			break
		}
		_, err := session.VMs.VM(ctx, sibling)
		if err == nil {
			return nil
		}
		if !hidden(err) {
			return fmt.Errorf("reading %s: %w", sibling, err)
		}
	}
	return fmt.Errorf("neither %s nor anything else of the cluster is shown: %w", id, cpi.ErrUnknown)
}

// siblings returns other VMs of the cluster, those that were seen last first.
func (m *Machines) siblings(id string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
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

// hidden says whether VCD does not show what it was asked for, whether that exists or not.
func hidden(err error) bool {
	return errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrForbidden)
}
