// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testcni"
)

func TestEachNetworkPluginIsInstalledByItsLabel(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()

	g.Expect(cniManifests(t, folder, "CNI_SOURCES="+standIns(t))).To(Succeed())

	for _, name := range []string{"calico", "cilium", "cilium-dual-stack"} {
		set, _ := resourceSet(t, filepath.Join(folder, "cni-"+name+".yaml"))
		g.Expect(set.Spec.ClusterSelector.MatchLabels).To(Equal(map[string]string{"cni": name}))
		g.Expect(set.Spec.Strategy).To(BeEquivalentTo(addonsv1.ClusterResourceSetStrategyApplyOnce))
	}
	_, calico := resourceSet(t, filepath.Join(folder, "cni-calico.yaml"))
	g.Expect(calico).To(ContainSubstring(`tunnel: "Always"`))
	cilium := agentOf(t, filepath.Join(folder, "cni-cilium.yaml"))
	g.Expect(cilium.Annotations).To(Equal(map[string]string{"ipam": "kubernetes", "ipv6": "false"}))
	dualStack := agentOf(t, filepath.Join(folder, "cni-cilium-dual-stack.yaml"))
	g.Expect(dualStack.Annotations).To(Equal(map[string]string{"ipam": "kubernetes", "ipv6": "true"}))
	g.Expect(os.ReadFile(filepath.Join(folder, "cni-images.txt"))).To(BeEquivalentTo(
		"quay.io/calico/node:v3.0.0\nquay.io/cilium/cilium:v1.0.0@sha256:" + strings.Repeat("0", 64) + "\n"))
}

func TestImagesOfNetworkPluginsAreInARegistryOfTheSite(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()

	g.Expect(cniManifests(t, folder, "CNI_SOURCES="+standIns(t), "CNI_REGISTRY=registry.site.example:5000/kubernetes")).To(Succeed())

	agent := agentOf(t, filepath.Join(folder, "cni-cilium.yaml"))
	g.Expect(agent.Spec.Template.Spec.Containers[0].Image).To(Equal(
		"registry.site.example:5000/kubernetes/cilium:v1.0.0@sha256:" + strings.Repeat("0", 64)))
	_, calico := resourceSet(t, filepath.Join(folder, "cni-calico.yaml"))
	g.Expect(calico).To(ContainSubstring("image: registry.site.example:5000/kubernetes/node:v3.0.0\n"))
	g.Expect(os.ReadFile(filepath.Join(folder, "cni-images.txt"))).To(ContainSubstring("quay.io/calico/node"), "the source of copies")
}

func TestValuesOfUsersReachTheChartOfCilium(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	values := filepath.Join(t.TempDir(), "values.yaml")
	g.Expect(os.WriteFile(values, []byte("ipam: {mode: multi-pool}\n"), 0o600)).To(Succeed())

	g.Expect(cniManifests(t, folder, "CNI_SOURCES="+standIns(t), "CILIUM_VALUES="+values)).To(Succeed())

	g.Expect(agentOf(t, filepath.Join(folder, "cni-cilium.yaml")).Annotations).To(HaveKeyWithValue("ipam", "multi-pool"))
}

func TestNoManifestIsWrittenFromInvalidSources(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "values.yaml")
	NewWithT(t).Expect(os.WriteFile(secret, []byte("hubble: {enabled: true}\n"), 0o600)).To(Succeed())
	for _, tt := range []struct {
		name, says string
		change     func(sources string) string
		env        []string
	}{
		{
			name:   "a file with another checksum",
			says:   "the SHA-256 is not " + strings.Repeat("0", 64),
			change: func(sources string) string { return "calico " + strings.Repeat("0", 64) + sources[len("calico ")+64:] },
		},
		{
			name:   "a plug-in without source",
			says:   "has no cilium",
			change: func(sources string) string { return strings.ReplaceAll(sources, "cilium ", "other ") },
		},
		{
			name:   "a manifest with a Secret, which would be the same in all clusters",
			says:   "a Secret would be the same in all clusters",
			change: func(sources string) string { return sources },
			env:    []string{"CILIUM_VALUES=" + secret},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			folder := t.TempDir()
			path := standIns(t)
			sources, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.WriteFile(path, []byte(tt.change(string(sources))), 0o600)).To(Succeed())

			err = cniManifests(t, folder, append(tt.env, "CNI_SOURCES="+path)...)

			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(os.ReadDir(folder)).To(BeEmpty())
		})
	}
}

// standIns returns a list of stand-ins for the published files.
func standIns(t *testing.T) string {
	t.Helper()
	sources, err := testcni.WriteSources(t.TempDir())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return sources
}

// cniManifests runs the script. Its error contains the output.
func cniManifests(t *testing.T, folder string, env ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "./cni-manifests.sh", folder)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// resourceSet reads a ClusterResourceSet and the manifest that it installs.
func resourceSet(t *testing.T, path string) (set addonsv1.ClusterResourceSet, manifest string) {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	first, second, found := bytes.Cut(content, []byte("\n---\n"))
	g.Expect(found).To(BeTrue())
	config := corev1.ConfigMap{}
	g.Expect(yaml.UnmarshalStrict(first, &set)).To(Succeed())
	g.Expect(yaml.UnmarshalStrict(second, &config)).To(Succeed())
	g.Expect(set.Spec.Resources).To(ConsistOf(addonsv1.ResourceRef{Kind: "ConfigMap", Name: config.Name}))
	return set, config.Data["manifest.yaml"]
}

// agentOf reads the one object that the stand-in of Cilium renders.
func agentOf(t *testing.T, path string) appsv1.DaemonSet {
	t.Helper()
	_, manifest := resourceSet(t, path)
	agent := appsv1.DaemonSet{}
	NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(manifest), &agent)).To(Succeed())
	return agent
}
