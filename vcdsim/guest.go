// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Guest is what runs inside the VMs. It is called without the simulator's lock, from goroutines of its own.
type Guest interface {
	// PowerOn boots the VM's system. An error means that it does not come up; its text is kept in State and in the
	// control API. ctx ends when the VM is powered off.
	PowerOn(ctx context.Context, vm GuestVM) (GuestReport, error)
	// PowerOff is called when the VM is off.
	PowerOff(ctx context.Context, vmID string)
	// Delete is called when the VM and its disks were deleted.
	Delete(ctx context.Context, vmID string)
}

// A PowerGuest is a Guest with more of a machine than on and off. A Guest that is none is powered off instead of shut
// down, and does not notice that its VM is suspended.
type PowerGuest interface {
	// Shutdown is called instead of PowerOff when VMware Tools shut the guest down or reboot it.
	Shutdown(ctx context.Context, vmID string)
	// Suspend is called when the VM is suspended; PowerOff may follow.
	Suspend(ctx context.Context, vmID string)
	// Resume is called when a suspended VM is on again.
	Resume(ctx context.Context, vmID string)
}

// A GuestHost is what a guest reports to while its VM is on, from any goroutine, also before PowerOn returns. Its
// methods do nothing once the VM was powered off or reset.
type GuestHost interface {
	// Report stores what changed: addresses, hostname, extra configuration.
	Report(GuestReport)
	// PoweredOff is called when the guest ended by itself, such as by the command poweroff.
	PoweredOff()
}

// A GuestVM is a VM as its guest sees it.
type GuestVM struct {
	Host              GuestHost
	ID                string // bare UUID
	UUID              string // of its firmware
	Hostname          string // from guest customization; without it that of the image, which is localhost
	Customized        bool   // by guest customization, its network, too
	Name              string
	VAppName          string
	OS                string
	CPUs              int64
	MemoryMiB         int64
	ExtraConfig       map[string]string
	Properties        map[string]string // OVF environment
	NICs              []GuestNIC
	Disks             []GuestDisk // independent ones that are attached
	TemplateName      string
	KubernetesVersion string
}

// A GuestNIC is a network card with what is on its wire.
type GuestNIC struct {
	Index   int
	MAC     string
	Network string
	Segment string     // bare id of the organization VDC network, or of the vApp network that is connected to none
	Routed  bool       // by an edge gateway
	Mode    string     // POOL, DHCP, MANUAL or NONE
	Primary bool       // VCD's primary NIC
	Address netip.Addr // assigned by VCD, or what its DHCP server offers; invalid if none
	Prefix  netip.Prefix
	Gateway netip.Addr
	DNS     []netip.Addr
	// Secondary is the address in the second subnet, with the length of its prefix; invalid if none.
	Secondary netip.Prefix
}

// A GuestDisk is an independent disk that is attached to the VM.
type GuestDisk struct {
	ID        string // bare UUID
	SizeMiB   int64
	Bus, Unit int
}

// A GuestReport is what VMware Tools report of a guest.
type GuestReport struct {
	Addresses   map[string]string // MAC to the address the guest uses
	ExtraConfig map[string]string // keys the guest writes; an empty value removes the key
	Hostname    string
}

// guests calls the Guest in the background, in order for each VM.
type guests struct {
	cloud   *cloud
	guest   Guest // nil: a VM just powers on
	running sync.WaitGroup
	boots   map[string]context.CancelFunc
	queues  map[string]chan struct{} // of each VM's guest: closed when the last call ended
}

// boot schedules the boot of a VM's guest, after the time the profile gives.
func (g *guests) boot(vm *store.VM) {
	d := g.cloud.profile.jittered(durationGuestBoot, 0, g.cloud.ids.Rand)
	vm.Boot = store.Boot{Generation: vm.Boot.Generation + 1, Due: g.cloud.clock.Now().Add(d)}
	vm.BootOptions.EnterBIOS = false
	id := vm.ID
	generation := vm.Boot.Generation
	if d <= 0 {
		g.cloud.pending = append(g.cloud.pending, func() { g.bootNow(id, generation) })
		return
	}
	g.cloud.alarms.after(d, store.Alarm{Bell: bellBoot, ID: id, Generation: generation})
}

// bootNow boots the guest, unless the VM was powered off in the meantime.
func (g *guests) bootNow(id string, generation int) {
	vm := g.cloud.store.VMs[id]
	if vm == nil || vm.Status != store.PoweredOn || vm.Boot.Generation != generation {
		return
	}
	vm.Boot.Due = time.Time{}
	for i := range vm.NICs {
		ipamOf(g.cloud).leaseDHCP(vm, &vm.NICs[i])
	}
	if g.guest == nil {
		vm.Boot.Up = true
		for i := range vm.NICs {
			if nic := &vm.NICs[i]; nic.Mode == store.ModeDHCP {
				nic.Address = nic.Lease
			}
		}
		return
	}
	ctx, cancel := context.WithCancel(g.cloud.ctx) //nolint:gosec // notify calls cancel when the VM goes off
	g.boots[id] = cancel
	view := g.view(vm)
	view.Host = guestHost{g, id, generation}
	g.call(id, func() {
		report, err := g.guest.PowerOn(ctx, view)
		g.cloud.mu.Lock()
		defer g.cloud.mu.Unlock()
		g.booted(id, generation, report, err)
		g.cloud.settle()
	})
}

// call runs f in the background, after earlier calls of the same guest.
func (g *guests) call(id string, f func()) {
	if g.cloud.ctx.Err() != nil {
		return
	}
	before := g.queues[id]
	done := make(chan struct{})
	g.queues[id] = done
	g.running.Add(1)
	go func() {
		defer g.running.Done()
		defer close(done)
		if before != nil {
			<-before
		}
		f()
	}()
}

// imageHostname is the name that guests have from their image.
const imageHostname = "localhost"

func (g *guests) view(vm *store.VM) GuestVM {
	c := vm.Clone()
	vapp := g.cloud.store.VApps[vm.VAppID]
	out := GuestVM{
		ID:                c.ID,
		UUID:              g.cloud.ids.Named("bios", c.ID),
		Hostname:          imageHostname,
		Customized:        c.Customization.Enabled,
		Name:              c.Name,
		VAppName:          vapp.Name,
		OS:                c.OS,
		CPUs:              c.CPUs,
		MemoryMiB:         c.MemoryMiB,
		ExtraConfig:       c.ExtraConfig,
		Properties:        propertyValues(c.Properties),
		TemplateName:      c.TemplateName,
		KubernetesVersion: c.KubernetesVersion,
	}
	if out.Customized {
		out.Hostname = c.Customization.ComputerName
	}
	for _, nic := range c.NICs {
		out.NICs = append(out.NICs, g.card(vapp, nic, nic.Index == c.PrimaryNIC))
	}
	for _, d := range c.Disks {
		if d.DiskID != "" {
			out.Disks = append(out.Disks, GuestDisk{ID: d.DiskID, SizeMiB: d.SizeMiB, Bus: d.Bus, Unit: d.Unit})
		}
	}
	return out
}

func (g *guests) card(vapp *store.VApp, nic store.NIC, primary bool) GuestNIC {
	card := GuestNIC{Index: nic.Index, MAC: nic.MAC, Network: nic.Network, Mode: nic.Mode, Primary: primary}
	address := nic.Address
	if nic.Mode == store.ModeDHCP {
		address = nic.Lease
	}
	card.Address, _ = netip.ParseAddr(address) // invalid when there is none
	n := vapp.Network(nic.Network)
	if n == nil {
		return card
	}
	sub := ipamOf(g.cloud).subnetOf(n)
	card.Segment = n.Segment()
	card.Prefix = sub.gateway.Masked()
	card.Gateway = sub.gateway.Addr()
	if second, ok := ipamOf(g.cloud).secondSubnetOf(n); ok {
		if address, err := netip.ParseAddr(nic.Secondary); err == nil {
			card.Secondary = netip.PrefixFrom(address, second.gateway.Bits())
		}
	}
	if _, _, parent := g.cloud.store.Network(n.ParentID); parent != nil {
		card.DNS = append(card.DNS, parent.DNS...)
		card.Routed = parent.Type == store.Routed
	}
	return card
}

// booted stores what the guest reported.
func (g *guests) booted(id string, generation int, report GuestReport, err error) {
	vm := g.cloud.store.VMs[id]
	if vm == nil || vm.Boot.Generation != generation || vm.Status != store.PoweredOn {
		return
	}
	if err != nil {
		vm.Boot.Failure = err.Error()
		g.cloud.log.Warn("A guest did not come up", "vm", vm.Name, "reason", err)
		return
	}
	vm.Boot.Up = true
	g.report(vm, report)
}

// report stores what a guest reported.
func (g *guests) report(vm *store.VM, report GuestReport) {
	vm.Boot.Hostname = cmp.Or(report.Hostname, vm.Boot.Hostname)
	for i := range vm.NICs {
		if nic := &vm.NICs[i]; nic.Mode == store.ModeDHCP {
			nic.Address = cmp.Or(report.Addresses[nic.MAC], nic.Address)
		}
	}
	g.writeExtraConfig(vm, report.ExtraConfig)
}

// guestHost is the host of one boot.
type guestHost struct {
	guests     *guests
	vmID       string
	generation int
}

// Report implements GuestHost.
func (h guestHost) Report(r GuestReport) { h.change(func(vm *store.VM) { h.guests.report(vm, r) }) }

// PoweredOff implements GuestHost. The VM stays deployed, as after poweroff in a VM of VCD.
func (h guestHost) PoweredOff() {
	h.change(func(vm *store.VM) { vmsOf(h.guests.cloud).setPower(vm, store.PoweredOff, false) })
}

// change runs f on the VM if it is still in the same boot.
func (h guestHost) change(f func(*store.VM)) {
	s := h.guests.cloud
	s.mu.Lock()
	defer s.mu.Unlock()
	vm := s.store.VMs[h.vmID]
	if vm == nil || vm.Boot.Generation != h.generation || vm.Status != store.PoweredOn {
		return
	}
	f(vm)
	s.settle()
}

// writeExtraConfig stores what the guest wrote to its extra configuration; VCD notices a change and is busy with it.
func (g *guests) writeExtraConfig(vm *store.VM, keys map[string]string) {
	if len(keys) == 0 {
		return
	}
	mergeExtraConfig(vm, keys)
	if g.cloud.assume.GuestWriteBusy && g.cloud.tasks.checkIdle(vm.ID) == nil {
		g.cloud.tasks.start(nil, store.Work{Op: opGuestWrite, VM: vm.ID}, vm.Entity(), []string{vm.ID})
	}
}

// mergeExtraConfig sets keys; an empty value removes one.
func mergeExtraConfig(vm *store.VM, keys map[string]string) {
	if vm.ExtraConfig == nil {
		vm.ExtraConfig = map[string]string{}
	}
	for k, v := range keys {
		if v == "" {
			delete(vm.ExtraConfig, k)
			continue
		}
		vm.ExtraConfig[k] = v
	}
}

// halt ends the guest of a VM that is no longer on; gently is through VMware Tools.
func (g *guests) halt(vm *store.VM, gently bool) {
	vm.Boot = store.Boot{Generation: vm.Boot.Generation + 1}
	for i := range vm.NICs {
		if vm.NICs[i].Mode == store.ModeDHCP {
			vm.NICs[i].Address = ""
		}
	}
	g.notify(vm.ID, func(guest Guest, ctx context.Context, id string) {
		if p, ok := guest.(PowerGuest); ok && gently {
			p.Shutdown(ctx, id)
			return
		}
		guest.PowerOff(ctx, id)
	})
}

// suspend tells the guest that its VM was suspended.
func (g *guests) suspend(vm *store.VM) { g.suspended(vm, PowerGuest.Suspend) }

// resume tells the guest that its suspended VM is on again.
func (g *guests) resume(vm *store.VM) { g.suspended(vm, PowerGuest.Resume) }

// forget ends the guest of a VM that is deleted.
func (g *guests) forget(vmID string) {
	g.notify(vmID, Guest.Delete)
	delete(g.queues, vmID)
}

// suspended passes on that a VM was suspended or resumed.
func (g *guests) suspended(vm *store.VM, method func(PowerGuest, context.Context, string)) {
	if p, ok := g.guest.(PowerGuest); ok {
		id := vm.ID
		g.call(id, func() { method(p, g.cloud.ctx, id) })
	}
}

// notify calls the guest in the background, after ending its boot.
func (g *guests) notify(id string, method func(Guest, context.Context, string)) {
	if cancel := g.boots[id]; cancel != nil {
		cancel()
		delete(g.boots, id)
	}
	if g.guest == nil {
		return
	}
	g.call(id, func() { method(g.guest, g.cloud.ctx, id) })
}

// restore makes the guests match a restored store: guests of lost VMs end, those of VMs that are on in the dump
// and were off boot.
func (g *guests) restore(old *store.Store) {
	for _, vm := range store.Sorted(old.VMs) {
		if g.cloud.store.VMs[vm.ID] == nil {
			g.forget(vm.ID)
		}
	}
	if g.guest == nil {
		return
	}
	for _, vm := range store.Sorted(g.cloud.store.VMs) {
		g.restoreOne(vm, old.VMs[vm.ID])
	}
}

// restoreOne makes one guest match its VM; was is the VM before, nil if there was none.
func (g *guests) restoreOne(vm, was *store.VM) {
	if was != nil {
		if was.Status == vm.Status && was.Boot.Generation == vm.Boot.Generation {
			return
		}
		if was.Status == store.PoweredOn {
			g.notify(vm.ID, Guest.PowerOff)
		}
	}
	if vm.Status != store.PoweredOn || !vm.Boot.Due.IsZero() {
		return // off, or an alarm boots it
	}
	if was != nil {
		vm.Boot.Generation = max(vm.Boot.Generation, was.Boot.Generation)
	}
	g.boot(vm)
}
