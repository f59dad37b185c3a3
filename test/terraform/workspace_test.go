// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const configuration = "testdata/tenant"

// differences is the exit code of plan -detailed-exitcode for a plan that is not empty.
const differences = 2

// A workspace is a folder with the configuration of a tenant and its state.
type workspace struct {
	*WithT

	t         *testing.T
	programs  tools
	dir       string
	variables map[string]any
}

func newWorkspace(t *testing.T, programs tools, sim *vcdsim.Simulator, tenant tenant) *workspace {
	t.Helper()
	w := &workspace{
		WithT:    NewWithT(t),
		t:        t,
		programs: programs,
		dir:      t.TempDir(),
		variables: map[string]any{
			"url":   sim.URL(),
			"files": files(t),
		},
	}
	maps.Copy(w.variables, tenant.variables)
	w.fill()
	return w
}

// fill writes the configuration, and the settings that make the program use the built provider.
func (w *workspace) fill() {
	w.t.Helper()
	w.Expect(os.CopyFS(w.dir, os.DirFS(configuration))).To(Succeed())
	settings := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"vmware/vcd\" = %q\n  }\n  direct {}\n}\n",
		w.programs.provider)
	w.Expect(os.WriteFile(filepath.Join(w.dir, "cli.tfrc"), []byte(settings), 0o600)).To(Succeed())
}

// fresh returns a new workspace for the same tenant, without state.
func (w *workspace) fresh() *workspace {
	w.t.Helper()
	other := *w
	other.dir = w.t.TempDir()
	other.fill()
	return &other
}

func (w *workspace) apply(revision int) {
	w.t.Helper()
	w.setRevision(revision)
	code, out := w.run("apply", "-auto-approve", "-input=false", "-no-color")
	w.Expect(code).To(BeZero(), "applying revision %d:\n%s", revision, out)
}

func (w *workspace) destroy(revision int) {
	w.t.Helper()
	w.setRevision(revision)
	code, out := w.run("destroy", "-auto-approve", "-input=false", "-no-color")
	w.Expect(code).To(BeZero(), "destroying:\n%s", out)
}

// expectNoDifference checks that the plan is empty.
func (w *workspace) expectNoDifference(revision int) {
	w.t.Helper()
	w.setRevision(revision)
	code, out := w.run("plan", "-detailed-exitcode", "-input=false", "-no-color")
	w.Expect(code).To(Or(BeZero(), Equal(differences)), "planning revision %d:\n%s", revision, out)
	if code == differences {
		w.t.Errorf("the plan is not empty after revision %d was applied:\n%s", revision, out)
	}
}

func (w *workspace) setRevision(revision int) {
	w.t.Helper()
	variables := maps.Clone(w.variables)
	variables["revision"] = revision
	encoded, err := json.Marshal(variables)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(os.WriteFile(filepath.Join(w.dir, "terraform.tfvars.json"), encoded, 0o600)).To(Succeed())
}

// run runs the program. It returns the exit code, and the error output or, if it is empty, the standard output.
func (w *workspace) run(args ...string) (int, string) {
	w.t.Helper()
	began := time.Now()
	cmd := exec.CommandContext(w.t.Context(), w.programs.cli, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(w.dir, "cli.tfrc"), "TF_IN_AUTOMATION=1",
		"CHECKPOINT_DISABLE=1", "VCD_IMPORT_SEPARATOR="+separator)
	var out, problem bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &problem
	err := cmd.Run()
	w.t.Logf("%s: %s", strings.Join(args[:1], " "), time.Since(began).Round(time.Millisecond))
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	if problem.Len() > 0 {
		return cmd.ProcessState.ExitCode(), problem.String()
	}
	return cmd.ProcessState.ExitCode(), out.String()
}
