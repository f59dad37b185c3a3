// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Left lists the resources of VMs of a state folder on this machine: files, control groups, mounts, processes. It
// returns none if no VMs exist.
func Left(dir string) []string {
	var out []string
	for _, folder := range []string{"vms", "disks"} {
		entries, _ := os.ReadDir(filepath.Join(dir, folder)) // a missing folder is empty
		for _, e := range entries {
			out = append(out, "file "+filepath.Join(dir, folder, e.Name()))
		}
	}
	out = append(out, leftGroups(groupName(dir))...)
	for line := range strings.Lines(readFile("/proc/self/mountinfo")) {
		if strings.Contains(line, dir+"/") {
			out = append(out, "mount "+strings.TrimSpace(line))
		}
	}
	return append(out, processesOf(dir)...)
}

// leftGroups lists the control groups of VMs in the root folders of a state folder.
func leftGroups(name string) []string {
	var out []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "vm-") && filepath.Base(filepath.Dir(path)) == name {
			out = append(out, "control group "+path)
			return fs.SkipDir
		}
		return nil // groups may vanish during the walk
	})
	return out
}

// processesOf lists the processes whose command line contains a path in a folder.
func processesOf(dir string) []string {
	var out []string
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, file := range all {
		if line := readFile(file); strings.Contains(line, dir+"/") {
			out = append(out, "process "+strings.TrimSpace(strings.ReplaceAll(line, "\x00", " ")))
		}
	}
	return out
}
