// SPDX-License-Identifier: Apache-2.0

// Package leaks finds what clusters have in a VMware Cloud Director by markers and names, and deletes what is left of
// clusters that are gone. It knows of Kubernetes only which clusters there are.
package leaks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Kinds of objects that are not on edge gateways; the others are those of package lb.
const (
	KindVApp   = "vapp"
	KindVM     = "vm"
	KindDisk   = "named-disk"
	KindEntity = "entity"
)

// window is how far back changes are read from VCD's log.
const window = 24 * time.Hour

// An Object is something in VCD that carries the id of a cluster.
type Object struct {
	Cluster string    `json:"cluster"`
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	By      lb.Writer `json:"by"`
	Where   string    `json:"where,omitempty"` // VDC or edge gateway
	Parent  string    `json:"parent,omitempty"`
	Power   string    `json:"power,omitempty"` // of vApps and VMs
	// Addresses of what is on an edge gateway and of VMs.
	Addresses []string `json:"addresses,omitempty"`
	// Created is zero where VCD does not show it. Changed is the last change in the last 24 hours, zero if there was
	// none.
	Created time.Time `json:"created,omitzero"`
	Changed time.Time `json:"changed,omitzero"`

	gateway  string   // URN
	space    string   // URN of the IP Space of a floating IP that no gateway shows
	parentID string   // URN of the vApp of a VM
	lives    bool     // a VM that is not known to be off
	health   string   // of a virtual service, in VCD's words
	pool     string   // URN of that of a virtual service
	inside   string   // address that a NAT rule leads to
	disks    []string // named disks attached to a VM
	guests   []string // names of VMs in a vApp that are not the cluster's
}

// An Inventory is everything of all clusters that the user is shown.
type Inventory struct {
	Objects []Object
	Hidden  []string // why some are not shown
	Taken   time.Time

	gateways []string // URNs
}

// Of returns the objects of a cluster.
func (i Inventory) Of(cluster string) []Object {
	return slices.DeleteFunc(slices.Clone(i.Objects), func(o Object) bool { return o.Cluster != cluster })
}

// Left returns the objects of clusters that are not alive.
func (i Inventory) Left(alive Alive) []Object {
	return slices.DeleteFunc(slices.Clone(i.Objects), func(o Object) bool { return alive.Has(o.Cluster) })
}

// Take reads what all clusters have in the organization of a session. It changes nothing.
func Take(ctx context.Context, s *vcd.Session, now time.Time) (Inventory, error) {
	t := &taking{session: s, inventory: Inventory{Taken: now}}
	for _, read := range []func(context.Context) error{t.vApps, t.disks, t.gateways, t.entities, t.changes} {
		if err := read(ctx); err != nil {
			return Inventory{}, err
		}
	}
	slices.SortFunc(t.inventory.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Parent, b.Parent),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return t.inventory, nil
}

// atATime is how many vApps are read at a time.
const atATime = 6

// taking is an inventory in the making.
type taking struct {
	session *vcd.Session

	mu        sync.Mutex
	inventory Inventory
}

func (t *taking) add(objects ...Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inventory.Objects = append(t.inventory.Objects, objects...)
}

func (t *taking) hide(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inventory.Hidden = append(t.inventory.Hidden, fmt.Sprintf(format, args...))
}

// vApps reads all vApps with their VMs: of neither, a query shows the description.
func (t *taking) vApps(ctx context.Context) error {
	records, err := t.session.VApps.List(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for _, record := range records {
		group.Go(func() error { return t.vApp(ctx, record) })
	}
	return group.Wait()
}

func (t *taking) vApp(ctx context.Context, record vcd.VAppRecord) error {
	found, err := t.session.VApps.Details(ctx, record.ID)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return nil // It was deleted meanwhile.
	case errors.Is(err, vcd.ErrForbidden): // So it may have been, or it may not be read.
		t.hide("vApp %s is not visible: %v", record.Name, err)
		return nil
	case err != nil:
		return fmt.Errorf("reading vApp %s: %w", record.Name, err)
	}
	cluster, by, err := t.ownerOf(ctx, found)
	if err != nil {
		return err
	}
	if cluster != "" {
		t.add(Object{
			Cluster: cluster,
			Kind:    KindVApp,
			Name:    found.Name,
			ID:      found.ID,
			By:      by,
			Where:   record.VDC.Name,
			Power:   found.Status.String(),
			Created: earliest(found.Created, record.Created),
			guests:  t.guests(found, cluster, by),
		})
	}
	for _, vm := range found.Children {
		if owner, by := ownerOfVM(vm, cluster, by); owner != "" {
			t.add(objectOfVM(vm, owner, by, found, record))
		}
	}
	return nil
}

// ownerOf returns the cluster of a vApp. That of CAPVCD is in its metadata, which are read only if the description is
// as CAPVCD writes it.
func (t *taking) ownerOf(ctx context.Context, v vcd.VAppDetails) (cluster string, by lb.Writer, err error) {
	if marker, ok := vcd.ParseMarker(v.Description); ok {
		return marker.Cluster, lb.WriterThis, nil
	}
	if v.Description != capvcd.VAppDescription(v.Name) {
		return "", "", nil
	}
	cluster, err = t.session.VApps.MetadataValue(ctx, v.ID, capvcd.MetadataKey)
	return cluster, lb.WriterCAPVCD, err
}

// ownerOfVM returns the cluster of a VM. Those of CAPVCD are marked by their vApp only.
func ownerOfVM(vm vcd.VM, ofVApp string, by lb.Writer) (string, lb.Writer) {
	if marker, ok := vcd.ParseMarker(vm.Description); ok {
		return marker.Cluster, lb.WriterThis
	}
	if by == lb.WriterCAPVCD && vm.Description == capvcd.VMDescription {
		return ofVApp, by
	}
	return "", ""
}

// guests are the VMs in a vApp that are not its cluster's.
func (t *taking) guests(v vcd.VAppDetails, cluster string, by lb.Writer) []string {
	var names []string
	for _, vm := range v.Children {
		if owner, _ := ownerOfVM(vm, cluster, by); owner != cluster {
			names = append(names, vm.Name)
		}
	}
	return names
}

func objectOfVM(vm vcd.VM, cluster string, by lb.Writer, in vcd.VAppDetails, record vcd.VAppRecord) Object {
	o := Object{
		Cluster:  cluster,
		Kind:     KindVM,
		Name:     vm.Name,
		ID:       vm.ID,
		By:       by,
		Where:    record.VDC.Name,
		Parent:   in.Name,
		Power:    vm.Status.String(),
		Created:  earliest(in.Created, record.Created),
		parentID: in.ID,
		lives:    lives(vm.Status),
	}
	for _, nic := range vm.NICs {
		if nic.Address != "" {
			o.Addresses = append(o.Addresses, nic.Address)
		}
	}
	for _, disk := range vm.IndependentDisks() {
		o.disks = append(o.disks, disk.Name)
	}
	return o
}

// lives reports whether a VM may run, or be what a person goes on with: all but those that are known to be off.
func lives(s vcd.Status) bool {
	return !slices.Contains([]vcd.Status{
		vcd.StatusPoweredOff, vcd.StatusResolved, vcd.StatusUnresolved, vcd.StatusFailedCreation,
	}, s)
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// disks reads the named disks of all VDCs.
func (t *taking) disks(ctx context.Context) error {
	vdcs, err := t.session.VDCs.List(ctx)
	if err != nil {
		return err
	}
	for _, vdc := range vdcs {
		disks, err := t.session.Disks.NamedDisks(ctx, vcd.VDC{Ref: vdc})
		if err != nil {
			return err
		}
		for _, disk := range disks {
			if cluster := disk.Cluster(); cluster != "" {
				o := Object{Cluster: cluster, Kind: KindDisk, Name: disk.Name, ID: disk.ID, By: "CSI", Where: vdc.Name}
				if disk.Attached {
					o.Power = "ATTACHED"
				}
				t.add(o)
			}
		}
	}
	return nil
}

// gateways reads what is on the edge gateways that the user is shown, and what the organization has beside them.
func (t *taking) gateways(ctx context.Context) error {
	visible, err := t.session.Gateways.Visible(ctx)
	if errors.Is(err, vcd.ErrForbidden) {
		t.hide("edge gateways are not visible: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	driver := driverOf(t.session)
	seen := map[string]bool{}
	for _, g := range visible {
		t.inventory.gateways = append(t.inventory.gateways, g.ID)
		marked, hidden, err := driver.Marked(ctx, g.ID)
		if errors.Is(err, loadbalancer.ErrRefused) {
			t.hide("edge gateway %s: %v", g.Name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("reading edge gateway %s: %w", g.Name, err)
		}
		for _, why := range hidden {
			t.hide("edge gateway %s: %v", g.Name, why)
		}
		for _, m := range marked {
			if !seen[m.ID] {
				seen[m.ID] = true
				t.add(objectOn(g, m))
			}
		}
	}
	return t.floatingIPs(ctx, seen)
}

// floatingIPs reads the addresses of IP Spaces that are allocated to the organization and that no visible gateway
// showed: they outlive the gateway that they were allocated for. One of these has no gateway.
func (t *taking) floatingIPs(ctx context.Context, seen map[string]bool) error {
	spaces, err := t.session.IPSpaces.Public(ctx)
	if errors.Is(err, vcd.ErrForbidden) {
		t.hide("IP Spaces are not visible: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, space := range spaces {
		allocated, err := t.session.IPSpaces.FloatingIPs(ctx, space.ID)
		if errors.Is(err, vcd.ErrForbidden) {
			t.hide("floating IPs of IP Space %s are not visible: %v", space.Name, err)
			continue
		}
		if err != nil {
			return err
		}
		for _, ip := range allocated {
			cluster, by := lb.ClusterOf(lb.KindAddress, "", ip.Description)
			if cluster == "" || seen[ip.ID] {
				continue
			}
			t.add(Object{
				Cluster:   cluster,
				Kind:      string(lb.KindAddress),
				Name:      ip.Address.String(),
				ID:        ip.ID,
				By:        by,
				Where:     space.Name,
				Addresses: []string{ip.Address.String()},
				space:     space.ID,
			})
		}
	}
	return nil
}

func driverOf(s *vcd.Session) *edge.Driver {
	return edge.New(func(context.Context) (*vcd.Session, error) { return s, nil }, edge.Options{SourceRanges: true})
}

func objectOn(g vcd.Gateway, m edge.Marked) Object {
	o := Object{
		Cluster: m.Cluster,
		Kind:    string(m.Kind),
		Name:    m.Name,
		ID:      m.ID,
		By:      m.By,
		gateway: g.ID,
		health:  m.Health,
		pool:    m.Pool.ID,
	}
	if m.Inside.IsValid() {
		o.inside = m.Inside.String()
	}
	if lb.OnGateway(m.Kind) {
		o.Where = g.Name
	}
	for _, a := range m.Addresses {
		o.Addresses = append(o.Addresses, a.String())
	}
	if o.Name == "" {
		o.Name = strings.Join(o.Addresses, " ")
	}
	return o
}

// entities reads the runtime defined entities of clusters.
func (t *taking) entities(ctx context.Context) error {
	entities, err := t.session.Entities.OfType(ctx, "vmware", "capvcdCluster", "1")
	switch {
	case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrInvalid):
		return nil // There is no such type.
	case errors.Is(err, vcd.ErrForbidden):
		t.hide("runtime defined entities are not visible: %v", err)
		return nil
	}
	for _, e := range entities {
		var content struct {
			Spec struct {
				CSE json.RawMessage `json:"vcdKe"`
			} `json:"spec"`
			Status struct {
				CAPVCD struct {
					UID string `json:"uid"`
				} `json:"capvcd"`
			} `json:"status"`
		}
		_ = json.Unmarshal(e.Content, &content) // what is not as expected has no cluster but itself
		o := Object{
			Cluster: cmp.Or(content.Status.CAPVCD.UID, e.ID),
			Kind:    KindEntity,
			Name:    e.Name,
			ID:      e.ID,
			By:      lb.WriterThis,
		}
		if len(content.Spec.CSE) > 0 || strings.HasPrefix(o.Cluster, "urn:") {
			o.By = lb.WriterCAPVCD
		}
		t.add(o)
	}
	return err
}

// changes reads from VCD's log what changed of late.
func (t *taking) changes(ctx context.Context) error {
	tasks, err := t.session.Tasks.Since(ctx, t.inventory.Taken.Add(-window))
	if err != nil {
		return fmt.Errorf("reading recent changes: %w", err)
	}
	last := map[string]time.Time{}
	for _, task := range tasks {
		id := bare(task.Owner)
		for _, at := range []time.Time{task.Started, task.Ended} {
			if at.After(last[id]) {
				last[id] = at
			}
		}
	}
	for i := range t.inventory.Objects {
		o := &t.inventory.Objects[i]
		o.Changed = last[bare(o.ID)]
		if t.inventory.Taken.Sub(o.Created) < window && o.Created.After(o.Changed) {
			o.Changed = o.Created
		}
	}
	return nil
}

// bare returns the last part of a URN: VCD's log names kinds in its own ways.
func bare(urn string) string { return urn[strings.LastIndex(urn, ":")+1:] }
