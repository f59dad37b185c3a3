// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/conformance/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

var (
	all    = flag.Bool("all", false, "run every test, not only the listed ones")
	update = flag.Bool("update", false, "with -all: add the tests that newly pass to the lists")
	only   = flag.String("only", "", "run the tests whose names match this regular expression, regardless of the lists")
	report = flag.String("report", "",
		"directory for the output of each test, in files named by outcome and test")
)

// TestMain runs all shards in parallel even on fewer processors, because their clients sleep most of the time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(shards)); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// compileTests builds the tests of a package in the version that the module in folder requires.
func compileTests(t *testing.T, folder, pkg string, tags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), filepath.Base(pkg)+".test")
	// Some tests upload their own source file, so they need its full path, regardless of the caller's GOFLAGS.
	run(t, folder, nil, "go", "test", "-c", "-trimpath=false", "-tags", strings.Join(tags, ","), "-o", binary, pkg)
	return binary
}

// moduleDir returns the folder in the module cache of the version that the module in folder requires.
func moduleDir(t *testing.T, folder, module string) string {
	t.Helper()
	return strings.TrimSpace(run(t, folder, nil, "go", "list", "-m", "-f", "{{.Dir}}", module))
}

func run(t *testing.T, folder string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles and runs external test suites; not in short mode")
	}
}

// A suite is a test binary that runs against a simulator.
type suite struct {
	t      *testing.T
	binary string
	dir    string
	env    []string
	format format
	tally  *tally
	wire   wire.Collector
	sim    *vcdsim.Simulator
	limit  time.Duration // of one run
}

// start creates a suite and starts its simulator, which logs each request to the tally. Tasks take no time, so that
// clients do not wait for them.
func start(t *testing.T, f format, model vcdsim.Model, release vcdsim.Version) *suite {
	t.Helper()
	s := &suite{t: t, dir: t.TempDir(), format: f, tally: newTally(t, f), limit: 20 * time.Minute}
	if *all {
		s.limit = 4 * time.Minute // Some unlisted tests never end.
	}
	sim, err := vcdsim.New(vcdsim.Config{
		Model:   model,
		Version: release,
		Profile: vcdsim.Instant,
		Log:     slog.New(s.tally),
		Observe: s.wire.Observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	s.sim = sim
	return s
}

// run runs the binary and returns the result of each test.
func (s *suite) run(args ...string) results {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stdout = s.tally.write
	cmd.Stderr = s.tally.write
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	err := s.tally.follow(done)
	if ctx.Err() != nil {
		s.t.Logf("The suite did not complete within %s; the running test was %s", s.limit, s.tally.current)
	}
	s.t.Logf("The suite ended: %v", err)
	if unknown := s.sim.Unhandled(); len(unknown) > 0 {
		s.t.Logf("Requests that the simulator does not support:\n  %s", strings.Join(unknown, "\n  "))
	}
	return s.tally.results
}

// checkList compares the results with the list in a file, and updates or reports it as the flags request.
func checkList(t *testing.T, list string, got results) {
	t.Helper()
	must := readList(t, list)
	var passed []string
	for name, r := range got {
		if r.passed() {
			passed = append(passed, name)
		}
	}
	slices.Sort(passed)
	t.Logf("%d of %d tests passed; %d are listed", len(passed), len(got), len(must))
	if *only == "" {
		checkListed(t, must, got)
	}
	newlyPassing := slices.DeleteFunc(passed, func(name string) bool { return slices.Contains(must, name) })
	if len(newlyPassing) > 0 {
		t.Logf("%d passed and are not listed; add them with -args -all -update:\n  %s", len(newlyPassing),
			strings.Join(newlyPassing, "\n  "))
	}
	if *report != "" {
		writeReport(t, *report, got)
	}
	if *all && *update {
		writeList(t, list, append(must, newlyPassing...))
	}
}

// checkListed reports an error for each listed test that did not pass.
func checkListed(t *testing.T, must []string, got results) {
	t.Helper()
	for _, name := range must {
		if r := got[name]; !r.passed() {
			t.Errorf("%s must pass: %s\n%s", name, r, r.output)
		}
	}
}

func writeReport(t *testing.T, dir string, got results) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, r := range got {
		text := fmt.Sprintf("%s: %s\n\n%s", name, r, r.output)
		outcome := cmp.Or(r.outcome, "HUNG")
		if outcome == "PASS" && !r.passed() {
			outcome = "IDLE" // no request
		}
		if err := os.WriteFile(filepath.Join(dir, outcome+"-"+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func readList(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var out []string
	for _, line := range strings.Split(string(data), "\n") {
		name, _, _ := strings.Cut(line, "#")
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func writeList(t *testing.T, file string, names []string) {
	t.Helper()
	slices.Sort(names)
	head := fmt.Sprintf(
		"# %d tests that must pass. Names are only added: go test . -args -all -update\n",
		len(names))
	if err := os.WriteFile(file, []byte(head+strings.Join(names, "\n")+"\n"), fs.FileMode(0o644)); err != nil {
		t.Fatal(err)
	}
}
