package vcdsim

import (
	"context"
	"net/netip"
	"sync"
	"time"
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

// A GuestVM is a VM as its guest sees it.
type GuestVM struct {
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
	TemplateName      string
	KubernetesVersion string
}

// A GuestNIC is a network card with what is on its wire.
type GuestNIC struct {
	Index   int
	MAC     string
	Network string
	Mode    string     // POOL, DHCP, MANUAL or NONE
	Primary bool       // VCD's primary NIC
	Address netip.Addr // assigned by VCD, or what its DHCP server offers; invalid if none
	Prefix  netip.Prefix
	Gateway netip.Addr
	DNS     []netip.Addr
}

// A GuestReport is what VMware Tools report of a guest that came up.
type GuestReport struct {
	Addresses   map[string]string // MAC to the address the guest uses
	ExtraConfig map[string]string // keys the guest writes; an empty value removes the key
	Hostname    string
}

// guests calls the Guest in the background, in order for each VM.
type guests struct {
	sim     *Simulator
	guest   Guest // nil: a VM just powers on
	running sync.WaitGroup
	boots   map[string]context.CancelFunc
	queues  map[string]chan struct{} // of each VM's guest: closed when the last call ended
}

// boot schedules the boot of a VM's guest, after the time the profile gives.
func (g *guests) boot(vm *VM) {
	d := g.sim.profile.jittered(durationGuestBoot, 0, g.sim.ids.rng)
	vm.Boot = Boot{Generation: vm.Boot.Generation + 1, Due: g.sim.clock.Now().Add(d)}
	vm.BootOptions.EnterBIOS = false
	id, generation := vm.ID, vm.Boot.Generation
	if d <= 0 {
		g.sim.pending = append(g.sim.pending, func() { g.bootNow(id, generation) })
		return
	}
	g.sim.alarms.after(d, alarm{Bell: bellBoot, ID: id, Generation: generation})
}

// bootNow boots the guest, unless the VM was powered off in the meantime.
func (g *guests) bootNow(id string, generation int) {
	vm := g.sim.store.vms[id]
	if vm == nil || vm.Status != PoweredOn || vm.Boot.Generation != generation {
		return
	}
	vm.Boot.Due = time.Time{}
	for i := range vm.NICs {
		g.sim.ipam.leaseDHCP(vm, &vm.NICs[i])
	}
	if g.guest == nil {
		vm.Boot.Up = true
		for i := range vm.NICs {
			if nic := &vm.NICs[i]; nic.Mode == modeDHCP {
				nic.Address = nic.Lease
			}
		}
		return
	}
	ctx, cancel := context.WithCancel(g.sim.ctx) //nolint:gosec // notify calls cancel when the VM goes off
	g.boots[id] = cancel
	view := g.view(vm)
	g.call(id, func() {
		report, err := g.guest.PowerOn(ctx, view)
		g.sim.mu.Lock()
		defer g.sim.mu.Unlock()
		g.booted(id, generation, report, err)
		g.sim.settle()
	})
}

// call runs f in the background, after earlier calls of the same guest.
func (g *guests) call(id string, f func()) {
	if g.sim.ctx.Err() != nil {
		return
	}
	before, done := g.queues[id], make(chan struct{})
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

func (g *guests) view(vm *VM) GuestVM {
	c := vm.clone()
	vapp := g.sim.store.vapps[vm.VAppID]
	out := GuestVM{
		ID: c.ID, UUID: g.sim.ids.named("bios", c.ID), Hostname: imageHostname, Customized: c.Customization.Enabled,
		Name: c.Name, VAppName: vapp.Name, OS: c.OS, CPUs: c.CPUs, MemoryMiB: c.MemoryMiB,
		ExtraConfig: c.ExtraConfig,
		Properties:  propertyValues(c.Properties), TemplateName: c.TemplateName, KubernetesVersion: c.KubernetesVersion,
	}
	if out.Customized {
		out.Hostname = c.Customization.ComputerName
	}
	for _, nic := range c.NICs {
		card := GuestNIC{
			Index: nic.Index, MAC: nic.MAC, Network: nic.Network, Mode: nic.Mode,
			Primary: nic.Index == c.PrimaryNIC,
		}
		address := nic.Address
		if nic.Mode == modeDHCP {
			address = nic.Lease
		}
		card.Address, _ = netip.ParseAddr(address) // invalid when there is none
		if n := vapp.network(nic.Network); n != nil {
			sub := g.sim.ipam.subnetOf(n)
			card.Prefix, card.Gateway = sub.gateway.Masked(), sub.gateway.Addr()
			if _, _, parent := g.sim.store.network(n.ParentID); parent != nil {
				card.DNS = append(card.DNS, parent.DNS...)
			}
		}
		out.NICs = append(out.NICs, card)
	}
	return out
}

// booted stores what the guest reported.
func (g *guests) booted(id string, generation int, report GuestReport, err error) {
	vm := g.sim.store.vms[id]
	if vm == nil || vm.Boot.Generation != generation || vm.Status != PoweredOn {
		return
	}
	if err != nil {
		vm.Boot.Failure = err.Error()
		g.sim.log.Warn("A guest did not come up", "vm", vm.Name, "reason", err)
		return
	}
	vm.Boot.Up, vm.Boot.Hostname = true, report.Hostname
	for i := range vm.NICs {
		if nic := &vm.NICs[i]; nic.Mode == modeDHCP {
			nic.Address = report.Addresses[nic.MAC]
		}
	}
	g.writeExtraConfig(vm, report.ExtraConfig)
}

// writeExtraConfig stores what the guest wrote to its extra configuration; VCD notices a change and is busy with it.
func (g *guests) writeExtraConfig(vm *VM, keys map[string]string) {
	if len(keys) == 0 {
		return
	}
	mergeExtraConfig(vm, keys)
	if g.sim.assume.GuestWriteBusy && g.sim.tasks.checkIdle(vm.ID) == nil {
		g.sim.tasks.start(nil, Work{Op: opGuestWrite, VM: vm.ID}, vm.entity(), []string{vm.ID})
	}
}

// mergeExtraConfig sets keys; an empty value removes one.
func mergeExtraConfig(vm *VM, keys map[string]string) {
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

// halt ends the guest of a VM that is no longer on.
func (g *guests) halt(vm *VM) {
	vm.Boot = Boot{Generation: vm.Boot.Generation + 1}
	for i := range vm.NICs {
		if vm.NICs[i].Mode == modeDHCP {
			vm.NICs[i].Address = ""
		}
	}
	g.notify(vm.ID, Guest.PowerOff)
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
	g.call(id, func() { method(g.guest, g.sim.ctx, id) })
}

func (vm *VM) entity() Entity { return Entity{"vm", vm.ID, vm.Name} }
