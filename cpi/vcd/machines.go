// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// vdcCacheAge is how long the IDs of VDCs that were found by name are cached.
const vdcCacheAge = time.Hour

// MachineOptions configure [Machines].
type MachineOptions struct {
	Session   func(context.Context) (*vcd.Session, error)
	ClusterID string   // cluster in the marker of the VMs; empty: none
	VDCs      []string // names or URNs
	VApps     []string // names of vApps that contain only VMs of the cluster
	Prefix    string   // prefix of the names of vApps with VMs of the cluster
	Zones     []Zone
	Region    string // of VMs outside all zones
	// NoDefaultZone leaves VMs outside all zones without a zone. Otherwise, the name of their VDC is their zone.
	NoDefaultZone bool
	Nodes         func() Nodes       // reads the Nodes; nil: there are none
	Clock         clock.PassiveClock // nil: real time
}

// Nodes is the data of Nodes that identifies machines.
type Nodes struct {
	ProviderIDs []string
	Nameless    []string // names of Nodes without a provider ID
}

// A Zone is a failure domain.
type Zone struct {
	Name, Region    string
	VDC             string // name or URN
	PlacementPolicy string // name or URN; empty: the whole VDC
}

// Machines reads the VMs of the cluster.
type Machines struct {
	opts MachineOptions

	mu       sync.Mutex // held during requests: concurrent callers share one response
	started  time.Time  // start of the request that returned the fields below
	machines []cpi.Machine
	vdcs     []vcd.VDC
	found    time.Time             // time when vdcs were found
	policies map[string]vcd.Policy // by URN; without a name: not visible
	homes    map[string]home       // by URN of the VM
}

// A home is the last known location of a VM, by URNs.
type home struct{ vdc, vApp string }

var _ cpi.Machines = (*Machines)(nil)

// NewMachines returns the VMs of the cluster.
func NewMachines(opts MachineOptions) *Machines {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Nodes == nil {
		opts.Nodes = func() Nodes { return Nodes{} }
	}
	return &Machines{opts: opts, policies: map[string]vcd.Policy{}, homes: map[string]home{}}
}

// Snapshot returns the VMs of the cluster, with data that is at most maxAge old.
func (m *Machines) Snapshot(ctx context.Context, maxAge time.Duration) ([]cpi.Machine, error) {
	since := m.opts.Clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.started.IsZero() && !m.started.Before(since.Add(-maxAge)) {
		return slices.Clone(m.machines), nil
	}
	started := m.opts.Clock.Now()
	session, err := m.opts.Session(ctx)
	if err != nil {
		return nil, err
	}
	vdcs, err := m.findVDCs(ctx, session)
	if err != nil {
		return nil, err
	}
	records, err := session.Inventory.SearchVMs(ctx, vdcs, m.search())
	if err != nil {
		return nil, err
	}
	machines := make([]cpi.Machine, 0, len(records))
	for _, record := range records {
		machine, err := m.machine(ctx, session, record)
		if err != nil {
			return nil, err
		}
		machines = append(machines, machine)
	}
	m.keep(started, records, machines)
	return slices.Clone(machines), nil
}

func (m *Machines) keep(started time.Time, records []vcd.VMRecord, machines []cpi.Machine) {
	m.started = started
	m.machines = machines
	seen := map[string]bool{}
	for _, record := range records {
		m.homes[record.ID] = home{record.VDC.ID, record.VApp.ID}
		seen[record.ID] = true
	}
	if len(m.homes) == len(seen) {
		return
	}
	for _, id := range m.opts.Nodes().ProviderIDs { // Only a VM of a Node may have to be proved gone.
		if urn, err := providerid.Parse(strings.ToLower(id)); err == nil {
			seen[urn] = true
		}
	}
	maps.DeleteFunc(m.homes, func(id string, _ home) bool { return !seen[id] })
}

func (m *Machines) search() vcd.Search {
	search := vcd.Search{VApps: m.opts.VApps, Prefix: m.opts.Prefix}
	nodes := m.opts.Nodes()
	for _, id := range nodes.ProviderIDs {
		if urn, err := providerid.Parse(strings.ToLower(id)); err == nil {
			search.IDs = append(search.IDs, urn)
		}
	}
	if m.started.IsZero() && (len(m.opts.VApps) > 0 || m.opts.Prefix != "") {
		return search // most VMs are in these vApps
	}
	known := map[string]bool{}
	for _, machine := range m.machines {
		known[machine.Name] = !machine.Doubtful || search.Prefix != ""
	}
	for _, name := range nodes.Nameless {
		if !known[name] {
			search.Names = append(search.Names, name)
		}
	}
	return search
}

// findVDCs finds the visible VDCs that may contain VMs of the cluster. A VDC that is not visible does not block the
// others.
func (m *Machines) findVDCs(ctx context.Context, session *vcd.Session) ([]vcd.VDC, error) {
	now := m.opts.Clock.Now()
	if len(m.vdcs) > 0 && now.Sub(m.found) < vdcCacheAge {
		return m.vdcs, nil
	}
	var vdcs []vcd.VDC
	var lost error
	for _, name := range m.opts.VDCs {
		vdc, err := session.VDCs.FindVDC(ctx, name)
		if hidden(err) {
			klog.V(2).InfoS("A VDC of the cluster is not visible", "vdc", name, "reason", err.Error())
			lost = fmt.Errorf("finding VDC %s: %w", name, err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("finding VDC %s: %w", name, err)
		}
		if !slices.ContainsFunc(vdcs, func(v vcd.VDC) bool { return v.ID == vdc.ID }) {
			vdcs = append(vdcs, vdc)
		}
	}
	if len(vdcs) == 0 && lost != nil {
		return nil, lost
	}
	m.vdcs = vdcs
	m.found = now
	if lost != nil {
		m.found = time.Time{} // The VDC may become visible again.
	}
	return vdcs, nil
}

// machine converts a row of the inventory.
func (m *Machines) machine(ctx context.Context, session *vcd.Session, r vcd.VMRecord) (cpi.Machine, error) {
	placement, err := m.policy(ctx, r.VDC, r.PlacementPolicyID, session.VDCs.FindPlacementPolicy)
	if err != nil {
		return cpi.Machine{}, err
	}
	sizing, err := m.policy(ctx, r.VDC, r.SizingPolicyID, session.VDCs.FindSizingPolicy)
	if err != nil {
		return cpi.Machine{}, err
	}
	zone := m.zoneOf(r.VDC, placement.Ref)
	inVDC := slices.ContainsFunc(m.vdcs, func(v vcd.VDC) bool { return v.ID == r.VDC.ID })
	machine := cpi.Machine{
		ProviderID: providerid.Format(r.ID),
		Name:       r.Name,
		Power:      powerOf(r.Status),
		Zone:       zone.Name,
		Region:     zone.Region,
		Type:       typeOf(sizing, r.CPUs, r.MemoryMiB),
		Doubtful:   !inVDC || !slices.Contains(m.opts.VApps, r.VApp.Name),
		Revision:   strings.Join([]string{r.Name, r.Status.String(), r.PrimaryAddress, r.PrimaryNetwork, r.VApp.ID}, "|"),
	}
	if a, err := netip.ParseAddr(r.PrimaryAddress); err == nil {
		machine.NICs = []cpi.NIC{{Network: r.PrimaryNetwork, Primary: true, Addresses: []netip.Addr{a.Unmap()}}}
	}
	return machine, nil
}

// typeOf returns the instance type of a VM: the sizing policy that set its size, or else the size.
func typeOf(policy vcd.Policy, cpus, memoryMiB int64) string {
	if label := cpi.LabelValue(policy.Name); label != "" && policy.CPUs+policy.MemoryMiB > 0 {
		return label
	}
	if cpus == 0 || memoryMiB == 0 {
		return ""
	}
	return fmt.Sprintf("%dcpu-%dmib", cpus, memoryMiB)
}

// policy returns the policy with a URN, or the zero value if the user may not see it. The result is cached.
func (m *Machines) policy(
	ctx context.Context, vdc vcd.Ref, id string, find func(context.Context, vcd.VDC, string) (vcd.Policy, error),
) (vcd.Policy, error) {
	if id == "" {
		return vcd.Policy{}, nil
	}
	if policy, ok := m.policies[id]; ok {
		return policy, nil
	}
	policy, err := find(ctx, vcd.VDC{Ref: vdc}, id)
	if err != nil && !hidden(err) && !errors.Is(err, vcd.ErrInvalid) {
		return vcd.Policy{}, fmt.Errorf("finding the policies of VDC %s: %w", vdc.Name, err)
	}
	m.policies[id] = policy
	return policy, nil
}

// zoneOf returns the zone of VMs with a placement policy in a VDC: the most specific configured zone, or else the VDC
// if VDCs are default zones.
func (m *Machines) zoneOf(vdc, policy vcd.Ref) Zone {
	whole := Zone{Name: cpi.LabelValue(vdc.Name), Region: m.opts.Region}
	if m.opts.NoDefaultZone {
		whole.Name = ""
	}
	for _, zone := range m.opts.Zones {
		if !names(zone.VDC, vdc) {
			continue
		}
		if zone.Region == "" {
			zone.Region = m.opts.Region
		}
		switch {
		case zone.PlacementPolicy == "":
			whole = zone
		case names(zone.PlacementPolicy, policy):
			return zone
		}
	}
	return whole
}

// names reports whether a name or URN identifies an object.
func names(nameOrURN string, of vcd.Ref) bool {
	return nameOrURN != "" && (nameOrURN == of.Name || strings.EqualFold(nameOrURN, of.ID))
}

func powerOf(status vcd.Status) cpi.Power {
	switch status {
	case vcd.StatusPoweredOn:
		return cpi.PowerOn
	case vcd.StatusPoweredOff, vcd.StatusSuspended, vcd.StatusPartiallySuspended:
		return cpi.PowerOff
	default:
		return cpi.PowerUnknown
	}
}
