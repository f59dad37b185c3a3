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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
)

const (
	// readTimeout is how long a vCenter may take to answer.
	readTimeout = time.Minute
	// failedFor is how soon vCenters are read again if one of them did not answer.
	failedFor = 10 * time.Second
	// keepAlive is how often an idle session is used: vCenter ends it after half an hour.
	keepAlive = 10 * time.Minute
)

// MachineOptions are what [Machines] are made of.
type MachineOptions struct {
	VCenters []VCenter
	Topology Topology
	Labels   map[string]string // of every Node
	// KeepNodes makes no VM ever count as gone.
	KeepNodes bool
	// NodeIDs returns the provider IDs of the Nodes; nil: there are none.
	NodeIDs   func() []string
	UserAgent string
	// Observe is told how each request to a vCenter ended; nil: nothing is.
	Observe func(vCenter string, err error)
	Clock   clock.Clock // nil: real time
}

// Machines are the VMs that all vCenters show.
type Machines struct {
	opts     MachineOptions
	sessions []*sessions
	tags     []*tagCache // by vCenter

	mu      sync.Mutex // held while vCenters are read: all who ask wait for one answer
	started time.Time  // when the read of what follows began
	seen    []cpi.Machine
	missing error           // of the parts that did not answer then
	homes   map[string]home // by UUID
	unknown map[string]int  // VMs whose UUID is not shown, by vCenter
}

// A home is where a VM was last seen.
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
					_ = s.alive(ctx) // the next who needs the session reports it
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

// Snapshot returns the VMs as they were at most maxAge ago.
func (m *Machines) Snapshot(ctx context.Context, maxAge time.Duration) ([]cpi.Machine, error) {
	since := m.opts.Clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.missing != nil {
		maxAge = failedFor
	}
	if !m.started.IsZero() && !m.started.Before(since.Add(-maxAge)) {
		return slices.Clone(m.seen), m.missing
	}
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
	return m.keep(started, results)
}

// A result is what one vCenter showed.
type result struct {
	machines []cpi.Machine
	homes    map[string]home
	unknown  int
	err      error
}

// keep stores a snapshot. Where a vCenter did not answer, what it showed before is not believed.
func (m *Machines) keep(started time.Time, results []result) ([]cpi.Machine, error) {
	m.started, m.seen, m.missing = started, nil, nil
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
		return slices.Clone(m.seen), m.missing
	}
	m.forget()
	return slices.Clone(m.seen), nil
}

// forget drops the homes of VMs that are gone, unless a Node has them.
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
	s, out := m.sessions[i], result{}
	out.err = s.use(ctx, func(c *connection) error {
		all, err := readInventory(ctx, c)
		if err != nil {
			return err
		}
		if err := checkDatacenters(ctx, c, all, s.Datacenters); err != nil {
			return err
		}
		out.machines, out.homes, out.unknown = nil, map[string]home{}, 0
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

// checkDatacenters checks that each configured datacenter is seen.
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

// machine returns a VM as the inventory shows it; false, if not even its UUID is known.
func (m *Machines) machine(
	i int, all inventory, ref types.ManagedObjectReference, topology resolver,
) (cpi.Machine, bool) {
	vm := all[ref]
	uuids := uuidsOf(vm.text("config.uuid"))
	if uuids == nil { // vCenter cannot read its files; it was seen before, or it is unknown
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
		ProviderID: providerID(uuids[0]), SystemUUIDs: uuids, Name: vm.text("name"), Power: power(vm), Complete: true,
		Type: instanceType(vm.number("config.hardware.numCPU"), vm.number("config.hardware.memoryMB"),
			vm.text("config.guestId")),
		Labels: maps.Clone(m.opts.Labels), Addresses: addresses,
	}
	if guest.hostname != "" {
		out.Hostnames = []string{guest.hostname}
	}
	if len(addresses) > 0 {
		out.NICs = nicsOf(guest)
	} else if out.Power != cpi.PowerOn {
		wrong = nil // there is no guest that could report any
	}
	out.Notices = append(out.Notices, wrong...)
	topology(&out, all, ref)
	return out, true
}

// nicsOf returns all addresses of a guest: kubelet may be given any of them.
func nicsOf(g guest) []cpi.NIC {
	var out []cpi.NIC
	for i, c := range g.candidates() {
		nic := cpi.NIC{Index: i, Network: c.network, Primary: i == 0}
		nic.Addresses = append(nic.Addresses, c.address)
		out = append(out, nic)
	}
	return out
}

// power returns whether a VM runs; that is not known while its host does not answer or its files cannot be read.
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

// Get reads one VM, wherever in a vCenter it is. That it does not exist is only known if all vCenters say so.
func (m *Machines) Get(ctx context.Context, providerID string) (cpi.Machine, error) {
	uuids, err := parseProviderID(providerID)
	if err != nil {
		return cpi.Machine{}, err
	}
	all, err := m.Snapshot(ctx, 0)
	for _, machine := range all {
		if slices.Contains(uuids, machine.SystemUUIDs[0]) {
			return machine, nil
		}
	}
	if err != nil {
		return cpi.Machine{}, err
	}
	evidence, err := m.absence(ctx, uuids, all)
	if err != nil {
		return cpi.Machine{}, err
	}
	return cpi.Machine{}, &cpi.AbsenceError{Evidence: evidence}
}

// absence gathers evidence about a VM that no vCenter lists, in a complete snapshot.
func (m *Machines) absence(ctx context.Context, uuids []string, all []cpi.Machine) (gone.Evidence, error) {
	if m.opts.KeepNodes {
		return gone.Evidence{}, errors.New("no Node is deleted while SKIP_NODE_DELETION is set")
	}
	evidence := gone.Evidence{ScopeShown: true, SeesAll: true}
	for i, s := range m.sessions {
		err := s.use(ctx, func(c *connection) error { return m.absenceIn(ctx, i, c, uuids, &evidence) })
		if err != nil {
			return evidence, fmt.Errorf("vCenter %s: %w", s.Name, err)
		}
	}
	evidence.HomeShown = m.showSiblings(uuids, all) || evidence.SeesAll
	evidence.Logged = evidence.Deleted || evidence.SeesAll
	return evidence, nil
}

// absenceIn adds what one vCenter shows.
func (m *Machines) absenceIn(
	ctx context.Context, i int, c *connection, uuids []string, evidence *gone.Evidence,
) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for _, uuid := range uuids {
		if err := m.absenceAt(ctx, i, c, uuid, evidence); err != nil {
			return err
		}
		_, found, err := findUUID(ctx, c, uuid)
		if err != nil {
			return err
		}
		evidence.Listed = evidence.Listed || found
	}
	m.mu.Lock()
	unknown := m.unknown[m.opts.VCenters[i].Name]
	m.mu.Unlock()
	if unknown > 0 && !evidence.Deleted { // it may be one of those whose files vCenter cannot read
		evidence.Listed = true
	}
	if !evidence.SeesAll {
		return nil
	}
	all, err := seesAll(ctx, c)
	evidence.SeesAll = all
	return err
}

// absenceAt adds what a vCenter says of a VM that it had.
func (m *Machines) absenceAt(ctx context.Context, i int, c *connection, uuid string, evidence *gone.Evidence) error {
	m.mu.Lock()
	home, known := m.homes[uuid]
	m.mu.Unlock()
	if !known || home.vCenter != i {
		return nil
	}
	shown, deleted, err := exists(ctx, c, home.ref)
	if err != nil {
		return err
	}
	evidence.Deleted = evidence.Deleted || deleted
	evidence.HomeHolds = evidence.HomeHolds || !shown && !deleted
	evidence.Listed = evidence.Listed || shown
	return nil
}

// showSiblings reports whether every vCenter shows the VM of another Node: the VM may have been in any of them.
func (m *Machines) showSiblings(uuids []string, all []cpi.Machine) bool {
	nodes := map[string]bool{}
	for _, id := range m.opts.NodeIDs() {
		others, _ := parseProviderID(id)
		for _, uuid := range others {
			nodes[uuid] = !slices.Contains(uuids, uuid)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	showing := map[int]bool{}
	for _, machine := range all {
		if uuid := machine.SystemUUIDs[0]; nodes[uuid] {
			showing[m.homes[uuid].vCenter] = true
		}
	}
	return len(showing) == len(m.sessions)
}

// NodeIDs returns the provider IDs of Nodes that are VMs of vSphere.
func NodeIDs(nodes []*corev1.Node) []string {
	var ids []string
	for _, node := range nodes {
		if strings.HasPrefix(strings.ToLower(node.Spec.ProviderID), ProviderName+"://") {
			ids = append(ids, node.Spec.ProviderID)
		}
	}
	return ids
}
