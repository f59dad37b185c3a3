// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// writePID writes the PID and the program of a process, so that a reused PID is not mistaken for the process.
func writePID(path string, pid int, program string) error {
	if resolved, err := filepath.EvalSymlinks(program); err == nil {
		program = resolved
	}
	return os.WriteFile(path, []byte(fmt.Sprintf("%d\n%s\n", pid, program)), 0o600)
}

// RemoveLeftovers kills the running processes of the pid files in dir. It returns the number of pid files and the ended
// programs. The caller holds the lock of dir, so the processes cannot be in use.
func RemoveLeftovers(dir string) (found int, ended []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "pids", "*.pid"))
	if err != nil {
		return 0, nil, err
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".pid")
		ran, err := endLeftover(path)
		if err != nil {
			return len(paths), ended, fmt.Errorf("ending %s, left by an earlier run: %w", name, err)
		}
		if ran {
			ended = append(ended, name)
		}
		if err := os.Remove(path); err != nil {
			return len(paths), ended, fmt.Errorf("removing a pid file: %w", err)
		}
	}
	return len(paths), ended, nil
}

func endLeftover(path string) (bool, error) {
	content, err := os.ReadFile(path) //nolint:gosec // our own pid file
	if err != nil {
		return false, err
	}
	lines := strings.Split(string(content), "\n")
	pid, _ := strconv.Atoi(lines[0]) // zero if incomplete after a kill, when the programs died with the run
	if pid <= 1 || len(lines) < 2 || !isRunning(pid, lines[1]) {
		return false, nil
	}
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return false, err
	}
	return true, waitGone(pid, lines[1])
}

func waitGone(pid int, program string) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for range 250 {
		if !isRunning(pid, program) {
			return nil
		}
		<-ticker.C
	}
	return fmt.Errorf("process %d does not exit", pid)
}

// isRunning reports whether a process runs this program.
func isRunning(pid int, program string) bool {
	if link, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
		return strings.TrimSuffix(link, " (deleted)") == program
	}
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		return false
	}
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec,noctx // a number and fixed words
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(out)), program)
}
