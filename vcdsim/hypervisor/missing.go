// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A MissingError reports a missing requirement of this machine for booting VMs.
type MissingError struct{ err error }

// Error implements error.
func (e *MissingError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *MissingError) Unwrap() error { return e.err }

// lacks wraps a non-nil error as a MissingError.
func lacks(what string, err error) error {
	if err != nil {
		return &MissingError{fmt.Errorf("booting VMs requires %s, which this machine does not allow: %w", what, err)}
	}
	return nil
}

// Check returns a *MissingError if this machine cannot boot VMs with this state folder. It leaves nothing behind.
func Check(dir string) error {
	h := &Hypervisor{log: slog.New(slog.DiscardHandler)}
	if err := h.open(dir); err != nil {
		return err
	}
	return h.Close()
}

// tryResources creates one of each resource that VMs require, and removes it.
func (h *Hypervisor) tryResources() error {
	if err := lacks("mount namespaces and overlays", onThread(h.state.tryMounts)); err != nil {
		return err
	}
	if err := lacks("bridges and virtual Ethernet cards", h.hub.tryLinks()); err != nil {
		return err
	}
	group := h.groups.of("try")
	return lacks("control groups", errors.Join(group.create(tryMemory), group.remove()))
}

const tryMemory = 64 << 20

// tryMounts mounts a root file system on the calling thread.
func (s *stateDir) tryMounts() error {
	f := s.vm("try")
	for _, name := range []string{"upper", "work", "root", "lower"} {
		if err := os.MkdirAll(f.path(name), 0o700); err != nil {
			return err
		}
	}
	err := launch{files: f, image: image{Layers: []string{f.path("lower")}}}.mount()
	if err == nil {
		err = unix.Unmount(f.root(), unix.MNT_DETACH)
	}
	return errors.Join(err, os.RemoveAll(f.dir))
}

// tryLinks connects a card to a bridge.
func (h *hub) tryLinks() error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "try"}}
	if err := h.handle.LinkAdd(bridge); err != nil {
		return err
	}
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "try0", MasterIndex: bridge.Attrs().Index},
		PeerName:  "try1",
	}
	err := h.handle.LinkAdd(veth)
	if err == nil {
		err = h.handle.LinkDel(veth)
	}
	return errors.Join(err, h.handle.LinkDel(bridge))
}

// checkRequirements returns an error that names a missing requirement of this machine.
func checkRequirements() error {
	if os.Geteuid() != 0 {
		return errors.New("booting VMs requires root: run as root")
	}
	for program, pkg := range map[string]string{"systemd-nspawn": "systemd-container", "nsenter": "util-linux"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("booting VMs requires the program %s: install the package %s", program, pkg)
		}
	}
	return checkFilesystems(readFile("/proc/filesystems"))
}

// checkFilesystems returns an error if /proc/filesystems lacks a required kernel feature.
func checkFilesystems(have string) error {
	if !strings.Contains(have, "\toverlay\n") {
		return errors.New("booting VMs requires a kernel with overlayfs: load the module overlay")
	}
	if !strings.Contains(have, "\tcgroup\n") && !strings.Contains(have, "\tcgroup2\n") {
		return errors.New("booting VMs requires a kernel with control groups")
	}
	return nil
}

const (
	inotifyFile = "/proc/sys/fs/inotify/max_user_instances"
	// inotifyInstances is sufficient for 30 control plane nodes with 30 instances each, or twice as many workers. The
	// kernel counts the instances of all VMs as root's and allows 128 by default. With that limit, containerd does not
	// start in the fifth control plane node.
	inotifyInstances = 1024
)

// raiseTo raises a lower kernel limit. The limit remains raised, because VMs of another simulator may need it.
func raiseTo(limit int, file string) (raised bool, err error) {
	now, err := strconv.Atoi(strings.TrimSpace(readFile(file)))
	if err != nil || now >= limit {
		return false, err
	}
	err = writeFile(file, strconv.Itoa(limit))
	return err == nil, err
}

// readFile returns the content of a kernel file, or "" if it cannot be read.
func readFile(path string) string {
	data, err := os.ReadFile(path) //nolint:gosec // constants, and files of this package
	if err != nil {
		return ""
	}
	return string(data)
}
