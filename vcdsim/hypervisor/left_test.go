// SPDX-License-Identifier: Apache-2.0

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
		s.Eventually(func() []string { return hypervisor.Left(s.dir) }, bootWithin).Should(BeEmpty())
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
	g := NewWithT(t)
	dir := stateDir(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVictim$", "-victim="+dir, "-images="+from)
	cmd.Stdout = os.Stderr
	cmd.Stderr = os.Stderr
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
	g.Expect(hypervisor.Left(dir)).To(BeEmpty(), "the next start cleans up")
	g.Expect(h.Close()).To(Succeed())
}

// inGroups lists the processes in the control groups of a state folder.
func inGroups(dir string) []string {
	recorded, err := os.ReadFile(filepath.Join(dir, "control-groups"))
	var out []string
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
