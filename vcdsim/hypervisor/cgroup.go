// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A groupPlan locates the control groups of all VMs: one root folder per hierarchy, with a folder per VM.
type groupPlan struct {
	unified bool
	roots   []string
	hidden  string // mount point of version 2 beside version 1; hidden from VMs
}

// planGroups chooses the root folders for a state folder.
func planGroups(dir string) (groupPlan, error) {
	return planFrom(readFile("/proc/self/cgroup"), readFile("/proc/self/mountinfo"), groupName(dir))
}

// groupName returns the name of the root folders of a state folder. Different state folders have different names.
func groupName(dir string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dir)) // never fails
	return fmt.Sprintf("vcdsim-%08x", h.Sum32())
}

// planFrom parses /proc/self/cgroup and mountinfo. With version 1, VMs are below the group of this process in each
// hierarchy. With version 2 alone they are at the top, because a group with processes cannot have child groups with
// controllers.
func planFrom(own, mountinfo, name string) (groupPlan, error) {
	mounts := groupMounts(mountinfo)
	plan := groupPlan{hidden: mounts[""].point}
	unified := ""
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, ok := mounts[parts[1]]
		if !ok {
			continue
		}
		if parts[1] == "" {
			unified = filepath.Join(mount.point, name)
			continue
		}
		below := strings.TrimPrefix(parts[2], strings.TrimSuffix(mount.root, "/"))
		plan.roots = append(plan.roots, filepath.Join(mount.point, below, name))
	}
	if len(plan.roots) == 0 && unified != "" {
		return groupPlan{unified: true, roots: []string{unified}}, nil
	}
	if !slices.ContainsFunc(plan.roots, func(r string) bool { return strings.Contains(r, "/memory/") }) {
		return groupPlan{}, errors.New("booting VMs requires memory control groups, but none are mounted in /sys/fs/cgroup")
	}
	slices.Sort(plan.roots)
	return plan, nil
}

type groupMount struct{ root, point string }

// groupMounts returns the mounts of control groups by their name in /proc/self/cgroup.
func groupMounts(mountinfo string) map[string]groupMount {
	out := map[string]groupMount{}
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		fields := strings.Fields(before)
		fs := strings.Fields(after)
		if !ok || len(fields) < 5 || len(fs) < 3 {
			continue
		}
		at := groupMount{fields[3], fields[4]}
		switch fs[0] {
		case "cgroup2":
			out[""] = at
		case "cgroup":
			var controllers []string
			for o := range strings.SplitSeq(fs[2], ",") {
				if !slices.Contains([]string{"rw", "ro", "xattr", "clone_children", "noprefix"}, o) &&
					!strings.HasPrefix(o, "release_agent=") {
					controllers = append(controllers, o)
				}
			}
			out[strings.Join(controllers, ",")] = at
		}
	}
	return out
}

// groups are the control groups of one VM.
type groups struct {
	unified bool
	dirs    []string
	hidden  string
}

func (p groupPlan) of(vmID string) groups {
	g := groups{unified: p.unified, hidden: p.hidden}
	for _, root := range p.roots {
		g.dirs = append(g.dirs, filepath.Join(root, "vm-"+vmID))
	}
	return g
}

// create creates the groups. memory is the memory limit of the VM, in bytes.
func (g groups) create(memory int64) error {
	for _, dir := range g.dirs {
		if err := g.createOne(dir); err != nil {
			return fmt.Errorf("making a control group: %w", err)
		}
	}
	file := cmp.Or(map[bool]string{true: "memory.max"}[g.unified], "memory.limit_in_bytes")
	for _, dir := range g.dirs {
		if path := filepath.Join(dir, file); exists(path) {
			if err := writeFile(path, strconv.FormatInt(memory, 10)); err != nil {
				return fmt.Errorf("limiting the memory: %w", err)
			}
		}
	}
	return nil
}

func (g groups) createOne(dir string) error {
	root := filepath.Dir(dir)
	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // like all control groups
		return err
	}
	if g.unified {
		for _, parent := range []string{filepath.Dir(root), root} {
			for c := range strings.FieldsSeq(readFile(filepath.Join(parent, "cgroup.controllers"))) {
				// A controller that is not delegated is missing. kubelet reports it.
				_ = writeFile(filepath.Join(parent, "cgroup.subtree_control"), "+"+c)
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // like all control groups
		return err
	}
	if g.unified {
		return nil
	}
	return errors.Join(inheritCPUs(root), inheritCPUs(dir))
}

// inheritCPUs copies the CPUs and memory nodes of the parent: a new group of version 1 has none.
func inheritCPUs(dir string) error {
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		path := filepath.Join(dir, f)
		if !exists(path) {
			continue
		}
		if err := writeFile(path, strings.TrimSpace(readFile(filepath.Join(filepath.Dir(dir), f)))); err != nil {
			return err
		}
	}
	return nil
}

// join moves the calling thread into the groups of version 1, so that its children start in them. leave moves it
// back.
func (g groups) join() error  { return g.move(g.dirs) }
func (g groups) leave() error { return g.move(g.parents()) }

func (g groups) parents() []string {
	var out []string
	for _, dir := range g.dirs {
		out = append(out, filepath.Dir(filepath.Dir(dir)))
	}
	return out
}

func (g groups) move(dirs []string) error {
	if g.unified {
		return nil
	}
	for _, dir := range dirs {
		if err := writeFile(filepath.Join(dir, "tasks"), "0"); err != nil {
			return fmt.Errorf("moving to a control group: %w", err)
		}
	}
	return nil
}

// freeze freezes or thaws all processes.
func (g groups) freeze(on bool) error {
	for _, dir := range g.dirs {
		for file, values := range map[string][2]string{
			"cgroup.freeze": {"0", "1"},
			"freezer.state": {"THAWED", "FROZEN"},
		} {
			value := values[0]
			if on {
				value = values[1]
			}
			if path := filepath.Join(dir, file); exists(path) {
				if err := writeFile(path, value); err != nil {
					return fmt.Errorf("freezing: %w", err)
				}
			}
		}
	}
	return nil
}

const (
	groupTries = 200
	groupPause = 20 * time.Millisecond
)

// remove kills the processes in the groups and removes the groups.
func (g groups) remove() error {
	if err := g.freeze(false); err != nil {
		return err
	}
	// The kernel does not announce that a group is empty.
	retry := time.NewTicker(groupPause)
	defer retry.Stop()
	var err error
	for range groupTries {
		err = nil
		for _, dir := range g.dirs {
			err = errors.Join(err, removeGroup(dir))
		}
		if err == nil {
			return nil
		}
		<-retry.C
	}
	return err
}

// removeGroup kills the processes of a group and its child groups, and removes the groups, children first.
func removeGroup(dir string) error {
	if !exists(dir) {
		return nil
	}
	killGroup(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading a control group: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, removeGroup(filepath.Join(dir, e.Name())))
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
		errs = append(errs, fmt.Errorf("removing the control group %s: %w", dir, err))
	}
	return errors.Join(errs...)
}

func killGroup(dir string) {
	for field := range strings.FieldsSeq(readFile(filepath.Join(dir, "cgroup.procs"))) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have exited
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// writeFile writes to a kernel file.
func writeFile(path, value string) error {
	return os.WriteFile(path, []byte(value), 0o600)
}
