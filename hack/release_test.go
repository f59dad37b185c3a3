// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons/chart"
)

var release = flag.Bool("release", false, "make a whole release; it takes minutes")

const tested = "v2.0.0-test"

// TestARelease creates a release and verifies its files as users would.
func TestARelease(t *testing.T) {
	if !*release {
		t.Skip("-release is not set")
	}
	g := NewWithT(t)
	out := t.TempDir()

	cmd := exec.Command("./release.sh", out, tested)
	cmd.Env = append(os.Environ(), "PLATFORMS="+strings.Join([]string{
		runtime.GOOS + "/" + runtime.GOARCH,
		"linux/arm64",
		"darwin/amd64",
		"darwin/arm64",
	}, " "), "CNI_SOURCES="+standIns(t))
	// The output is printed immediately, so that slow or hanging steps are visible.
	cmd.Stdout = os.Stdout
	cmd.Stderr = os.Stderr
	g.Expect(cmd.Run()).To(Succeed())

	folder := filepath.Join(out, "release", tested)
	sums := checksums(t, filepath.Join(folder, "SHA256SUMS"))
	entries, err := os.ReadDir(folder)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveLen(len(sums) + 1))
	for name, sum := range sums {
		content, err := os.ReadFile(filepath.Join(folder, name))
		g.Expect(err).NotTo(HaveOccurred())
		is := sha256.Sum256(content)
		g.Expect(hex.EncodeToString(is[:])).To(Equal(sum), name)
	}
	for _, name := range []string{
		"infrastructure-components.yaml",
		"metadata.yaml",
		"cluster-template.yaml",
		"cluster-template-flatcar.yaml",
		"clusterclass-quick-start.yaml",
		"cni-cilium.yaml",
		"cni-images.txt",
		"cloud-director-ccm.yaml",
		"cloudstack-ccm.yaml",
		"vsphere-cloud-controller-manager.yaml",
		"notes.md",
		"vcdsim_darwin_arm64",
		"cloud-provider-for-cloud-director_linux_arm64",
		chart.FileName(tested),
	} {
		g.Expect(sums).To(HaveKey(name))
	}
	components, err := os.ReadFile(filepath.Join(folder, "infrastructure-components.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(components)).To(ContainSubstring("cluster-api-vcd-controller:" + tested + "\n"))
	archives, err := filepath.Glob(filepath.Join(out, "images", "*.tar"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(archives)).To(BeNumerically(">=", 4))

	program := filepath.Join(folder, "vcdsim_"+runtime.GOOS+"_"+runtime.GOARCH)
	version, err := exec.Command(program, "--version").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), "%s", version)
	g.Expect(string(version)).To(ContainSubstring(tested))
}

// checksums parses the output of sha256sum.
func checksums(t *testing.T, path string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	file, err := os.Open(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	sums := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		sum, name, found := strings.Cut(lines.Text(), "  ")
		g.Expect(found).To(BeTrue())
		sums[name] = sum
	}
	g.Expect(sums).NotTo(BeEmpty())
	return sums
}

func TestAnInvalidVersionIsRejected(t *testing.T) {
	for version, says := range map[string]string{
		"2.0.0":    "is no version",
		"v2":       "is no version",
		"v2.0.0;x": "is no version",
		"v7.0.0":   "metadata.yaml",
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			out, err := exec.Command("./release.sh", t.TempDir(), version).CombinedOutput()
			g.Expect(err).To(HaveOccurred())
			g.Expect(string(out)).To(ContainSubstring(says))
		})
	}
}

func TestReleaseNotesComeFromChangelogAndCommits(t *testing.T) {
	script, err := filepath.Abs("release-notes.sh")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, tt := range []struct {
		name, version string
		contains      []string
		lacks         []string
	}{
		{
			name:     "the first release needs no commits",
			version:  "v1.0.0",
			contains: []string{"# v1.0.0", "The first.", "/blob/v1.0.0/docs/a.md)"},
			lacks:    []string{"## Commits", "Begin"},
		},
		{
			name:     "a later release has the commits since the last one, not since its candidate",
			version:  "v1.1.0",
			contains: []string{"Something new.", "## Commits since v1.0.0", "- Add (", "- Mend ("},
			lacks:    []string{"- Begin (", "The first."},
		},
		{
			name:     "untagged commits",
			version:  "v1.2.0",
			contains: []string{"To come.", "## Commits since v1.1.0", "- Go on ("},
			lacks:    []string{"- Mend (", "Something new."},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			cmd := exec.Command(script, tt.version)
			cmd.Dir = repository(t)

			out, err := cmd.CombinedOutput()

			g.Expect(err).NotTo(HaveOccurred(), "%s", out)
			for _, text := range tt.contains {
				g.Expect(string(out)).To(ContainSubstring(text))
			}
			for _, text := range tt.lacks {
				g.Expect(string(out)).NotTo(ContainSubstring(text))
			}
		})
	}
}

// repository creates two releases, a candidate between them, and a commit after them.
func repository(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	changelog := "# Changelog\n\n## Unreleased\n\nTo come.\n\n## 1.1.0 (2026-02-01)\n\nSomething new.\n\n" +
		"## 1.0.0 (2026-01-01)\n\nThe first. [More](docs/a.md)\n"
	g.Expect(os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(changelog), 0o600)).To(Succeed())
	for _, args := range [][]string{
		{"init", "-q"},
		{"commit", "-q", "--allow-empty", "-m", "Begin"},
		{"tag", "v1.0.0"},
		{"commit", "-q", "--allow-empty", "-m", "Add"},
		{"tag", "v1.1.0-rc.1"},
		{"commit", "-q", "--allow-empty", "-m", "Mend"},
		{"tag", "v1.1.0"},
		{"commit", "-q", "--allow-empty", "-m", "Go on"},
	} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s", out)
	}
	return dir
}
