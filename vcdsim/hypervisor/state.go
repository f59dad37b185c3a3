// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A stateDir is the folder that holds all files of a hypervisor, and the names of what it has elsewhere.
type stateDir struct {
	dir  string
	lock *os.File
}

// maxStatePath keeps the path of the sockets below what a socket's address may have (108 bytes).
const maxStatePath = 50

// openState takes a folder over and removes what an earlier run left there, whatever ended it.
func openState(dir string) (*stateDir, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("the state folder: %w", err)
	}
	if len(dir) > maxStatePath {
		return nil, fmt.Errorf("the path of the state directory %s has more than %d bytes, which is too long "+
			"for sockets in it", dir,
			maxStatePath)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	if err := refuseOthers(dir); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the caller's own
	if err != nil {
		return nil, fmt.Errorf("opening the state folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("the state directory %s is in use by another simulator: %w", dir, err)
		return nil, errors.Join(err, lock.Close())
	}
	s := &stateDir{dir: dir, lock: lock}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// lockFile is in each state folder while it is one.
const lockFile = "lock"

// refuseOthers returns an error for a folder with files that may not be the simulator's.
func refuseOthers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the state folder: %w", err)
	}
	if len(entries) > 0 && !exists(filepath.Join(dir, lockFile)) {
		return fmt.Errorf("the directory %s is not empty and not a state directory: use another one, or empty it", dir)
	}
	return nil
}

func (s *stateDir) groupsFile() string { return filepath.Join(s.dir, "control-groups") }

// recordGroups writes where control groups will be, before any is made.
func (s *stateDir) recordGroups(p groupPlan) error {
	if err := os.WriteFile(s.groupsFile(), []byte(strings.Join(p.roots, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("recording the control groups: %w", err)
	}
	return nil
}

// sweep ends the processes of all VMs and removes their control groups and files. Their mounts, namespaces and devices
// end with the processes.
func (s *stateDir) sweep() error {
	recorded := groups{dirs: strings.Fields(readFile(s.groupsFile()))}
	for _, dir := range recorded.dirs {
		if !strings.HasPrefix(filepath.Base(dir), "vcdsim-") {
			return fmt.Errorf("the state folder %s names a control group that is not the simulator's: %s", s.dir, dir)
		}
	}
	if err := s.thawAll(recorded.dirs); err != nil {
		return err
	}
	if err := recorded.remove(); err != nil {
		return err
	}
	for _, name := range []string{"vms", "disks", "control-groups"} {
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("removing remaining objects of VMs: %w", err)
		}
	}
	return nil
}

// thawAll lets suspended VMs go on, so that their processes can end.
func (s *stateDir) thawAll(roots []string) error {
	for _, root := range roots {
		vms, err := filepath.Glob(filepath.Join(root, "vm-*"))
		if err != nil {
			return fmt.Errorf("reading control groups: %w", err)
		}
		if err := (groups{dirs: vms}).freeze(false); err != nil {
			return err
		}
	}
	return nil
}

// close removes everything, the folder too if nothing else is in it.
func (s *stateDir) close() error {
	err := s.sweep()
	if err == nil {
		err = os.Remove(filepath.Join(s.dir, lockFile))
	}
	_ = os.Remove(s.dir) // it was there before, and may have more in it
	return errors.Join(err, s.lock.Close())
}

// files are the files of one VM.
type files struct{ dir string }

func (s *stateDir) vm(id string) files { return files{filepath.Join(s.dir, "vms", id)} }

func (s *stateDir) disk(id string) string { return filepath.Join(s.dir, "disks", id+".img") }

func (f files) path(name string) string { return filepath.Join(f.dir, name) }
func (f files) console() string         { return f.path("console.log") }
func (f files) root() string            { return f.path("root") }
func (f files) guestinfo() string       { return f.path("info") }

// kubernetesDirs are folders that cannot be on an overlay: they hold overlays themselves, or much that is written
// often.
var kubernetesDirs = []string{"containerd", "kubelet", "etcd"}

// create makes the folders of a VM, unless an earlier boot did.
func (f files) create(img image) error {
	folders := []string{"upper", "work", "root", "info"}
	if img.ImageStore != "" {
		if err := f.createStore(img.ImageStore); err != nil {
			return err
		}
		folders = append(folders, kubernetesDirs...)
	}
	for _, name := range folders {
		if err := mkdirReadable(f.path(name)); err != nil {
			return fmt.Errorf("making the VM's folders: %w", err)
		}
	}
	return nil
}

// createStore makes the VM's image store, which is complete when it has its name.
func (f files) createStore(from string) error {
	store := f.path("containerd")
	unfinished := f.path("containerd.new")
	if exists(store) {
		return nil
	}
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("removing an unfinished image store: %w", err)
	}
	if err := linkTree(from, unfinished); err != nil {
		return err
	}
	return wrap("naming the image store", os.Rename(unfinished, store))
}

// mkdirReadable makes a folder that all users in the VM can read, whatever the umask is. One that is there stays as the
// guest left it.
func mkdirReadable(path string) error {
	if exists(path) {
		return nil
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return os.Chmod(path, 0o755) //nolint:gosec // of root filesystems
}

// writeReadable writes a file that all users in the VM can read, whatever the umask is.
func writeReadable(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	return os.Chmod(path, 0o644) //nolint:gosec // no secrets
}

// overlay are the options of the mount of the VM's root filesystem.
func (f files) overlay(img image) string {
	return "lowerdir=" + strings.Join(img.Layers, ":") + ",upperdir=" + f.path("upper") + ",workdir=" + f.path("work")
}
