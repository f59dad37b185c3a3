// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netns"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A machine is the system of one VM, from its first boot until its deletion.
type machine struct {
	hypervisor *Hypervisor
	files      files
	groups     groups

	mu      sync.Mutex
	vm      vcdsim.GuestVM
	image   image
	process *process // nil if it is off
	info    *guestinfo
	disks   []loop
	up      chan struct{} // closed when this boot reported an address
	died    chan error    // receives the reason why the guest ended by itself
	seen    vcdsim.GuestReport
}

func newMachine(h *Hypervisor, id string) (*machine, error) {
	m := &machine{hypervisor: h, files: h.state.vm(id), groups: h.groups.of(id)}
	if err := os.MkdirAll(m.files.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the VM's folder: %w", err)
	}
	return m, nil
}

func (m *machine) name() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.vm.Name
}

// start boots the system of a VM that is off.
func (m *machine) start(ctx context.Context, vm vcdsim.GuestVM, img image) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil {
		return errors.New("it is already on")
	}
	m.vm = vm
	m.image = img
	m.up = make(chan struct{})
	m.died = make(chan error, 1)
	m.seen = vcdsim.GuestReport{Addresses: map[string]string{}, Hostname: vm.Hostname}
	if err := m.prepare(ctx); err != nil {
		return err
	}
	if err := m.boot(); err != nil {
		m.info.close()
		return errors.Join(err, m.groups.remove())
	}
	return nil
}

// prepare creates the files of a boot and serves guestinfo.
func (m *machine) prepare(ctx context.Context) error {
	if err := m.files.create(m.image); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"info/uuid":         m.vm.UUID,
		"info/product_name": "VMware Virtual Platform",
		"name":              m.vm.Name,
		"info/meminfo":      strings.TrimSpace(meminfo(readFile("/proc/meminfo"), m.vm.MemoryMiB)),
	} {
		if err := writeReadable(m.files.path(name), content+"\n"); err != nil {
			return fmt.Errorf("writing what the guest reads: %w", err)
		}
	}
	up := m.up
	host := m.vm.Host
	info, err := serveGuestinfo(ctx, m.files.guestinfo(), m.vm.ExtraConfig, func(key, value string) {
		m.onWrite(host, up, key, value)
	})
	m.info = info
	return err
}

// boot starts the processes. It runs again when the guest reboots itself.
func (m *machine) boot() error {
	if err := m.groups.create(m.vm.MemoryMiB << 20); err != nil {
		return err
	}
	disks, err := m.hypervisor.state.attach(m.vm.Disks)
	if err != nil {
		return err
	}
	l := launch{name: m.vm.ID, files: m.files, image: m.image, groups: m.groups, disks: disks}
	if m.process, err = l.start(func(ns netns.NsHandle) error {
		return m.hypervisor.hub.connect(m.vm, ns, m.onLease)
	}); err != nil {
		detach(disks)
		return errors.Join(err, m.disconnect())
	}
	m.disks = disks
	go m.watch(m.process)
	return nil
}

// disconnect removes the cards of this boot from the hub.
func (m *machine) disconnect() error { return m.hypervisor.hub.disconnect(m.vm) }

// watch waits for a process to end. If the hypervisor did not end it, the guest rebooted, crashed or powered itself
// off.
func (m *machine) watch(p *process) {
	<-p.exited
	m.mu.Lock()
	if m.process != p {
		m.mu.Unlock()
		return
	}
	err := errors.Join(exitError(p.code, m.files.console()), m.cleanUp())
	if err == nil && p.code == exitReboot {
		err = m.boot()
	}
	log := m.hypervisor.log
	vm := m.vm
	off := m.process == nil
	if off {
		m.info.close()
		m.died <- exitReason(err)
	}
	// VCD shows a VM as on even if its system crashed before it was up. PowerOn returns the reason.
	crashed := err != nil && !closed(m.up)
	m.mu.Unlock()
	if err != nil {
		log.Error("A guest ended", "vm", vm.Name, "error", err)
	}
	if off && !crashed && vm.Host != nil {
		vm.Host.PoweredOff()
	}
}

// exitReason returns the reason why a guest ended before it was up.
func exitReason(err error) error {
	if err == nil {
		return errors.New("the guest powered itself off before it reported an address")
	}
	return err
}

const consoleLines = 5

// exitError returns an error with the last lines of the console, unless the guest powered itself off or rebooted.
func exitError(code int, console string) error {
	if code == 0 || code == exitReboot {
		return nil
	}
	return fmt.Errorf("the guest ended with code %d; the last lines of its console %s:\n%s", code, console,
		lastLines(readFile(console), consoleLines))
}

// lastLines returns the last non-empty lines of a text.
func lastLines(text string, count int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// cleanUp removes the resources of a boot. The caller holds the lock.
func (m *machine) cleanUp() error {
	_ = m.process.netns.Close() // an ending process may hold the last reference
	m.process = nil
	_ = os.Remove(m.files.path("pid")) // the next boot writes it
	detach(m.disks)
	return errors.Join(m.disconnect(), m.groups.remove())
}

// onWrite handles a guestinfo key that the guest wrote.
func (m *machine) onWrite(host vcdsim.GuestHost, up chan struct{}, key, value string) {
	if host != nil {
		host.Report(vcdsim.GuestReport{ExtraConfig: map[string]string{key: value}})
	}
	if (key == localIPv4 || key == localIPv6) && value != "" {
		m.markUp(up)
	}
}

// onLease handles an address that the DHCP server assigned to the guest.
func (m *machine) onLease(mac, address string) {
	m.mu.Lock()
	m.seen.Addresses[mac] = address
	host := m.vm.Host
	m.mu.Unlock()
	if host != nil {
		host.Report(vcdsim.GuestReport{Addresses: map[string]string{mac: address}})
	}
}

func (m *machine) markUp(up chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !closed(up) {
		close(up)
	}
}

// awaitUp waits until the guest reports an address. It returns an error if the guest ends or the time is over.
func (m *machine) awaitUp(ctx context.Context, within time.Duration) (vcdsim.GuestReport, error) {
	m.mu.Lock()
	up := m.up
	died := m.died
	m.mu.Unlock()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-up:
		m.mu.Lock()
		defer m.mu.Unlock()
		return vcdsim.GuestReport{Addresses: maps.Clone(m.seen.Addresses), Hostname: m.seen.Hostname}, nil
	case err := <-died:
		return vcdsim.GuestReport{}, err
	case <-ctx.Done():
		return vcdsim.GuestReport{}, ctx.Err()
	case <-timer.C:
		return vcdsim.GuestReport{}, fmt.Errorf("the guest reported no address within %s; see its console %s", within,
			m.files.console())
	}
}

const shutdownWithin = time.Minute

// shutdown requests that the system powers off, and kills it if it does not.
func (m *machine) shutdown() error {
	m.mu.Lock()
	p := m.process
	m.process = nil // watch leaves the cleanup to this function
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	err := m.groups.freeze(false)
	// systemd-nspawn forwards it as the signal that powers off the system.
	if serr := p.os.Signal(syscall.SIGTERM); serr == nil {
		timer := time.NewTimer(shutdownWithin)
		defer timer.Stop()
		select {
		case <-p.exited:
		case <-timer.C:
		}
	}
	return errors.Join(err, m.end(p))
}

// kill powers the VM off at once.
func (m *machine) kill() error {
	m.mu.Lock()
	p := m.process
	m.process = nil
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	return errors.Join(m.groups.freeze(false), m.end(p))
}

// end kills the remaining processes of a VM and removes its resources.
func (m *machine) end(p *process) error {
	_ = p.os.Kill() // it may have exited
	err := m.groups.remove()
	<-p.exited
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info.close()
	_ = p.netns.Close()                // see cleanUp
	_ = os.Remove(m.files.path("pid")) // the next boot writes it
	detach(m.disks)
	return errors.Join(err, m.disconnect())
}

func (m *machine) freeze() error { return m.groups.freeze(true) }
func (m *machine) thaw() error   { return m.groups.freeze(false) }

// remove powers the VM off and removes its files.
func (m *machine) remove() error {
	err := m.kill()
	if rerr := os.RemoveAll(m.files.dir); rerr != nil {
		err = errors.Join(err, fmt.Errorf("removing the VM's files: %w", rerr))
	}
	return err
}
