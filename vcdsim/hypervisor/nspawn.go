// SPDX-License-Identifier: Apache-2.0

package hypervisor

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const nspawn = "systemd-nspawn"

// A launch contains the parameters of systemd-nspawn for a VM.
type launch struct {
	name   string
	files  files
	image  image
	groups groups
	netns  string // path of the VM's network namespace
	disks  []loop
}

// arguments returns the arguments of systemd-nspawn. A system in a VM requires each of these capabilities and bind
// mounts, which a container does not have by default.
func (l launch) arguments() []string {
	args := []string{
		"--quiet",
		"--register=no",
		"--keep-unit",
		"--settings=no",
		"--machine=" + l.name,
		"--directory=" + l.files.root(),
		"--network-namespace-path=" + l.netns,
		"--capability=all",
		"--drop-capability=CAP_SYS_TIME,CAP_SYS_MODULE,CAP_SYS_RAWIO", // they would affect the host
		"--system-call-filter=@keyring bpf @mount",
		"--console=read-only",
		"--kill-signal=SIGRTMIN+4",
		"--link-journal=no",
		"--resolv-conf=off",
		"--timezone=off",
		"--bind-ro=" + l.files.guestinfo() + ":/run/host/guestinfo",
	}
	if l.image.ImageStore != "" {
		for _, dir := range kubernetesDirs {
			args = append(args, "--bind="+l.files.path(dir)+":/var/lib/"+dir)
		}
	}
	for _, d := range l.disks {
		args = append(args, "--bind="+d.path+":"+d.inside)
	}
	return append(args, l.image.Init)
}

// environment configures how systemd-nspawn sets up control groups and /proc/sys, and disables its lock files.
func (l launch) environment() []string {
	unified := "0"
	if l.groups.unified {
		unified = "1"
	}
	return []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=" + unified,
		"SYSTEMD_NSPAWN_API_VFS_WRITABLE=network",
		"SYSTEMD_NSPAWN_LOCK=0",
		"SYSTEMD_LOG_LEVEL=notice",
	}
}

// A process is a running VM.
type process struct {
	os     *os.Process
	netns  netns.NsHandle
	exited chan struct{} // closed on exit, when code is valid
	code   int
}

// exitReboot is the exit code of systemd-nspawn after a reboot of the system inside.
const exitReboot = 133

// start runs the VM on a separate thread. The thread has the mounts and the network namespace of the VM and ends with
// it. When this program ends, even if it is killed, systemd-nspawn and everything in the VM end too.
func (l launch) start(connect func(netns.NsHandle) error) (*process, error) {
	p := &process{netns: netns.None(), exited: make(chan struct{})}
	started := make(chan error)
	onOwnThread(func() {
		cmd, err := l.launch(p, connect)
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // code contains the result
		p.code = cmd.ProcessState.ExitCode()
		close(p.exited)
	})
	if err := <-started; err != nil {
		_ = p.netns.Close() // it may not be open
		return nil, err
	}
	return p, nil
}

// launch creates namespaces and mounts on the calling thread and starts systemd-nspawn in them.
func (l launch) launch(p *process, connect func(netns.NsHandle) error) (*exec.Cmd, error) {
	if err := l.mount(); err != nil {
		return nil, err
	}
	var err error
	if p.netns, err = netns.New(); err != nil {
		return nil, fmt.Errorf("making the network namespace: %w", err)
	}
	if err := connect(p.netns); err != nil {
		return nil, err
	}
	l.netns = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), int(p.netns))
	console, err := os.OpenFile(l.files.console(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the console: %w", err)
	}
	defer func() { _ = console.Close() }()        // the child has a copy
	cmd := exec.Command(nspawn, l.arguments()...) //nolint:gosec,noctx // it terminates with the VM
	cmd.Env = l.environment()
	cmd.Stdout = console
	cmd.Stderr = console
	// systemd-nspawn is the first process of a new PID namespace, so that the system in the VM ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWPID,
	}
	if err := l.startInGroups(cmd); err != nil {
		return nil, err
	}
	p.os = cmd.Process
	if err := writePID(l.files, p.os.Pid); err != nil {
		_ = cmd.Process.Kill() // it may have exited
		_ = cmd.Wait()         // killed
		return nil, err
	}
	return cmd, nil
}

func writePID(f files, pid int) error {
	if err := os.WriteFile(f.path("pid"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return fmt.Errorf("recording the process: %w", err)
	}
	return nil
}

// mount gives the thread separate mounts: the root file system of the VM, and a /run for the files of systemd-nspawn.
func (l launch) mount() error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("making the mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keeping mounts to the VM: %w", err)
	}
	if hidden := l.groups.hidden; hidden != "" {
		// If both versions exist, systemd-nspawn reads the groups of a process by its PID, which differs in this
		// namespace.
		if err := unix.Unmount(hidden, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("hiding control groups of version 2: %w", err)
		}
	}
	if err := unix.Mount("overlay", l.files.root(), "overlay", 0, l.files.overlay(l.image)); err != nil {
		return fmt.Errorf("mounting the root filesystem (%s): %w", l.files.overlay(l.image), err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting /run: %w", err)
	}
	return nil
}

// startInGroups starts a program that is in the control groups of the VM from its first instruction.
func (l launch) startInGroups(cmd *exec.Cmd) error {
	if l.groups.unified {
		group, err := os.Open(l.groups.dirs[0])
		if err != nil {
			return fmt.Errorf("opening the control group: %w", err)
		}
		defer func() { _ = group.Close() }() // only a reference
		cmd.SysProcAttr.UseCgroupFD = true
		cmd.SysProcAttr.CgroupFD = int(group.Fd())
	}
	if err := l.groups.join(); err != nil {
		return err
	}
	err := cmd.Start()
	if lerr := l.groups.leave(); lerr != nil && err == nil {
		_ = cmd.Process.Kill() // it may have exited
		_ = cmd.Wait()         // killed
		err = lerr
	}
	if err != nil {
		return fmt.Errorf("starting systemd-nspawn: %w", err)
	}
	return nil
}
