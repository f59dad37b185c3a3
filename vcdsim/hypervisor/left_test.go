package hypervisor_test

import (
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
)

func TestNothingIsLeft(t *testing.T) {
	s := start(t, stateDir(t))
	for range *rounds {
		vapp, _ := s.boot(t, "node", "POOL")
		s.ok(http.MethodPost, vapp+"/action/undeploy", "")
		s.ok(http.MethodDelete, vapp, "")
		s.Eventually(func() []string { return left(s.dir) }, bootWithin).Should(BeEmpty())
	}
}

// TestVictim runs a VM until it is killed.
func TestVictim(t *testing.T) {
	if *victim == "" {
		t.Skip("TestAKilledSimulatorLeavesNothing runs it")
	}
	s := start(t, *victim)
	s.boot(t, "node", "POOL")
	s.Expect(os.WriteFile(filepath.Join(*victim, "up"), nil, 0o600)).To(Succeed())
	<-t.Context().Done()
}

func TestAKilledSimulatorLeavesNothing(t *testing.T) {
	from, _ := images(t)
	g, dir := NewWithT(t), stateDir(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVictim$", "-victim="+dir, "-images="+from)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	g.Expect(cmd.Start()).To(Succeed())
	g.Eventually(func() error {
		_, err := os.Stat(filepath.Join(dir, "up"))
		return err
	}, bootWithin).Should(Succeed())
	g.Expect(hypervisor.New(hypervisor.Options{Images: from, Dir: dir})).Error().
		To(MatchError(ContainSubstring("is in use by another simulator")))

	g.Expect(cmd.Process.Kill()).To(Succeed())
	_ = cmd.Wait() // killed
	g.Eventually(func() []string { return inGroups(dir) }, time.Minute).Should(BeEmpty(), "VMs end with the simulator")
	h, err := hypervisor.New(hypervisor.Options{Images: from, Dir: dir})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left(dir)).To(BeEmpty(), "the next start sweeps")
	g.Expect(h.Close()).To(Succeed())
}

// left lists what VMs of a state folder have on this machine: files, control groups, mounts, processes.
func left(dir string) []string {
	var out []string
	for _, folder := range []string{"vms", "disks"} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil {
			continue
		}
		for _, e := range entries {
			out = append(out, "file "+e.Name())
		}
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, "/vcdsim-") && strings.HasPrefix(d.Name(), "vm-") {
			out = append(out, "control group "+path)
		}
		return nil
	})
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		out = append(out, err.Error())
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir+"/") {
			out = append(out, "mount "+line)
		}
	}
	return append(out, processes(dir)...)
}

// inGroups lists the processes in the control groups that a state folder names.
func inGroups(dir string) []string {
	recorded, err := os.ReadFile(filepath.Join(dir, "control-groups"))
	out := processes(dir)
	if err != nil {
		return append(out, err.Error())
	}
	for _, root := range strings.Fields(string(recorded)) {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "cgroup.procs" {
				data, _ := os.ReadFile(path)
				out = append(out, strings.Fields(string(data))...)
			}
			return nil
		})
	}
	return out
}

// processes lists the processes whose command line names a folder.
func processes(dir string) []string {
	var out []string
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), dir+"/") {
			out = append(out, "process "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}
