// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestARecordContainsTheInputOfTheHypervisor(t *testing.T) {
	g := NewWithT(t)
	b := &builder{dir: t.TempDir(), own: ownImages{version: "v9.9.9", image: "registry.example.com/team/manager"}}

	path, err := b.record(release{version: "v1.36.3"}, "store-1", "kubernetes-1", "system-1", "base-1")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(path).To(Equal(filepath.Join(b.dir, "debian-12-kube-v1.36.3.json")))
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(MatchJSON(`{
		"name": "debian-12-kube-v1.36.3",
		"kubernetesVersion": "v1.36.3",
		"layers": ["kubernetes-1/rootfs", "system-1/rootfs", "base-1/rootfs"],
		"imageStore": "store-1/containerd",
		"init": "/usr/local/lib/vm/init",
		"images": ["registry.example.com/team/manager:v9.9.9",
			"registry.example.com/team/cloud-provider-for-cloud-director:v9.9.9"],
		"network": "system-1/rootfs/usr/local/share/kubernetes/network.yaml"
	}`))
}

func TestUnrecordedFilesAreRemovedUnlessMounted(t *testing.T) {
	g := NewWithT(t)
	b := &builder{dir: t.TempDir()}
	for _, name := range []string{"store-old", "store-new", "kubernetes-old", "base-1", "programs"} {
		g.Expect(os.MkdirAll(filepath.Join(b.dir, name, "rootfs"), 0o700)).To(Succeed())
	}
	_, err := b.record(release{version: "v1.36.3"}, "store-new", "kubernetes-new", "system-1", "base-1")
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(b.prune()).To(Succeed())

	for name, remains := range map[string]bool{
		"store-old":      false,
		"kubernetes-old": false,
		"store-new":      true,
		"base-1":         true,
		"programs":       true,
	} {
		_, err := os.Stat(filepath.Join(b.dir, name))
		g.Expect(err == nil).To(Equal(remains), name)
	}
}

func TestMountsOfAllProcessesAreFound(t *testing.T) {
	g := NewWithT(t)
	proc := t.TempDir()
	b := &builder{dir: "/cache/nodes"}
	for pid, content := range map[string]string{
		"1":  "1 0 0:1 / / rw - ext4 /dev/vda rw\n",
		"77": "2 1 0:2 / /root rw - overlay none rw,lowerdir=/cache/nodes/kubernetes-1/rootfs:/cache/nodes/base-1/rootfs\n",
	} {
		g.Expect(os.MkdirAll(filepath.Join(proc, pid), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(proc, pid, "mountinfo"), []byte(content), 0o600)).To(Succeed())
	}

	mounts, err := b.mounts(proc)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mounts).To(And(ContainSubstring("/cache/nodes/kubernetes-1/"), Not(ContainSubstring("ext4"))))
}
