// SPDX-License-Identifier: Apache-2.0

package kubevip_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
)

const (
	initConfiguration = `---
apiServer:
  extraArgs: []
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3

---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
`
	joinConfiguration = `---
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
`
	initFile     = "run/kubeadm/kubeadm.yaml"
	joinFile     = "run/kubeadm/kubeadm-join-config.yaml"
	ignitionFile = "etc/kubeadm.yml"
	successFile  = "run/cluster-api/bootstrap-success.complete"
	manifestFile = "etc/kubernetes/manifests/kube-vip.yaml"
	admin        = "/etc/kubernetes/admin.conf"
	superAdmin   = "/etc/kubernetes/super-admin.conf"
)

// node is a folder in place of the root of a node's file system.
type node struct {
	t    *testing.T
	root string
	data map[string][]byte
}

// newNode creates the manifest and the scripts, as cloud-init writes them before any command runs.
func newNode(t *testing.T, files map[string]string, mods ...func(*kubevip.Config)) *node {
	t.Helper()
	n := &node{t: t, root: t.TempDir(), data: render(t, config(mods...))}
	n.write(manifestFile, string(n.data[kubevip.KeyManifest]))
	for name, content := range files {
		n.write(name, content)
	}
	return n
}

func (n *node) write(name, content string) {
	n.t.Helper()
	g := NewWithT(n.t)
	path := filepath.Join(n.root, name)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

func (n *node) read(name string) string {
	n.t.Helper()
	g := NewWithT(n.t)
	data, err := os.ReadFile(filepath.Join(n.root, name))
	g.Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func (n *node) has(name string) bool {
	_, err := os.Stat(filepath.Join(n.root, name))
	return err == nil
}

// program adds a shell script to the PATH of the scripts.
func (n *node) program(name, script string) {
	n.t.Helper()
	n.write("bin/"+name, "#!/bin/sh\n"+script+"\n")
	NewWithT(n.t).Expect(os.Chmod(filepath.Join(n.root, "bin", name), 0o755)).To(Succeed())
}

// run runs the script under key with every path below the node's root.
func (n *node) run(key string, args ...string) (string, error) {
	n.t.Helper()
	cmd := exec.Command("sh", append([]string{"-s", n.root}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(n.root, "bin")+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(string(n.data[key]))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (n *node) mustRun(key string) {
	n.t.Helper()
	out, err := n.run(key)
	NewWithT(n.t).Expect(err).NotTo(HaveOccurred(), out)
}

// kubeconfig returns the kubeconfig of kube-vip.
func (n *node) kubeconfig() string {
	n.t.Helper()
	g := NewWithT(n.t)
	pod := podOf(n.t, map[string][]byte{kubevip.KeyManifest: []byte(n.read(manifestFile))})
	at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "kubeconfig" })
	target, err := os.Readlink(filepath.Join(n.root, pod.Spec.Volumes[at].HostPath.Path))
	g.Expect(err).NotTo(HaveOccurred())
	return target
}

func TestScriptsOnTheNodeThatStartsTheCluster(t *testing.T) {
	tests := []struct {
		name string
		file string
	}{
		{"with cloud-init", initFile},
		{"with Ignition", ignitionFile},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			n := newNode(t, map[string]string{tt.file: initConfiguration})
			written := n.read(manifestFile)

			n.mustRun(kubevip.KeyPrepare)
			g.Expect(n.kubeconfig()).To(Equal(superAdmin))
			n.mustRun(kubevip.KeyPrepare)
			g.Expect(n.kubeconfig()).To(Equal(superAdmin))

			n.write(successFile, "success\n")
			n.mustRun(kubevip.KeyCleanup)
			g.Expect(n.kubeconfig()).To(Equal(admin))
			n.mustRun(kubevip.KeyCleanup)
			g.Expect(n.kubeconfig()).To(Equal(admin))
			g.Expect(n.read(manifestFile)).To(Equal(written), "another manifest would be another pod")
		})
	}
}

func TestOtherNodesGetAdminConf(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
	}{
		{"a joining node", map[string]string{joinFile: joinConfiguration}},
		{"a joining node with Ignition", map[string]string{ignitionFile: joinConfiguration}},
		{"a node without kubeadm", nil},
		{
			"kubeadm 1.28, which has no super-admin.conf",
			map[string]string{initFile: strings.ReplaceAll(initConfiguration, "v1.36.3", "v1.28.15")},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			n := newNode(t, tt.files)

			n.mustRun(kubevip.KeyPrepare)
			g.Expect(n.kubeconfig()).To(Equal(admin))
			g.Expect(n.read("etc/kube-vip/hosts")).To(ContainSubstring("kubernetes"))
			n.write(successFile, "success\n")
			n.mustRun(kubevip.KeyCleanup)
			g.Expect(n.kubeconfig()).To(Equal(admin))
		})
	}
}

func TestPrepareDetectsKubeadmWithSuperAdmin(t *testing.T) {
	tests := []struct {
		name    string
		version string
		want    string
	}{
		{"1.29 is the first version with it", "kubernetesVersion: v1.29.0", superAdmin},
		{"a quoted version", `kubernetesVersion: "v1.28.3"`, admin},
		{"a pre-release", "kubernetesVersion: v1.37.0-alpha.1", superAdmin},
		{"no version means a recent one", "clusterName: acme", superAdmin},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			n := newNode(t, map[string]string{initFile: strings.ReplaceAll(initConfiguration,
				"kubernetesVersion: v1.36.3", tt.version)})

			n.mustRun(kubevip.KeyPrepare)

			g.Expect(n.kubeconfig()).To(Equal(tt.want))
		})
	}
}

func TestCleanupKeepsPermissionsWhileInitMayBeRepeated(t *testing.T) {
	g := NewWithT(t)
	n := newNode(t, map[string]string{initFile: initConfiguration})

	n.mustRun(kubevip.KeyPrepare)
	n.mustRun(kubevip.KeyCleanup)

	g.Expect(n.kubeconfig()).To(Equal(superAdmin))
}

func TestPrepareMapsKubernetesToTheNode(t *testing.T) {
	g := NewWithT(t)
	n := newNode(t, map[string]string{joinFile: joinConfiguration})

	n.mustRun(kubevip.KeyPrepare)

	g.Expect(strings.Split(n.read("etc/kube-vip/hosts"), "\n")[0]).To(Equal("127.0.0.1 localhost kubernetes"))
}

func TestScriptsLeaveNothingBehind(t *testing.T) {
	g := NewWithT(t)
	n := newNode(t, map[string]string{initFile: initConfiguration, successFile: "success\n"})

	n.mustRun(kubevip.KeyPrepare)
	n.mustRun(kubevip.KeyCleanup)

	entries, err := os.ReadDir(filepath.Join(n.root, "etc/kube-vip"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveLen(2), "the link and the hosts file")
}

func TestCleanupOfAnUnpreparedNode(t *testing.T) {
	newNode(t, nil).mustRun(kubevip.KeyCleanup)
}

func TestScriptsPassShellCheck(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is not installed: install the package shellcheck to run this test")
	}
	g := NewWithT(t)

	out, err := exec.Command("shellcheck", "prepare.sh", "cleanup.sh").CombinedOutput()

	g.Expect(err).NotTo(HaveOccurred(), string(out))
}
