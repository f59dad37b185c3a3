// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/conformance/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

const cpiModule = "github.com/vmware/cloud-provider-for-cloud-director"

// TestProjectsOwnTests runs the simulator's tests and holds what goes over the wire to what VMware published. Exchanges
// that other tests of the project recorded in the directory VCDSIM_RECORD are checked too.
func TestProjectsOwnTests(t *testing.T) {
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

// checkWire requires that exchanges are as published.
func checkWire(t *testing.T, exchanges []vcdsim.Exchange) {
	t.Helper()
	document, err := wire.LoadOpenAPI(filepath.Join(moduleDir(t, ".", cpiModule),
		"pkg/vcdswaggerclient_37_2/api/swagger.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	violations, n := document.Check(exchanges)
	t.Logf("%d shapes of JSON exchanges held to VMware's OpenAPI document: %d violations", n, len(violations))
	if n == 0 {
		t.Error("no JSON exchange to check")
	}
	report := func(found []wire.Violation) {
		for _, v := range found {
			t.Errorf("%s\n%s", v, v.Body)
		}
	}
	report(violations)
	truth, err := groundTruth()
	if err != nil {
		t.Logf("XML is not checked: %s", err)
		return
	}
	violations, n, err = wire.CheckXML(truth, t.TempDir(), exchanges)
	if err != nil {
		t.Fatal(err)
	}
	report(violations)
	order, err := wire.ReadOrder(filepath.Join(truth, "recordings"))
	if err != nil {
		t.Fatal(err)
	}
	disorder := order.Check(exchanges)
	report(disorder)
	t.Logf("%d shapes of XML answers held to VMware's schemas: %d violations; to the order in recordings: %d", n,
		len(violations), len(disorder))
	if n == 0 {
		t.Error("no XML exchange to check")
	}
}

// groundTruth finds VMware's schemas and recorded answers, which are data the project does not carry.
func groundTruth() (string, error) {
	if _, err := exec.LookPath("xmllint"); err != nil {
		return "", errors.New("xmllint (Debian's libxml2-utils) is not installed")
	}
	for _, dir := range []string{os.Getenv("VCD_GROUNDTRUTH"), "../../../shared/groundtruth"} {
		if _, err := os.Stat(filepath.Join(dir, "check-xml")); dir != "" && err == nil {
			return filepath.Abs(dir)
		}
	}
	return "", errors.New("set VCD_GROUNDTRUTH to a folder with VMware's XML schemas and the script check-xml")
}
