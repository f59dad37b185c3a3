// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// Each program prints its build: the commit of a work tree with go build and go install, and the release with make
// build.
func TestEachProgramPrintsItsVersion(t *testing.T) {
	if !*release {
		t.Skip("links all programs three times: run it with -release")
	}
	g := NewWithT(t)
	clone := filepath.Join(t.TempDir(), "clone") // Go does not read a commit in an additional Git work tree.
	out, err := exec.Command("git", "clone", "-q", "--shared", "..", clone).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	entries, err := os.ReadDir("../cmd")
	g.Expect(err).NotTo(HaveOccurred())
	programs := []string{"cluster-api-provider-vcd"} // the manager
	for _, entry := range entries {
		programs = append(programs, entry.Name())
	}
	const commit = `^commit [0-9a-f]{12}(-dirty)? \(go`
	for name, tt := range map[string]struct {
		command func(bin string) *exec.Cmd
		want    string
	}{
		"go build": {
			func(bin string) *exec.Cmd { return exec.Command("go", "build", "-o", bin, ".", "./cmd/...") },
			commit,
		},
		"go install": {
			func(bin string) *exec.Cmd {
				install := exec.Command("go", "install", ".", "./cmd/...")
				install.Env = append(os.Environ(), "GOBIN="+bin)
				return install
			},
			commit,
		},
		"make build": {
			func(bin string) *exec.Cmd {
				return exec.Command("make", "build", "VERSION=v9.8.7", "OUT="+filepath.Dir(bin))
			},
			`^v9\.8\.7 \(commit [0-9a-f]{12}(-dirty)?, go`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			bin := filepath.Join(t.TempDir(), "bin")
			g.Expect(os.Mkdir(bin, 0o750)).To(Succeed())
			build := tt.command(bin)
			build.Dir = clone
			build.Env = append(build.Environ(), "GOFLAGS=-trimpath")
			out, err := build.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(out))

			for _, program := range programs {
				said, err := exec.Command(filepath.Join(bin, program), "--version").CombinedOutput()
				g.Expect(err).NotTo(HaveOccurred(), program)
				g.Expect(string(said)).To(MatchRegexp(tt.want), program)
			}
		})
	}
}
