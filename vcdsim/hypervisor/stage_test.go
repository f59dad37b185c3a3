// SPDX-License-Identifier: Apache-2.0

package hypervisor_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
)

func TestTheStageIsDerivedFromTheFilesOfTheVM(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	write := func(path string) {
		path = filepath.Join(dir, "vms", "id", path)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte("node\n"), 0o600)).To(Succeed())
	}
	stage := func() hypervisor.Stage { return hypervisor.StageOf(dir, "node") }
	g.Expect(stage()).To(BeEmpty(), "no VM")
	write("name")
	g.Expect(stage()).To(Equal(hypervisor.StageOff))
	write("pid")
	g.Expect(stage()).To(Equal(hypervisor.StageBooting))
	write("upper/var/log/cloud-init.log")
	g.Expect(stage()).To(Equal(hypervisor.StageCloudInit))
	write("upper/etc/kubernetes/pki/ca.crt")
	g.Expect(stage()).To(Equal(hypervisor.StageKubeadm))
	write("upper/etc/kubernetes/kubelet.conf")
	g.Expect(stage()).To(Equal(hypervisor.StageJoined))
}
