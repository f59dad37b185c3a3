// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A loop is an independent disk as a block device. The kernel frees the device when it is no longer open, even if
// this program is killed.
type loop struct {
	device *os.File
	path   string // path of the device on this machine
	inside string // path of the device in the VM
}

// attach creates block devices for a VM's independent disks. The file of a disk is created at first use and remains
// until the disk is deleted.
func (s *stateDir) attach(disks []vcdsim.GuestDisk) ([]loop, error) {
	disks = slices.Clone(disks)
	slices.SortFunc(disks, func(a, b vcdsim.GuestDisk) int { return (a.Bus-b.Bus)*100 + a.Unit - b.Unit })
	var out []loop
	for i, d := range disks {
		l, err := s.attachOne(d)
		if err != nil {
			detach(out)
			return nil, fmt.Errorf("attaching disk %s: %w", d.ID, err)
		}
		l.inside = "/dev/sd" + string(rune('b'+i)) // sda is the system disk of a real VM
		out = append(out, l)
	}
	return out, nil
}

func detach(loops []loop) {
	for _, l := range loops {
		_ = l.device.Close() // only a reference
	}
}

func (s *stateDir) attachOne(d vcdsim.GuestDisk) (loop, error) {
	if err := os.MkdirAll(filepath.Dir(s.disk(d.ID)), 0o700); err != nil {
		return loop{}, fmt.Errorf("making the folder: %w", err)
	}
	file, err := os.OpenFile(s.disk(d.ID), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return loop{}, fmt.Errorf("opening the file: %w", err)
	}
	defer func() { _ = file.Close() }() // the device has its own
	if err := file.Truncate(d.SizeMiB << 20); err != nil {
		return loop{}, fmt.Errorf("sizing the file: %w", err)
	}
	return newLoop(file)
}

const loopTries = 10

// newLoop creates a device for a file. It retries if another program takes the free device first.
func newLoop(file *os.File) (loop, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return loop{}, fmt.Errorf("independent disks need loop devices: %w", err)
	}
	defer func() { _ = control.Close() }() // used only for a query
	for range loopTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return loop{}, fmt.Errorf("finding a loop device: %w", err)
		}
		path := fmt.Sprintf("/dev/loop%d", n)
		device, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // the kernel returned the number
		if err != nil {
			return loop{}, fmt.Errorf("opening a loop device: %w", err)
		}
		config := unix.LoopConfig{Fd: uint32(file.Fd())} //nolint:gosec // a file descriptor
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return loop{device: device, path: path}, nil
		}
		_ = device.Close() // another program uses it
		if !errors.Is(err, unix.EBUSY) {
			return loop{}, fmt.Errorf("setting up a loop device: %w", err)
		}
	}
	return loop{}, errors.New("all loop devices are in use")
}
