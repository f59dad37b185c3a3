// SPDX-License-Identifier: Apache-2.0

package guests

import (
	"cmp"
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Guest simulates the software inside the VMs. It is called without the simulator's lock, from separate goroutines.
type Guest interface {
	// PowerOn boots the system of the VM. An error means that it failed to boot. State and the control API contain its
	// text. ctx ends when the VM is powered off.
	PowerOn(ctx context.Context, vm GuestVM) (GuestReport, error)
	// PowerOff is called after the VM was powered off.
	PowerOff(ctx context.Context, vmID string)
	// Delete is called after the VM and its disks were deleted.
	Delete(ctx context.Context, vmID string)
}

// A PowerGuest is a Guest with more power operations than on and off. Other guests are powered off instead of shut
// down, and do not notice that their VM is suspended.
type PowerGuest interface {
	// Shutdown is called instead of PowerOff when VMware Tools shuts down or reboots the guest.
	Shutdown(ctx context.Context, vmID string)
	// Suspend is called after the VM was suspended. PowerOff may follow.
	Suspend(ctx context.Context, vmID string)
	// Resume is called after a suspended VM was resumed.
	Resume(ctx context.Context, vmID string)
}

// A GuestHost receives the reports of a guest while its VM is on, from any goroutine, even before PowerOn returns. Its
// methods have no effect after the VM was powered off or reset.
type GuestHost interface {
	// Report stores changed addresses, hostnames and extra configuration.
	Report(GuestReport)
	// PoweredOff is called if the guest powered itself off, for example with the command poweroff.
	PoweredOff()
}

// A GuestVM is a VM as its guest sees it.
type GuestVM struct {
	Host              GuestHost
	ID                string // bare UUID
	UUID              string // of the firmware
	Hostname          string // from guest customization, or "localhost" from the image
	Customized        bool   // guest customization configured it, including its network
	Name              string
	VAppName          string
	OS                string
	CPUs              int64
	MemoryMiB         int64
	ExtraConfig       map[string]string
	Properties        map[string]string // OVF environment
	NICs              []GuestNIC
	Disks             []GuestDisk // attached independent disks
	TemplateName      string
	KubernetesVersion string
}

// A GuestNIC is a network card and the network that it is connected to.
type GuestNIC struct {
	Index   int
	MAC     string
	Network string
	Segment string     // bare ID of the org VDC network, or of a vApp network without one
	Routed  bool       // an edge gateway routes it
	Mode    string     // POOL, DHCP, MANUAL or NONE
	Primary bool       // VCD's primary NIC
	Address netip.Addr // assigned by VCD or offered by its DHCP server; invalid if none
	Prefix  netip.Prefix
	Gateway netip.Addr
	DNS     []netip.Addr
	// Secondary is the address and prefix length in the second subnet. It is invalid if there is none.
	Secondary netip.Prefix
}

// A GuestDisk is an independent disk that is attached to the VM.
type GuestDisk struct {
	ID        string // bare UUID
	SizeMiB   int64
	Bus, Unit int
}

// A GuestReport contains what VMware Tools reports about a guest.
type GuestReport struct {
	Addresses   map[string]string // the guest's address by MAC
	ExtraConfig map[string]string // keys that the guest writes; an empty value removes the key
	Hostname    string
}

// Guests calls the Guest in the background. The calls for each VM are made in order.
type Guests struct {
	cloud   *cloud.Cloud
	guest   Guest // nil means that VMs only power on
	running sync.WaitGroup
	boots   map[string]context.CancelFunc
	queues  map[string]chan struct{} // by VM; closed when the last call ended
}

// New returns the guests of a cloud. If guest is nil, VMs only power on.
func New(c *cloud.Cloud, guest Guest) *Guests {
	return &Guests{
		cloud:  c,
		guest:  guest,
		boots:  map[string]context.CancelFunc{},
		queues: map[string]chan struct{}{},
	}
}

// Wait waits until all guests have ended.
func (g *Guests) Wait() { g.running.Wait() }

// Boot schedules the boot of a VM's guest after the boot time of the profile.
func (g *Guests) Boot(vm *store.VM) {
	d := g.cloud.Profile.Jittered(cloud.DurationGuestBoot, 0, g.cloud.IDs.Rand)
	vm.Boot = store.Boot{Generation: vm.Boot.Generation + 1, Due: g.cloud.Clock.Now().Add(d)}
	vm.BootOptions.EnterBIOS = false
	id := vm.ID
	generation := vm.Boot.Generation
	if d <= 0 {
		g.cloud.Pending = append(g.cloud.Pending, func() { g.bootNow(id, generation) })
		return
	}
	g.cloud.Alarms.After(d, store.Alarm{Bell: cloud.BellBoot, ID: id, Generation: generation})
}

// Ring boots the guest of an alarm.
func (g *Guests) Ring(a store.Alarm) { g.bootNow(a.ID, a.Generation) }

// bootNow boots the guest, unless the VM was powered off in the meantime.
func (g *Guests) bootNow(id string, generation int) {
	vm := g.cloud.Store.VMs[id]
	if vm == nil || vm.Status != store.PoweredOn || vm.Boot.Generation != generation {
		return
	}
	vm.Boot.Due = time.Time{}
	for i := range vm.NICs {
		machines.IPAMOf(g.cloud).LeaseDHCP(vm, &vm.NICs[i])
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
	ctx, cancel := context.WithCancel(g.cloud.Ctx) //nolint:gosec // notify cancels it when the VM is powered off
	g.boots[id] = cancel
	view := g.view(vm)
	view.Host = guestHost{g, id, generation}
	g.call(id, func() {
		report, err := g.guest.PowerOn(ctx, view)
		g.cloud.Mu.Lock()
		defer g.cloud.Mu.Unlock()
		g.booted(id, generation, report, err)
		g.cloud.Settle()
	})
}

// call runs f in the background, after the earlier calls of the same guest.
func (g *Guests) call(id string, f func()) {
	if g.cloud.Ctx.Err() != nil {
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

// imageHostname is the hostname from the image.
const imageHostname = "localhost"

func (g *Guests) view(vm *store.VM) GuestVM {
	c := vm.Clone()
	vapp := g.cloud.Store.VApps[vm.VAppID]
	out := GuestVM{
		ID:                c.ID,
		UUID:              g.cloud.IDs.Named("bios", c.ID),
		Hostname:          imageHostname,
		Customized:        c.Customization.Enabled,
		Name:              c.Name,
		VAppName:          vapp.Name,
		OS:                c.OS,
		CPUs:              c.CPUs,
		MemoryMiB:         c.MemoryMiB,
		ExtraConfig:       c.ExtraConfig,
		Properties:        ovf.PropertyValues(c.Properties),
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

func (g *Guests) card(vapp *store.VApp, nic store.NIC, primary bool) GuestNIC {
	card := GuestNIC{Index: nic.Index, MAC: nic.MAC, Network: nic.Network, Mode: nic.Mode, Primary: primary}
	address := nic.Address
	if nic.Mode == store.ModeDHCP {
		address = nic.Lease
	}
	card.Address, _ = netip.ParseAddr(address) // invalid if there is none
	n := vapp.Network(nic.Network)
	if n == nil {
		return card
	}
	sub := machines.IPAMOf(g.cloud).SubnetOf(n)
	card.Segment = n.Segment()
	card.Prefix = sub.Gateway.Masked()
	card.Gateway = sub.Gateway.Addr()
	if second, ok := machines.IPAMOf(g.cloud).SecondSubnetOf(n); ok {
		if address, err := netip.ParseAddr(nic.Secondary); err == nil {
			card.Secondary = netip.PrefixFrom(address, second.Gateway.Bits())
		}
	}
	if _, _, parent := g.cloud.Store.Network(n.ParentID); parent != nil {
		card.DNS = append(card.DNS, parent.DNS...)
		card.Routed = parent.Type == store.Routed
	}
	return card
}

// booted stores the result of a boot.
func (g *Guests) booted(id string, generation int, report GuestReport, err error) {
	vm := g.cloud.Store.VMs[id]
	if vm == nil || vm.Boot.Generation != generation || vm.Status != store.PoweredOn {
		return
	}
	if err != nil {
		vm.Boot.Failure = err.Error()
		g.cloud.Log.Warn("A guest did not come up", "vm", vm.Name, "reason", err)
		return
	}
	vm.Boot.Up = true
	g.report(vm, report)
}

// report stores a report of a guest.
func (g *Guests) report(vm *store.VM, report GuestReport) {
	vm.Boot.Hostname = cmp.Or(report.Hostname, vm.Boot.Hostname)
	for i := range vm.NICs {
		if nic := &vm.NICs[i]; nic.Mode == store.ModeDHCP {
			nic.Address = cmp.Or(report.Addresses[nic.MAC], nic.Address)
		}
	}
	g.writeExtraConfig(vm, report.ExtraConfig)
}

// guestHost is the GuestHost of one boot.
type guestHost struct {
	guests     *Guests
	vmID       string
	generation int
}

// Report implements GuestHost.
func (h guestHost) Report(r GuestReport) { h.change(func(vm *store.VM) { h.guests.report(vm, r) }) }

// PoweredOff implements GuestHost. The VM stays deployed, as a VM in VCD does after poweroff.
func (h guestHost) PoweredOff() {
	h.change(func(vm *store.VM) { machines.VMsOf(h.guests.cloud).SetPower(vm, store.PoweredOff, false) })
}

// change calls f with the VM if this boot is still the current one.
func (h guestHost) change(f func(*store.VM)) {
	s := h.guests.cloud
	s.Mu.Lock()
	defer s.Mu.Unlock()
	vm := s.Store.VMs[h.vmID]
	if vm == nil || vm.Boot.Generation != h.generation || vm.Status != store.PoweredOn {
		return
	}
	f(vm)
	s.Settle()
}

// writeExtraConfig stores the extra configuration that the guest wrote. VCD notices the change and is busy for a while.
func (g *Guests) writeExtraConfig(vm *store.VM, keys map[string]string) {
	if len(keys) == 0 {
		return
	}
	machines.MergeExtraConfig(vm, keys)
	if g.cloud.Assume.GuestWriteBusy && g.cloud.Tasks.CheckIdle(vm.ID) == nil {
		g.cloud.Tasks.Start(nil, store.Work{Op: cloud.OpGuestWrite, VM: vm.ID}, vm.Entity(), []string{vm.ID})
	}
}

// Halt ends the guest of a VM that is no longer on. gently shuts it down through VMware Tools.
func (g *Guests) Halt(vm *store.VM, gently bool) {
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

// Suspend notifies the guest that its VM was suspended.
func (g *Guests) Suspend(vm *store.VM) { g.notifyPower(vm, PowerGuest.Suspend) }

// Resume notifies the guest that its VM was resumed.
func (g *Guests) Resume(vm *store.VM) { g.notifyPower(vm, PowerGuest.Resume) }

// Forget ends the guest of a deleted VM.
func (g *Guests) Forget(vmID string) {
	g.notify(vmID, Guest.Delete)
	delete(g.queues, vmID)
}

// notifyPower notifies the guest that its VM was suspended or resumed.
func (g *Guests) notifyPower(vm *store.VM, method func(PowerGuest, context.Context, string)) {
	if p, ok := g.guest.(PowerGuest); ok {
		id := vm.ID
		g.call(id, func() { method(p, g.cloud.Ctx, id) })
	}
}

// notify cancels the boot of a guest and calls the guest in the background.
func (g *Guests) notify(id string, method func(Guest, context.Context, string)) {
	if cancel := g.boots[id]; cancel != nil {
		cancel()
		delete(g.boots, id)
	}
	if g.guest == nil {
		return
	}
	g.call(id, func() { method(g.guest, g.cloud.Ctx, id) })
}

// Restore reconciles the guests with a restored store. Guests of lost VMs end. Guests of VMs that are on in the dump
// but were off boot.
func (g *Guests) Restore(old *store.Store) {
	for _, vm := range store.Sorted(old.VMs) {
		if g.cloud.Store.VMs[vm.ID] == nil {
			g.Forget(vm.ID)
		}
	}
	if g.guest == nil {
		return
	}
	for _, vm := range store.Sorted(g.cloud.Store.VMs) {
		g.restoreOne(vm, old.VMs[vm.ID])
	}
}

// restoreOne reconciles one guest with its VM. was is the VM before the restore, or nil if it did not exist.
func (g *Guests) restoreOne(vm, was *store.VM) {
	if was != nil {
		if was.Status == vm.Status && was.Boot.Generation == vm.Boot.Generation {
			return
		}
		if was.Status == store.PoweredOn {
			g.notify(vm.ID, Guest.PowerOff)
		}
	}
	if vm.Status != store.PoweredOn || !vm.Boot.Due.IsZero() {
		return // the VM is off, or an alarm boots it
	}
	if was != nil {
		vm.Boot.Generation = max(vm.Boot.Generation, was.Boot.Generation)
	}
	g.Boot(vm)
}
