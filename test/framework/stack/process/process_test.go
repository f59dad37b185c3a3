// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
)

// TestMain doubles as the parent that a test kills: it starts a child, prints "ready" and waits.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PROCESS_TEST_PARENT"); dir != "" {
		parent(dir)
		return
	}
	testtime.Main(m)
}

func parent(dir string) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		panic(err)
	}
	p, err := process.Start(process.Spec{Name: "child", Path: sleep, Args: []string{"600"}, Dir: dir})
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("ready\n")
	<-p.Done()
}

func TestChildDiesWithAKilledParent(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "PROCESS_TEST_PARENT="+dir)
	out, err := cmd.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cmd.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line).To(Equal("ready\n"))
	pid := pidOf(g, filepath.Join(dir, "pids", "child.pid"))
	g.Expect(alive(pid)).To(BeTrue())

	g.Expect(cmd.Process.Kill()).To(Succeed())
	g.Expect(cmd.Wait()).NotTo(Succeed())
	found, _, err := process.RemoveLeftovers(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(Equal(1))
	g.Eventually(func() bool { return alive(pid) }).Should(BeFalse())
	g.Expect(filepath.Glob(filepath.Join(dir, "pids", "*"))).To(BeEmpty())
}

func TestRemoveLeftovers(t *testing.T) {
	for name, test := range map[string]struct {
		program func(path string) string
		ended   bool
	}{
		"a process of an earlier run": {
			program: func(path string) string { return path },
			ended:   true,
		},
		"another program with the same PID": {program: func(string) string { return "/another/program" }},
		"a pid file without a program":      {program: func(string) string { return "" }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			cmd := exec.Command("sleep", "600")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			g.Expect(cmd.Start()).To(Succeed())
			waited := make(chan error, 1)
			go func() { waited <- cmd.Wait() }()
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			path, err := filepath.EvalSymlinks(cmd.Path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.MkdirAll(filepath.Join(dir, "pids"), 0o700)).To(Succeed())
			content := fmt.Sprintf("%d\n%s\n", cmd.Process.Pid, test.program(path))
			g.Expect(os.WriteFile(filepath.Join(dir, "pids", "sleeper.pid"), []byte(content), 0o600)).To(Succeed())

			_, ended, err := process.RemoveLeftovers(dir)
			g.Expect(err).NotTo(HaveOccurred())
			if test.ended {
				g.Expect(ended).To(ConsistOf("sleeper"))
				g.Eventually(waited).Should(Receive())
			} else {
				g.Expect(ended).To(BeEmpty())
				g.Expect(alive(cmd.Process.Pid)).To(BeTrue())
			}
		})
	}
}

func TestErrorOfAnExitedProcessHasItsOutput(t *testing.T) {
	g := NewWithT(t)
	p, err := process.Start(process.Spec{
		Name: "short",
		Path: "/bin/sh",
		Args: []string{"-c", "echo no room; exit 3"},
		Dir:  t.TempDir(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(p.Done()).Should(BeClosed())
	g.Expect(p.Err()).To(MatchError(And(ContainSubstring("exit status 3"), ContainSubstring("no room"))))
}

func TestStopKillsAProcessThatIgnoresSIGTERM(t *testing.T) {
	g := NewWithT(t)
	p, err := process.Start(process.Spec{
		Name: "deaf",
		Path: "/bin/sh",
		Args: []string{"-c", "trap '' TERM; echo up; while :; do sleep 1; done"},
		Dir:  t.TempDir(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() string { return p.Tail(1) }).Should(Equal("up"))
	g.Expect(p.Stop(100 * time.Millisecond)).To(Succeed())
	g.Expect(p.Done()).To(BeClosed())
	g.Expect(p.Err()).NotTo(HaveOccurred())
}

func TestLock(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := process.Lock(path)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = process.Lock(path)
	var locked *process.LockedError
	g.Expect(errors.As(err, &locked)).To(BeTrue())
	g.Expect(locked.Holder).To(Equal("pid " + strconv.Itoa(os.Getpid())))

	ctx, cancel := context.WithCancel(t.Context())
	_, err = process.LockWait(ctx, path, func(string) { cancel() })
	g.Expect(err).To(MatchError(context.Canceled))

	second, err := process.LockWait(t.Context(), path, func(string) { unlock() })
	g.Expect(err).NotTo(HaveOccurred())
	second()
}

func TestPortsAreReservedOnce(t *testing.T) {
	g := NewWithT(t)
	const callers, each = 20, 5
	reserved := make(chan []int, callers)
	for range callers { // The locks belong to open files, so that callers in one process exclude each other like processes.
		go func() {
			ports, err := process.ReservePorts(t.Context(), each)
			if err != nil {
				t.Error(err)
			}
			reserved <- ports
		}()
	}
	seen := map[int]bool{}
	for range callers {
		for _, port := range <-reserved {
			g.Expect(seen).NotTo(HaveKey(port))
			seen[port] = true
		}
	}
	g.Expect(seen).To(HaveLen(callers * each))
}

func pidOf(g *WithT, path string) int {
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	number, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(number)
	g.Expect(err).NotTo(HaveOccurred())
	return pid
}

// alive reports whether a process is running. A zombie is not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !errors.Is(err, os.ErrNotExist)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
