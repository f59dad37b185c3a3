// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package process runs the programs of the test stack as child processes that cannot outlive it.
//
// On Linux a process dies with its parent, even if the parent is killed. On other systems, and in case this fails, the
// next start finds the processes of an earlier run through their pid files and ends them.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A Spec describes a program to run.
type Spec struct {
	// Name names the log and the pid file.
	Name string
	// Path and Args are the program and its arguments.
	Path string
	Args []string
	// Env is the complete environment.
	Env []string
	// Dir contains the folders logs and pids.
	Dir string
}

// A Process is a started program.
type Process struct {
	spec    Spec
	cmd     *exec.Cmd
	log     *os.File
	logFrom int64
	done    chan struct{}
	err     error
	ending  atomic.Bool
}

// Start starts a program in a separate process group. It writes the output to <Dir>/logs/<Name>.log.
func Start(spec Spec) (*Process, error) {
	p := &Process{spec: spec, done: make(chan struct{})}
	for _, sub := range []string{"logs", "pids"} {
		if err := os.MkdirAll(filepath.Join(spec.Dir, sub), 0o750); err != nil {
			return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
		}
	}
	log, err := os.OpenFile(p.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	if info, err := log.Stat(); err == nil {
		p.logFrom = info.Size()
	}
	p.log = log
	p.cmd = exec.Command(spec.Path, spec.Args...) //nolint:gosec,noctx // the process outlives the call; Stop and Kill end it
	p.cmd.Env = spec.Env
	p.cmd.Stdout = log
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = attributes()
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	if err := writePID(p.pidPath(), p.cmd.Process.Pid, spec.Path); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", spec.Name, err), p.Kill())
	}
	return p, nil
}

// run starts the child and waits for it on one OS thread, because the child is killed when its parent thread exits.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	defer func() { _ = p.log.Close() }()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
}

// Name returns the name from the Spec.
func (p *Process) Name() string {
	return p.spec.Name
}

// PID returns the ID of the process.
func (p *Process) PID() int {
	return p.cmd.Process.Pid
}

// LogPath returns the path of the file with the output.
func (p *Process) LogPath() string {
	return filepath.Join(p.spec.Dir, "logs", p.spec.Name+".log")
}

func (p *Process) pidPath() string {
	return filepath.Join(p.spec.Dir, "pids", p.spec.Name+".pid")
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} {
	return p.done
}

// Err returns an error if the process exited unexpectedly. It is nil while the process runs, and after Stop or Kill.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.ending.Load() {
		return nil
	}
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s exited unexpectedly (%s), its log %s ends with:\n%s", p.spec.Name, how, p.LogPath(), p.Tail(8))
}

// Tail returns the last lines that this process wrote to its log.
func (p *Process) Tail(lines int) string {
	content, err := os.ReadFile(p.LogPath())
	if err != nil {
		return err.Error()
	}
	content = content[min(int64(len(content)), p.logFrom):]
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Kill kills the process and its children, and waits until it has ended.
func (p *Process) Kill() error {
	return p.end(syscall.SIGKILL)
}

// Stop sends SIGTERM to the process, and kills it after the grace period.
func (p *Process) Stop(grace time.Duration) error {
	p.ending.Store(true)
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.forget()
	case <-timer.C:
	}
	return p.Kill()
}

func (p *Process) end(sig syscall.Signal) error {
	p.ending.Store(true)
	if err := p.signal(sig); err != nil {
		return err
	}
	<-p.done
	return p.forget()
}

// signal sends a signal to the whole process group. It is a no-op if the group has ended.
func (p *Process) signal(sig syscall.Signal) error {
	select {
	case <-p.done:
		return nil // the PID may be reused
	default:
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signalling %s: %w", p.spec.Name, err)
	}
	return nil
}

func (p *Process) forget() error {
	if err := os.Remove(p.pidPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing a pid file: %w", err)
	}
	return nil
}
