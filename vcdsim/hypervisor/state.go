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

// A stateDir is the folder with all files of a hypervisor, including the locations of its other resources.
type stateDir struct {
	dir  string
	lock *os.File
}

// maxStatePath keeps the paths of sockets below the limit for socket addresses (108 bytes).
const maxStatePath = 50

// openState takes over a folder and removes what an earlier run left in it, even if that run was killed.
func openState(dir string) (*stateDir, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("the state folder: %w", err)
	}
	if len(dir) > maxStatePath {
		return nil, fmt.Errorf("the path of the state directory %s has more than %d bytes, which is too long for sockets in it", dir,
			maxStatePath)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	if err := checkForeignFiles(dir); err != nil {
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

// lockFile exists in a folder as long as it is a state folder.
const lockFile = "lock"

// checkForeignFiles returns an error if a folder has files that may not belong to the simulator.
func checkForeignFiles(dir string) error {
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

// recordGroups writes the locations of the control groups before any is created.
func (s *stateDir) recordGroups(p groupPlan) error {
	if err := os.WriteFile(s.groupsFile(), []byte(strings.Join(p.roots, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("recording the control groups: %w", err)
	}
	return nil
}

// sweep ends the processes of all VMs and removes their control groups and files. Their mounts, namespaces and
// devices end with the processes.
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

// thawAll resumes suspended VMs, so that their processes can end.
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

// close removes everything, including the folder if it is empty then.
func (s *stateDir) close() error {
	err := s.sweep()
	if err == nil {
		err = os.Remove(filepath.Join(s.dir, lockFile))
	}
	_ = os.Remove(s.dir) // it existed before and may contain other files
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

// kubernetesDirs are folders that cannot be on an overlay, because they contain overlays or large, frequently written
// files.
var kubernetesDirs = []string{"containerd", "kubelet", "etcd"}

// create creates the folders of a VM, unless an earlier boot created them.
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

// createStore creates the image store of the VM. The store gets its final name when it is complete.
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

// mkdirReadable creates a folder that all users in the VM can read, independent of the umask. It leaves an existing
// folder as the guest left it.
func mkdirReadable(path string) error {
	if exists(path) {
		return nil
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return os.Chmod(path, 0o755) //nolint:gosec // like other root file systems
}

// writeReadable writes a file that all users in the VM can read, independent of the umask.
func writeReadable(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	return os.Chmod(path, 0o644) //nolint:gosec // contains no secrets
}

// overlay returns the mount options of the VM's root file system.
func (f files) overlay(img image) string {
	return "lowerdir=" + strings.Join(img.Layers, ":") + ",upperdir=" + f.path("upper") + ",workdir=" + f.path("work")
}
