// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/types"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
)

const (
	// readTimeout limits the read of one vCenter.
	readTimeout = time.Minute
	// failureAge is how long a snapshot is reused in which a vCenter did not respond.
	failureAge = 10 * time.Second
	// keepAlive is the interval at which idle sessions are used. vCenter ends them after half an hour.
	keepAlive = 10 * time.Minute
)

// MachineOptions configure [Machines].
type MachineOptions struct {
	VCenters []VCenter
	Topology Topology
	Labels   map[string]string // of every Node
	// KeepNodes means that no VM ever counts as gone.
	KeepNodes bool
	// NodeIDs returns the provider IDs of the Nodes. Nil means that there are none.
	NodeIDs   func() []string
	UserAgent string
	// Observe is called with the result of each request to a vCenter. Nil disables it.
	Observe func(vCenter string, err error)
	Clock   clock.Clock // nil: real time
}

// Machines reads the VMs of all vCenters.
type Machines struct {
	opts     MachineOptions
	sessions []*sessions
	tags     []*tagCache // by vCenter

	mu      sync.Mutex
	reading chan struct{} // closed when the read in flight has ended; nil: none
	started time.Time     // start of the read that returned the fields below
	ended   time.Time
	seen    []cpi.Machine
	missing error           // error of the parts that did not respond
	homes   map[string]home // by UUID
	unknown map[string]int  // number of VMs without a visible UUID, by vCenter
}

// A home is the last known location of a VM.
type home struct {
	vCenter int
	ref     types.ManagedObjectReference
}

var _ cpi.Machines = (*Machines)(nil)

// NewMachines returns the VMs of vCenters.
func NewMachines(o MachineOptions) *Machines {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Observe == nil {
		o.Observe = func(string, error) {}
	}
	if o.NodeIDs == nil {
		o.NodeIDs = func() []string { return nil }
	}
	m := &Machines{opts: o, homes: map[string]home{}, unknown: map[string]int{}}
	for _, v := range o.VCenters {
		m.sessions = append(m.sessions, &sessions{VCenter: v, clock: o.Clock, observe: o.Observe, agent: o.UserAgent})
		m.tags = append(m.tags, &tagCache{topology: o.Topology, clock: o.Clock})
	}
	return m
}

// Start keeps the sessions alive until ctx ends.
func (m *Machines) Start(ctx context.Context) {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-m.opts.Clock.After(keepAlive):
				for _, s := range m.sessions {
					_ = s.alive(ctx) // the next user of the session reports the error
				}
			}
		}
	}()
}

// Close ends the sessions.
func (m *Machines) Close(ctx context.Context) error {
	for _, s := range m.sessions {
		s.mu.Lock()
		c := s.current
		s.current = nil
		s.mu.Unlock()
		if c != nil {
			c.close(ctx)
		}
	}
	return nil
}

// Snapshot returns the VMs, with data that is at most maxAge old. Concurrent callers share one read. It continues if
// the context of a caller ends.
func (m *Machines) Snapshot(ctx context.Context, maxAge time.Duration) ([]cpi.Machine, error) {
	since := m.opts.Clock.Now()
	for {
		m.mu.Lock()
		if m.fresh(since, maxAge) {
			defer m.mu.Unlock()
			return slices.Clone(m.seen), m.missing
		}
		if m.reading == nil {
			m.reading = make(chan struct{})
			go m.readAll(context.WithoutCancel(ctx), m.reading)
		}
		done := m.reading
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for vCenters: %w", ctx.Err())
		case <-done:
		}
	}
}

// fresh reports whether the last snapshot is recent enough. The age of failures counts from the end of the read, which
// may take longer than failureAge. The caller holds the lock.
func (m *Machines) fresh(since time.Time, maxAge time.Duration) bool {
	if m.missing != nil {
		return !m.ended.Before(since.Add(-failureAge))
	}
	return !m.started.IsZero() && !m.started.Before(since.Add(-maxAge))
}

// readAll reads all vCenters, stores the results and closes done.
func (m *Machines) readAll(ctx context.Context, done chan struct{}) {
	started := m.opts.Clock.Now()
	results := make([]result, len(m.sessions))
	var group errgroup.Group
	for i := range m.sessions {
		group.Go(func() error {
			results[i] = m.read(ctx, i)
			return nil
		})
	}
	_ = group.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(started, results)
	m.reading = nil
	close(done)
}

// A result is the result of reading one vCenter.
type result struct {
	machines []cpi.Machine
	homes    map[string]home
	unknown  int
	err      error
}

// keep stores a snapshot. It drops the previous VMs of a vCenter that did not respond. The caller holds the lock.
func (m *Machines) keep(started time.Time, results []result) {
	m.started = started
	m.ended = m.opts.Clock.Now()
	m.seen = nil
	m.missing = nil
	var wrong []error
	for i, r := range results {
		if r.err != nil {
			wrong = append(wrong, r.err)
			continue
		}
		m.seen = append(m.seen, r.machines...)
		maps.Copy(m.homes, r.homes)
		m.unknown[m.opts.VCenters[i].Name] = r.unknown
	}
	if len(wrong) > 0 {
		m.missing = errors.Join(wrong...)
		if len(wrong) < len(results) {
			m.missing = &cpi.IncompleteError{Err: m.missing}
		}
		return
	}
	m.forget()
}

// forget drops the homes of deleted VMs that belong to no Node. The caller holds the lock.
func (m *Machines) forget() {
	if len(m.homes) <= len(m.seen) {
		return
	}
	there := map[string]bool{}
	for _, id := range m.opts.NodeIDs() {
		uuids, _ := parseProviderID(id)
		for _, uuid := range uuids {
			there[uuid] = true
		}
	}
	for _, machine := range m.seen {
		there[machine.SystemUUIDs[0]] = true
	}
	maps.DeleteFunc(m.homes, func(uuid string, _ home) bool { return !there[uuid] })
}

// read reads the VMs of one vCenter.
func (m *Machines) read(ctx context.Context, i int) result {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s := m.sessions[i]
	out := result{}
	out.err = s.use(ctx, func(c *connection) error {
		all, err := readInventory(ctx, c)
		if err != nil {
			return err
		}
		if err := checkDatacenters(ctx, c, all, s.Datacenters); err != nil {
			return err
		}
		out.machines = nil
		out.homes = map[string]home{}
		out.unknown = 0
		vms := slices.DeleteFunc(all.vms(), func(ref types.ManagedObjectReference) bool {
			return len(s.Datacenters) > 0 && !within(all.datacenter(ref), s.Datacenters)
		})
		topology := m.tags[i].resolve(ctx, c, all, vms)
		for _, ref := range vms {
			machine, ok := m.machine(i, all, ref, topology)
			if !ok {
				out.unknown++
				continue
			}
			out.machines = append(out.machines, machine)
			out.homes[machine.SystemUUIDs[0]] = home{i, ref}
		}
		return nil
	})
	if out.err != nil {
		out.err = fmt.Errorf("vCenter %s: %w", s.Name, out.err)
	}
	return out
}

// checkDatacenters returns an error if a configured datacenter is not visible.
func checkDatacenters(ctx context.Context, c *connection, all inventory, datacenters []string) error {
	for _, name := range datacenters {
		seen := slices.ContainsFunc(all.vms(), func(ref types.ManagedObjectReference) bool {
			return within(all.datacenter(ref), []string{name})
		})
		if seen {
			continue
		}
		if err := findDatacenter(ctx, c, name); err != nil {
			return err
		}
	}
	return nil
}

// machine converts a VM of the inventory. It returns false if the UUID of the VM is unknown. Homes do not change during
// a read.
func (m *Machines) machine(
	i int, all inventory, ref types.ManagedObjectReference, topology resolver,
) (cpi.Machine, bool) {
	vm := all[ref]
	uuids := uuidsOf(vm.text("config.uuid"))
	if uuids == nil { // vCenter cannot read its files; use the UUID of a previous read
		for uuid, home := range m.homes {
			if home.vCenter == i && home.ref == ref {
				uuids = uuidsOf(uuid)
			}
		}
	}
	if uuids == nil {
		return cpi.Machine{}, false
	}
	guest := vm.guest()
	addresses, wrong := m.sessions[i].Addresses.choose(guest)
	out := cpi.Machine{
		ProviderID:  providerID(uuids[0]),
		SystemUUIDs: uuids,
		Name:        vm.text("name"),
		Power:       power(vm),
		Complete:    true,
		Type: instanceType(vm.number("config.hardware.numCPU"), vm.number("config.hardware.memoryMB"),
			vm.text("config.guestId")),
		Labels:    maps.Clone(m.opts.Labels),
		Addresses: addresses,
	}
	if guest.hostname != "" {
		out.Hostnames = []string{guest.hostname}
	}
	if len(addresses) > 0 {
		out.NICs = nicsOf(guest)
	} else if out.Power != cpi.PowerOn {
		wrong = nil // a guest that does not run reports no addresses
	}
	out.Notices = append(out.Notices, wrong...)
	topology(&out, all, ref)
	return out, true
}

// nicsOf returns all addresses of a guest, because kubelet may be given any of them.
func nicsOf(g guest) []cpi.NIC {
	var out []cpi.NIC
	for i, c := range g.candidates() {
		nic := cpi.NIC{Index: i, Network: c.network, Primary: i == 0}
		nic.Addresses = append(nic.Addresses, c.address)
		out = append(out, nic)
	}
	return out
}

// power returns the power state of a VM. It is unknown while the host does not respond or the files of the VM cannot be
// read.
func power(vm entity) cpi.Power {
	if vm.text("runtime.connectionState") != string(types.VirtualMachineConnectionStateConnected) {
		return cpi.PowerUnknown
	}
	switch types.VirtualMachinePowerState(vm.text("runtime.powerState")) {
	case types.VirtualMachinePowerStatePoweredOn:
		return cpi.PowerOn
	case types.VirtualMachinePowerStatePoweredOff, types.VirtualMachinePowerStateSuspended:
		return cpi.PowerOff
	}
	return cpi.PowerUnknown
}

// NodeIDs returns the provider IDs of the Nodes that are vSphere VMs.
func NodeIDs(nodes []*corev1.Node) []string {
	var ids []string
	for _, node := range nodes {
		if strings.HasPrefix(strings.ToLower(node.Spec.ProviderID), ProviderName+"://") {
			ids = append(ids, node.Spec.ProviderID)
		}
	}
	return ids
}
