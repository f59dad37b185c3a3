// SPDX-License-Identifier: Apache-2.0

// Package hack_test runs the scripts in this folder.
package hack_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// tests are packages by name. The flaky package fails until it has written a file.
var tests = map[string]string{
	"good": `func TestGood(*testing.T) {}`,
	"flaky": `func TestFlaky(t *testing.T) {
		t.Run("sometimes", func(t *testing.T) {
			if _, err := os.Stat("ran"); err != nil {
				t.Fatal(err, os.WriteFile("ran", nil, 0o600))
			}
		})
	}`,
	"broken":  `func TestBroken(t *testing.T) { t.Fail() }`,
	"invalid": `func TestInvalid(t *testing.T) { undefined }`,
}

func TestFailedPackagesAreRerunOnce(t *testing.T) {
	const flaky = "FLAKY: example.com/m/flaky: TestFlaky TestFlaky/sometimes\n"
	for _, tt := range []struct {
		name     string
		packages string
		fails    bool
		log      string
		// runs counts the result lines of a package in the output of go test.
		runs map[string]int
	}{
		{
			name:     "passing packages run once",
			packages: "good",
			runs:     map[string]int{"ok  \texample.com/m/good\t": 1},
		},
		{
			name:     "a package that passes on the second run is flaky",
			packages: "good flaky",
			log:      flaky,
			runs: map[string]int{
				"ok  \texample.com/m/good\t":  1,
				"FAIL\texample.com/m/flaky\t": 1,
				"ok  \texample.com/m/flaky\t": 1,
			},
		},
		{
			name:     "a package that fails again fails the command",
			packages: "flaky broken",
			fails:    true,
			log:      flaky,
			runs:     map[string]int{"FAIL\texample.com/m/broken\t": 2, "ok  \texample.com/m/flaky\t": 1},
		},
		{
			name:     "a package that does not compile fails the command",
			packages: "invalid",
			fails:    true,
			runs:     map[string]int{"FAIL\texample.com/m/invalid [build failed]": 2},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			script, err := filepath.Abs("retry-failed-tests.sh")
			g.Expect(err).NotTo(HaveOccurred())
			cmd := exec.Command(script, "go", "test", "-count=1", "./...", "-some-flag-of-a-test=x")
			cmd.Dir = module(t, strings.Fields(tt.packages))
			log := filepath.Join(t.TempDir(), "flaky.txt")
			cmd.Env = append(os.Environ(), "GOFLAGS=", "FLAKY_LOG="+log)

			out, err := cmd.CombinedOutput()

			g.Expect(err != nil).To(Equal(tt.fails), "%s", out)
			for line, n := range tt.runs {
				g.Expect(strings.Count(string(out), line)).To(Equal(n), "%q in\n%s", line, out)
			}
			listed, err := os.ReadFile(log)
			g.Expect(err == nil || os.IsNotExist(err)).To(BeTrue())
			g.Expect(string(listed)).To(Equal(tt.log))
			g.Expect(string(out)).To(ContainSubstring(tt.log))
		})
	}
}

func TestACommandWithoutTestsFailsAtOnce(t *testing.T) {
	g := NewWithT(t)

	out, err := exec.Command("./retry-failed-tests.sh", "go", "test", "-timeout", "./x").CombinedOutput()

	g.Expect(err).To(HaveOccurred())
	g.Expect(string(out)).NotTo(ContainSubstring("once more"))
}

// module makes a module example.com/m with packages from tests.
func module(t *testing.T, packages []string) string {
	t.Helper()
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	write := func(path, content string) {
		path = filepath.Join(dir, path)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	write("go.mod", "module example.com/m\n\ngo 1.26\n")
	for _, name := range packages {
		write(name+"/x_test.go", `package `+name+`

import (
	"flag"
	"os"
	"testing"
)

var _, _ = flag.String("some-flag-of-a-test", "", ""), os.Args

`+tests[name]+"\n")
	}
	return dir
}
