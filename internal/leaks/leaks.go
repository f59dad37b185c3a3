// SPDX-License-Identifier: Apache-2.0

// Package leaks finds objects of clusters in VMware Cloud Director by their markers and names, and deletes orphaned
// objects. Its only knowledge of Kubernetes is which clusters exist.
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

// Kinds of objects that are not on edge gateways. Package lb defines the other kinds.
const (
	KindVApp   = "vapp"
	KindVM     = "vm"
	KindDisk   = "named-disk"
	KindEntity = "entity"
)

// attached is the state of a named disk that a VM uses.
const attached = "ATTACHED"

// window is the period for which changes are read from VCD's task log.
const window = 24 * time.Hour

// An Object is an object in VCD that carries the ID of a cluster.
type Object struct {
	Cluster string    `json:"cluster"`
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	By      lb.Writer `json:"by"`
	Where   string    `json:"where,omitempty"` // VDC or edge gateway
	Parent  string    `json:"parent,omitempty"`
	Power   string    `json:"power,omitempty"` // of vApps and VMs; ATTACHED for named disks that a VM uses
	// Addresses are set for VMs and for objects on edge gateways.
	Addresses []string `json:"addresses,omitempty"`
	// Created is zero if VCD does not report it. Changed is the last change in the last 24 hours, or zero if there was
	// none.
	Created time.Time `json:"created,omitzero"`
	Changed time.Time `json:"changed,omitzero"`

	gateway      string   // URN
	space        string   // URN of the IP Space of a floating IP that no gateway lists
	parentID     string   // URN of the vApp of a VM
	machine      string   // UID of the machine in the marker of a VM
	maybeRunning bool     // the VM is not known to be powered off
	health       string   // health of a virtual service, as VCD reports it
	pool         string   // URN of the pool of a virtual service
	inside       string   // internal address of a NAT rule
	disks        []string // named disks that are attached to a VM
	foreignVMs   []string // names of VMs in a vApp that do not belong to its cluster
}

// An Inventory holds the objects of all clusters that are visible to the user.
type Inventory struct {
	Objects []Object
	Hidden  []string // reasons why some objects are not visible
	Taken   time.Time

	gateways []string // URNs
}

// Of returns the objects of a cluster.
func (i Inventory) Of(cluster string) []Object {
	return slices.DeleteFunc(slices.Clone(i.Objects), func(o Object) bool { return o.Cluster != cluster })
}

// Left returns the objects of clusters that no longer exist.
func (i Inventory) Left(alive Alive) []Object {
	return slices.DeleteFunc(slices.Clone(i.Objects), func(o Object) bool { return alive.Has(o.Cluster) })
}

// Take reads the objects of all clusters in the organization of a session. It changes nothing.
func Take(ctx context.Context, s *vcd.Session, now time.Time) (Inventory, error) {
	c := &collector{session: s, inventory: Inventory{Taken: now}}
	for _, read := range []func(context.Context) error{c.vApps, c.disks, c.gateways, c.entities, c.changes} {
		if err := read(ctx); err != nil {
			return Inventory{}, err
		}
	}
	slices.SortFunc(c.inventory.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Parent, b.Parent),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return c.inventory, nil
}

// maxConcurrentReads is the number of vApps that are read concurrently.
const maxConcurrentReads = 6

// collector builds an inventory.
type collector struct {
	session *vcd.Session

	mu        sync.Mutex
	inventory Inventory
}

func (c *collector) add(objects ...Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inventory.Objects = append(c.inventory.Objects, objects...)
}

func (c *collector) hide(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inventory.Hidden = append(c.inventory.Hidden, fmt.Sprintf(format, args...))
}

// vApps reads each vApp with its VMs, because queries do not return the descriptions of either.
func (c *collector) vApps(ctx context.Context) error {
	records, err := c.session.VApps.List(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentReads)
	for _, record := range records {
		group.Go(func() error { return c.vApp(ctx, record) })
	}
	return group.Wait()
}

func (c *collector) vApp(ctx context.Context, record vcd.VAppRecord) error {
	found, err := c.session.VApps.Details(ctx, record.ID)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return nil // deleted in the meantime
	case errors.Is(err, vcd.ErrForbidden): // deleted in the meantime, or not readable for the user
		c.hide("vApp %s is not visible: %v", record.Name, err)
		return nil
	case err != nil:
		return fmt.Errorf("reading vApp %s: %w", record.Name, err)
	}
	cluster, by, err := c.ownerOf(ctx, found)
	if err != nil {
		return err
	}
	if cluster != "" {
		c.add(Object{
			Cluster:    cluster,
			Kind:       KindVApp,
			Name:       found.Name,
			ID:         found.ID,
			By:         by,
			Where:      record.VDC.Name,
			Power:      found.Status.String(),
			Created:    earliest(found.Created, record.Created),
			foreignVMs: c.foreignVMs(found, cluster, by),
		})
	}
	for _, vm := range found.Children {
		if owner, by := ownerOfVM(vm, cluster, by); owner != "" {
			c.add(objectOfVM(vm, owner, by, found, record))
		}
	}
	return nil
}

// ownerOf returns the cluster of a vApp. CAPVCD records the cluster in the metadata of the vApp. The metadata are read
// only if CAPVCD wrote the description.
func (c *collector) ownerOf(ctx context.Context, v vcd.VAppDetails) (cluster string, by lb.Writer, err error) {
	if marker, ok := vcd.ParseMarker(v.Description); ok {
		return marker.Cluster, lb.WriterThis, nil
	}
	if v.Description != capvcd.VAppDescription(v.Name) {
		return "", "", nil
	}
	cluster, err = c.session.VApps.MetadataValue(ctx, v.ID, capvcd.MetadataKey)
	return cluster, lb.WriterCAPVCD, err
}

// ownerOfVM returns the cluster of a VM. For VMs of CAPVCD, only their vApp is marked.
func ownerOfVM(vm vcd.VM, ofVApp string, by lb.Writer) (string, lb.Writer) {
	if marker, ok := vcd.ParseMarker(vm.Description); ok {
		return marker.Cluster, lb.WriterThis
	}
	if by == lb.WriterCAPVCD && vm.Description == capvcd.VMDescription {
		return ofVApp, by
	}
	return "", ""
}

// foreignVMs returns the names of VMs in a vApp that do not belong to its cluster.
func (c *collector) foreignVMs(v vcd.VAppDetails, cluster string, by lb.Writer) []string {
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
		Cluster:      cluster,
		Kind:         KindVM,
		Name:         vm.Name,
		ID:           vm.ID,
		By:           by,
		Where:        record.VDC.Name,
		Parent:       in.Name,
		Power:        vm.Status.String(),
		Created:      earliest(in.Created, record.Created),
		parentID:     in.ID,
		maybeRunning: maybeRunning(vm.Status),
	}
	if marker, ok := vcd.ParseMarker(vm.Description); ok {
		o.machine = marker.Machine
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

// maybeRunning reports whether a VM may be running or still in use. That is any VM that is not known to be powered off.
func maybeRunning(s vcd.Status) bool {
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

// disks reads the named disks in all VDCs.
func (c *collector) disks(ctx context.Context) error {
	vdcs, err := c.session.VDCs.List(ctx)
	if err != nil {
		return err
	}
	for _, vdc := range vdcs {
		disks, err := c.session.Disks.NamedDisks(ctx, vcd.VDC{Ref: vdc})
		if err != nil {
			return err
		}
		for _, disk := range disks {
			if cluster := disk.Cluster(); cluster != "" {
				o := Object{Cluster: cluster, Kind: KindDisk, Name: disk.Name, ID: disk.ID, By: "CSI", Where: vdc.Name}
				if disk.Attached {
					o.Power = attached
				}
				c.add(o)
			}
		}
	}
	return nil
}

// gateways reads the objects on the edge gateways that are visible to the user, and the related objects of the
// organization.
func (c *collector) gateways(ctx context.Context) error {
	visible, err := c.session.Gateways.Visible(ctx)
	if errors.Is(err, vcd.ErrForbidden) {
		c.hide("edge gateways are not visible: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	driver := driverOf(c.session)
	seen := map[string]bool{}
	for _, g := range visible {
		c.inventory.gateways = append(c.inventory.gateways, g.ID)
		marked, hidden, err := driver.Marked(ctx, g.ID)
		if errors.Is(err, loadbalancer.ErrRefused) {
			c.hide("edge gateway %s: %v", g.Name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("reading edge gateway %s: %w", g.Name, err)
		}
		for _, why := range hidden {
			c.hide("edge gateway %s: %v", g.Name, why)
		}
		for _, m := range marked {
			if !seen[m.ID] {
				seen[m.ID] = true
				c.add(objectOn(g, m))
			}
		}
	}
	return c.floatingIPs(ctx, seen)
}

// floatingIPs reads the addresses of IP Spaces that are allocated to the organization and that no visible gateway
// lists. They outlive the gateway for which they were allocated. These objects have no gateway.
func (c *collector) floatingIPs(ctx context.Context, seen map[string]bool) error {
	spaces, err := c.session.IPSpaces.Public(ctx)
	if errors.Is(err, vcd.ErrForbidden) {
		c.hide("IP Spaces are not visible: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, space := range spaces {
		allocated, err := c.session.IPSpaces.FloatingIPs(ctx, space.ID)
		if errors.Is(err, vcd.ErrForbidden) {
			c.hide("floating IPs of IP Space %s are not visible: %v", space.Name, err)
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
			c.add(Object{
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
func (c *collector) entities(ctx context.Context) error {
	entities, err := c.session.Entities.OfType(ctx, "vmware", "capvcdCluster", "1")
	switch {
	case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrInvalid):
		return nil // the type does not exist
	case errors.Is(err, vcd.ErrForbidden):
		c.hide("runtime defined entities are not visible: %v", err)
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
		_ = json.Unmarshal(e.Content, &content) // an entity without the expected content is its own cluster
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
		c.add(o)
	}
	return err
}

// changes reads recent changes from VCD's task log.
func (c *collector) changes(ctx context.Context) error {
	tasks, err := c.session.Tasks.Since(ctx, c.inventory.Taken.Add(-window))
	if err != nil {
		return fmt.Errorf("reading recent changes: %w", err)
	}
	last := map[string]time.Time{}
	for _, task := range tasks {
		id := lastPart(task.Owner)
		for _, at := range []time.Time{task.Started, task.Ended} {
			if at.After(last[id]) {
				last[id] = at
			}
		}
	}
	for i := range c.inventory.Objects {
		o := &c.inventory.Objects[i]
		o.Changed = last[lastPart(o.ID)]
		if c.inventory.Taken.Sub(o.Created) < window && o.Created.After(o.Changed) {
			o.Changed = o.Created
		}
	}
	return nil
}

// lastPart returns the last part of a URN, because VCD's task log uses different names for kinds.
func lastPart(urn string) string { return urn[strings.LastIndex(urn, ":")+1:] }
