// SPDX-License-Identifier: Apache-2.0

// Package cloudstack is the backend of the cloud controller manager for Apache CloudStack: virtual machines, and load
// balancer rules with their public addresses, firewall rules and network ACLs.
package cloudstack

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
)

// ProviderName is the name of the provider, and the scheme of its provider IDs. It is that of the original controller.
const ProviderName = "external-cloudstack"

// MachineOptions configure [Machines].
type MachineOptions struct {
	Client machineClient
	// Zone is the name of the cluster's zone. Machines in other zones are not matched by name. Empty means any zone.
	Zone string
	// Region of all machines; empty means the name of their zone.
	Region string
	// ProviderIDs returns the provider IDs of all Nodes. Nil means that there are none.
	ProviderIDs func() []string
	Clock       clock.PassiveClock // nil: real time
}

type machineClient interface {
	VMs(ctx context.Context, id string) ([]cloudstack.VM, error)
	Events(ctx context.Context, resource, resourceType string) ([]cloudstack.Event, error)
}

// Machines reads the virtual machines of the project or account.
type Machines struct {
	opts MachineOptions

	mu      sync.Mutex // held during requests: concurrent callers share one response
	started time.Time  // start of the request that returned the fields below
	vms     []cloudstack.VM
	partial error // reason why vms is incomplete, or nil
}

var _ cpi.Machines = (*Machines)(nil)

// NewMachines returns the virtual machines that are visible to a client.
func NewMachines(opts MachineOptions) *Machines {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.ProviderIDs == nil {
		opts.ProviderIDs = func() []string { return nil }
	}
	return &Machines{opts: opts}
}

// VMs returns all virtual machines, with data that is at most maxAge old. With a [cpi.IncompleteError] it returns the
// listed ones: lists are incomplete if the account changes while they are read.
func (m *Machines) VMs(ctx context.Context, maxAge time.Duration) ([]cloudstack.VM, error) {
	since := m.opts.Clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.started.IsZero() && !m.started.Before(since.Add(-maxAge)) {
		return m.vms, m.partial
	}
	started := m.opts.Clock.Now()
	all, err := m.opts.Client.VMs(ctx, "")
	if err != nil && !errors.Is(err, cloudstack.ErrChanged) {
		return nil, err
	}
	m.partial = nil
	if err != nil {
		m.partial = &cpi.IncompleteError{Err: err}
	}
	m.started = started
	m.vms = slices.DeleteFunc(all, deleted)
	return m.vms, m.partial
}

// incomplete reports whether an error only means that not all machines were listed.
func incomplete(err error) bool {
	_, is := errors.AsType[*cpi.IncompleteError](err)
	return is
}

// deleted reports whether a virtual machine is being removed. Users may see it until it is expunged.
func deleted(vm cloudstack.VM) bool { return vm.State == "Destroyed" || vm.State == "Expunging" }

// Snapshot implements [cpi.Machines].
func (m *Machines) Snapshot(ctx context.Context, maxAge time.Duration) ([]cpi.Machine, error) {
	all, err := m.VMs(ctx, maxAge)
	if err != nil && !incomplete(err) {
		return nil, err
	}
	out := make([]cpi.Machine, 0, len(all))
	for _, vm := range all {
		out = append(out, m.machine(vm))
	}
	return out, err
}

// Get implements [cpi.Machines].
func (m *Machines) Get(ctx context.Context, providerID string) (cpi.Machine, error) {
	id := idOf(providerID)
	found, err := m.opts.Client.VMs(ctx, id)
	switch {
	case err != nil && !errors.Is(err, cloudstack.ErrNotFound):
		return cpi.Machine{}, err
	case len(found) > 0 && !deleted(found[0]):
		return m.machine(found[0]), nil
	}
	evidence, err := m.evidence(ctx, id)
	if err != nil {
		return cpi.Machine{}, err
	}
	if len(found) > 0 {
		evidence.Deleted = true
		evidence.Logged = true
	}
	return cpi.Machine{}, &cpi.AbsenceError{Evidence: evidence}
}

// evidence collects what else is visible to the user. It fails if not all machines are listed. The project or account
// grants access, so if other machines of the cluster are visible, this one would be visible too.
func (m *Machines) evidence(ctx context.Context, id string) (gone.Evidence, error) {
	all, err := m.VMs(ctx, 0)
	if err != nil {
		return gone.Evidence{}, err
	}
	shown := map[string]bool{}
	for _, vm := range all {
		shown[strings.ToLower(vm.ID)] = true
	}
	e := gone.Evidence{ScopeShown: true, Listed: shown[id]}
	for _, other := range m.opts.ProviderIDs() {
		if other = idOf(other); other != id {
			e.SiblingsHidden = true // until one is visible
			e.HomeShown = e.HomeShown || shown[other]
		}
	}
	e.SiblingsHidden = e.SiblingsHidden && !e.HomeShown
	if moved := m.readLog(ctx, id, &e); moved && !e.Deleted {
		return e, &cpi.ElsewhereError{Message: "it was moved to another account or project, so its Node is kept: move it back, or delete the Node"}
	}
	return e, nil
}

// readLog adds the events of a machine to the evidence, and reports whether the machine was moved to another account.
// The event log proves nothing if it is hidden or does not support the filter.
func (m *Machines) readLog(ctx context.Context, id string, e *gone.Evidence) (moved bool) {
	events, err := m.opts.Client.Events(ctx, id, "VirtualMachine")
	if err != nil {
		return false
	}
	for _, event := range events {
		if !strings.EqualFold(event.ResourceID, id) {
			continue
		}
		e.Logged = true
		if event.State != "Completed" {
			continue
		}
		e.Deleted = e.Deleted || event.Type == "VM.DESTROY" || event.Type == "VM.EXPUNGE"
		moved = moved || event.Type == "VM.MOVE"
	}
	return moved
}

// machine converts a virtual machine.
func (m *Machines) machine(vm cloudstack.VM) cpi.Machine {
	out := cpi.Machine{
		ProviderID: ProviderName + "://" + vm.ID,
		Name:       vm.Name,
		Power:      powerOf(vm.State),
		Complete:   true,
		Revision:   vm.State,
		Type:       cpi.LabelValue(vm.ServiceOffering),
		Zone:       cpi.LabelValue(vm.ZoneName),
		Region:     m.opts.Region,
		Doubtful:   m.opts.Zone != "" && !strings.EqualFold(m.opts.Zone, vm.ZoneName),
	}
	if out.Region == "" {
		out.Region = out.Zone
	}
	for _, name := range []string{vm.Name, vm.DisplayName, vm.InstanceName} {
		if name != "" {
			out.Hostnames = append(out.Hostnames, name)
		}
	}
	for i, nic := range vm.NICs {
		out.NICs = append(out.NICs, cpi.NIC{
			Index:     i,
			Network:   nic.NetworkName,
			Primary:   nic.IsDefault,
			Addresses: parsed(nic.IPAddress, nic.IP6Address),
		})
		for _, more := range nic.Secondary { // used if kubelet was started with it
			out.NICs = append(out.NICs, cpi.NIC{Index: i, Network: nic.NetworkName, Addresses: parsed(more.IPAddress)})
		}
	}
	out.Addresses = addressesOf(vm, out.NICs)
	return out
}

// addressesOf returns the addresses of a Node: those of the default NIC, the static NAT address, and the name.
func addressesOf(vm cloudstack.VM, nics []cpi.NIC) []corev1.NodeAddress {
	var out []corev1.NodeAddress
	at := max(0, slices.IndexFunc(nics, func(n cpi.NIC) bool { return n.Primary }))
	for _, nic := range nics[min(at, len(nics)):min(at+1, len(nics))] {
		for _, a := range nic.Addresses {
			out = append(out, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
		}
	}
	if len(out) == 0 {
		return nil
	}
	for _, a := range parsed(vm.PublicIP) {
		out = append(out, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: a.String()})
	}
	return append(out, corev1.NodeAddress{Type: corev1.NodeHostName, Address: vm.Name})
}

func parsed(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, a.Unmap())
		}
	}
	return out
}

func powerOf(state string) cpi.Power {
	switch state {
	case "Running", "Migrating":
		return cpi.PowerOn
	case "Stopped", "Shutdown", "Error":
		return cpi.PowerOff
	default:
		return cpi.PowerUnknown
	}
}

// Canonical returns a provider ID in the form external-cloudstack://id. It also accepts the forms cloudstack:///id and
// cloudstack://region/id, which Cluster API's provider for CloudStack writes.
func Canonical(providerID string) string {
	if rest, ok := strings.CutPrefix(providerID, "cloudstack://"); ok {
		return ProviderName + "://" + rest[strings.LastIndex(rest, "/")+1:]
	}
	return providerID
}

// idOf returns the ID of a virtual machine from any form of its provider ID.
func idOf(providerID string) string {
	id := Canonical(strings.ToLower(strings.TrimSpace(providerID)))
	return strings.TrimPrefix(id, ProviderName+"://")
}
