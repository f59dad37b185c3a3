// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// tiltProvider contains the fields of tilt-provider.json that Cluster API's Tiltfile reads.
type tiltProvider struct {
	Config struct {
		Image          string   `json:"image"`
		GoMain         string   `json:"go_main"`
		LiveReloadDeps []string `json:"live_reload_deps"`
	} `json:"config"`
}

func readTiltProvider(g *WithT) tiltProvider {
	content, err := os.ReadFile("../tilt-provider.json")
	g.Expect(err).NotTo(HaveOccurred())
	var provider tiltProvider
	g.Expect(json.Unmarshal(content, &provider)).To(Succeed())
	return provider
}

// inRoot runs Go in the root of the repository and returns its output.
func inRoot(g *WithT, environment []string, args ...string) string {
	cmd := exec.Command("go", args...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	g.ExpectWithOffset(1, err).NotTo(HaveOccurred(), "%s", out)
	return string(out)
}

func TestTiltBuildsTheWholeMainPackage(t *testing.T) {
	g := NewWithT(t)
	main := readTiltProvider(g).Config.GoMain

	const files = `-f={{join .GoFiles " "}}`
	g.Expect(inRoot(g, nil, "list", files, main)).To(Equal(inRoot(g, nil, "list", files, ".")))
}

// TestTiltBuildsTheManager runs the command line of Cluster API's Tiltfile. Its build tags differ from ours, so all
// dependencies are compiled again.
func TestTiltBuildsTheManager(t *testing.T) {
	if !*release {
		t.Skip("compiles all dependencies with another build tag: run it with -release")
	}
	g := NewWithT(t)
	binary := filepath.Join(t.TempDir(), "manager")

	inRoot(g, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + runtime.GOARCH}, "build", "-tags=fieldsv1string",
		"-gcflags", "", "-ldflags", `-extldflags "-static"`, "-o", binary, readTiltProvider(g).Config.GoMain)

	g.Expect(binary).To(BeARegularFile())
}

func TestTiltRebuildsWhenAnImportOfTheManagerChanges(t *testing.T) {
	g := NewWithT(t)
	want := []string{"go.mod", "go.sum"}
	want = append(want, strings.Fields(inRoot(g, nil, "list", `-f={{join .GoFiles " "}}`, "."))...)
	module := strings.TrimSpace(inRoot(g, nil, "list", "-m")) + "/"
	seen := map[string]bool{}
	for _, imported := range strings.Fields(inRoot(g, nil, "list", "-deps", ".")) {
		path, ours := strings.CutPrefix(imported, module)
		folder, _, _ := strings.Cut(path, "/")
		if ours && !seen[folder] {
			seen[folder] = true
			want = append(want, folder)
		}
	}

	g.Expect(readTiltProvider(g).Config.LiveReloadDeps).To(ConsistOf(want))
}

// Tilt replaces the image with this name in the output of `kustomize build config/default`.
func TestTiltNamesTheImageOfTheManifests(t *testing.T) {
	g := NewWithT(t)

	kustomization, err := os.ReadFile("../config/manager/kustomization.yaml")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(kustomization)).To(ContainSubstring("newName: " + readTiltProvider(g).Config.Image + "\n"))
}
