// SPDX-License-Identifier: Apache-2.0

// Package hypervisor is a guest of the simulator whose VMs are booted Linux systems. Each is a systemd container with
// an overlay on the image of its template, separate control groups and a separate network namespace. Networks are
// bridges in a namespace that nothing else can reach. The package knows images and the network cards of VMs, but not
// Kubernetes.
//
// Namespaces and mounts belong to threads and processes of this process and end with it. Control groups and files are
// in folders that the next start with the same state folder cleans up.
package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// Options are the options of a Hypervisor.
type Options struct {
	// Images is the folder with the descriptions of images. They are named NAME.json after their templates.
	Images string
	// Dir is the state folder. Its content is removed at the start and at the end.
	Dir string
	// UpWithin is the time limit for a guest to report an address; 0 means 5 minutes.
	UpWithin time.Duration
	Log      *slog.Logger
}

// A Hypervisor boots VMs. It implements vcdsim.Guest and vcdsim.PowerGuest.
type Hypervisor struct {
	options Options
	log     *slog.Logger
	state   *stateDir
	groups  groupPlan
	hub     *hub

	mu       sync.Mutex
	machines map[string]*machine
}

const defaultUpWithin = 5 * time.Minute

// New checks the requirements of the machine, cleans up after an earlier run, and creates the namespace of the
// networks.
func New(o Options) (*Hypervisor, error) {
	if o.UpWithin == 0 {
		o.UpWithin = defaultUpWithin
	}
	h := &Hypervisor{options: o, log: o.Log, machines: map[string]*machine{}}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if _, err := images(o.Images); err != nil {
		return nil, err
	}
	if err := h.open(o.Dir); err != nil {
		return nil, err
	}
	if raised, err := raiseTo(inotifyInstances, inotifyFile); raised || err != nil {
		h.log.Info("VMs share the inotify instances of this machine", "sysctl", "fs.inotify.max_user_instances", "wanted",
			inotifyInstances, "raised", raised, "error", err)
	}
	return h, nil
}

// open takes the state folder, checks the requirements of the machine, and creates the namespace of the networks.
func (h *Hypervisor) open(dir string) error {
	if err := checkRequirements(); err != nil {
		return &MissingError{err}
	}
	var err error
	if h.state, err = openState(dir); err != nil {
		return err
	}
	if h.groups, err = planGroups(h.state.dir); err != nil {
		return errors.Join(&MissingError{err}, h.state.close())
	}
	if err := h.state.recordGroups(h.groups); err != nil {
		return errors.Join(err, h.state.close())
	}
	if h.hub, err = newHub(h.log); err != nil {
		return errors.Join(lacks("network namespaces", err), h.state.close())
	}
	if err := h.tryResources(); err != nil {
		return errors.Join(err, h.Close())
	}
	return nil
}

// Close ends all VMs and removes all their resources.
func (h *Hypervisor) Close() error {
	h.mu.Lock()
	all := h.machines
	h.machines = map[string]*machine{}
	h.mu.Unlock()
	var errs []error
	for _, m := range all {
		errs = append(errs, m.remove())
	}
	h.hub.close()
	return errors.Join(append(errs, h.state.close())...)
}

// PowerOn implements vcdsim.Guest.
func (h *Hypervisor) PowerOn(ctx context.Context, vm vcdsim.GuestVM) (vcdsim.GuestReport, error) {
	all, err := images(h.options.Images)
	if err != nil {
		return vcdsim.GuestReport{}, err
	}
	img, ok := all[vm.TemplateName]
	if !ok {
		return vcdsim.GuestReport{}, fmt.Errorf("no image %s.json in %s for the template of VM %s",
			vm.TemplateName, h.options.Images, vm.Name)
	}
	m, err := h.machine(vm.ID)
	if err != nil {
		return vcdsim.GuestReport{}, err
	}
	if err := m.start(ctx, vm, img); err != nil {
		return vcdsim.GuestReport{}, fmt.Errorf("booting VM %s: %w", vm.Name, err)
	}
	h.log.Info("Booting", "vm", vm.Name, "console", m.files.console())
	return m.awaitUp(ctx, h.options.UpWithin)
}

// machine returns the machine of a VM, and creates it if necessary.
func (h *Hypervisor) machine(id string) (*machine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.machines[id]; m != nil {
		return m, nil
	}
	m, err := newMachine(h, id)
	if err != nil {
		return nil, err
	}
	h.machines[id] = m
	return m, nil
}

// withMachine calls f with a machine if it exists.
func (h *Hypervisor) withMachine(id, what string, f func(*machine) error) {
	h.mu.Lock()
	m := h.machines[id]
	h.mu.Unlock()
	if m == nil {
		return
	}
	if err := f(m); err != nil {
		h.log.Error(what, "vm", m.name(), "error", err)
	}
}

// PowerOff implements vcdsim.Guest.
func (h *Hypervisor) PowerOff(_ context.Context, id string) {
	h.withMachine(id, "Powering off", (*machine).kill)
}

// Shutdown implements vcdsim.PowerGuest.
func (h *Hypervisor) Shutdown(_ context.Context, id string) {
	h.withMachine(id, "Shutting down", (*machine).shutdown)
}

// Suspend implements vcdsim.PowerGuest.
func (h *Hypervisor) Suspend(_ context.Context, id string) {
	h.withMachine(id, "Suspending", (*machine).freeze)
}

// Resume implements vcdsim.PowerGuest.
func (h *Hypervisor) Resume(_ context.Context, id string) {
	h.withMachine(id, "Resuming", (*machine).thaw)
}

// Delete implements vcdsim.Guest.
func (h *Hypervisor) Delete(_ context.Context, id string) {
	h.withMachine(id, "Deleting", (*machine).remove)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.machines, id)
}
