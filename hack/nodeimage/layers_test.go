// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestEveryReleaseIsPinned(t *testing.T) {
	for _, r := range releases() {
		t.Run(r.version, func(t *testing.T) {
			g := NewWithT(t)
			pins, err := os.ReadFile(filepath.Join("../..", r.module, "go.mod"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(pins)).To(ContainSubstring("k8s.io/kubernetes " + r.version + " "))
		})
	}
}

func TestVersionsAreSelected(t *testing.T) {
	g := NewWithT(t)
	newest := releases()[0]

	g.Expect(parseReleases("all")).To(Equal(releases()))
	g.Expect(parseReleases(newest.version)).To(Equal([]release{newest}))
	_, err := parseReleases(newest.version + ",v1.2.3")
	g.Expect(err).To(MatchError(ContainSubstring(`no image for Kubernetes "v1.2.3": choose ` + newest.version)))
}

func TestImagesHaveTheNamesInTheManifests(t *testing.T) {
	g := NewWithT(t)
	manifest, err := os.ReadFile("../../internal/kubevip/generated/pod-arp.yaml")
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(string(manifest)).To(ContainSubstring("image: " + kubeVIP + "\n"))
	g.Expect(string(networkManifest)).To(ContainSubstring("image: " + networkImage + "\n"))
}

func TestTemplatesOfANodeAreFilled(t *testing.T) {
	g := NewWithT(t)

	tree, err := treeOf(nodeFiles, "node", struct{ Pause string }{"registry.example.com/pause:1"})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(tree.Files["/etc/containerd/config.toml"])).To(ContainSubstring("sandbox = 'registry.example.com/pause:1'"))
	g.Expect(tree.Executables["/usr/local/bin/kubeadm"]).To(BeTrue())
	g.Expect(tree.Executables["/etc/systemd/system/kubelet.service"]).To(BeFalse())
}

func TestNoFileIsBelowASymbolicLinkOfDebian(t *testing.T) {
	for _, files := range []fs.FS{systemFiles, nodeFiles} {
		_ = fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, _ error) error {
			_, path, _ := strings.Cut(name, "/")
			for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
				if path == link {
					t.Errorf("%s would hide Debian's /%s: it belongs in /usr", name, link)
				}
			}
			return nil
		})
	}
}

func TestStubsRespondLikeAVirtualMachine(t *testing.T) {
	for _, c := range []struct {
		command, output string
		fails           bool
	}{
		{"usr/bin/systemd-detect-virt", "vmware\n", false},
		{"usr/bin/systemd-detect-virt --container", "none\n", true},
		{"usr/bin/systemd-detect-virt --quiet --container", "", true},
		{"usr/bin/systemd-detect-virt -q", "", false},
		{"usr/sbin/dmidecode --string system-product-name", "VMware Virtual Platform\n", false},
		{"usr/sbin/dmidecode -s system-product-name", "VMware Virtual Platform\n", false},
		{"usr/sbin/dmidecode --string system-uuid", "00000000-0000-0000-0000-000000000000\n", false},
	} {
		t.Run(c.command, func(t *testing.T) {
			g := NewWithT(t)
			args := strings.Fields(c.command)
			args[0] = filepath.Join("system", args[0])

			out, err := exec.CommandContext(t.Context(), "sh", args...).Output()

			g.Expect(string(out)).To(Equal(c.output))
			g.Expect(err != nil).To(Equal(c.fails))
		})
	}
}

func TestScriptsAreValidShell(t *testing.T) {
	g := NewWithT(t)
	for _, script := range []string{
		"system/usr/bin/systemd-detect-virt", "system/usr/sbin/dmidecode", "system/usr/local/lib/vm/init",
		"node/usr/local/bin/kubeadm",
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-n", script).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s: %s", script, out)
	}
}
