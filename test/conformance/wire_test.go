// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"os"
	"os/exec"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/conformance/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

// TestTrafficOfSimulatorTests runs the simulator's tests and compares their traffic with the formats that VMware
// published. It also checks the exchanges that other tests of the project recorded in the directory VCDSIM_RECORD.
func TestTrafficOfSimulatorTests(t *testing.T) {
	skipShort(t)
	dir := os.Getenv("VCDSIM_RECORD")
	if dir == "" {
		dir = t.TempDir()
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./vcdsim")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "VCDSIM_RECORD="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s", err, out)
	}
	exchanges, err := record.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	checkWire(t, exchanges)
}

// checkWire checks that exchanges match the formats that VMware published.
func checkWire(t *testing.T, exchanges []vcdsim.Exchange) {
	t.Helper()
	report, err := wire.CheckPublished(t.Context(), t.TempDir(), exchanges)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Errorf("%s\n%s", v, v.Body)
	}
	t.Logf("compared %d shapes of JSON exchanges and %d of XML responses with VMware's published formats: %d violations", report.JSON,
		report.XML, len(report.Violations))
	switch {
	case report.JSON == 0:
		t.Error("no JSON exchange to check")
	case report.Skipped != "":
		t.Logf("XML is not checked: %s", report.Skipped)
	case report.XML == 0:
		t.Error("no XML exchange to check")
	}
}
