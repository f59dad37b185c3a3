// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// CPIModule is VMware's cloud provider, which has the OpenAPI document.
const CPIModule = "github.com/vmware/cloud-provider-for-cloud-director"

// A Report is what holding exchanges to all that VMware published found.
type Report struct {
	Violations []Violation
	JSON, XML  int    // how many shapes were checked
	Skipped    string // why XML was not checked
}

// CheckPublished holds exchanges to VMware's OpenAPI document, and to its schemas and recordings where these are found.
func CheckPublished(ctx context.Context, scratch string, exchanges []vcdsim.Exchange) (Report, error) {
	var r Report
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", CPIModule).Output()
	if err != nil {
		return r, fmt.Errorf("finding module %s: %w", CPIModule, err)
	}
	document, err := LoadOpenAPI(filepath.Join(strings.TrimSpace(string(module)), "pkg/vcdswaggerclient_37_2/api/swagger.yaml"))
	if err != nil {
		return r, err
	}
	r.Violations, r.JSON = document.Check(exchanges)
	truth, missing := groundTruth()
	if missing != "" {
		r.Skipped = missing
		return r, nil
	}
	found, n, err := CheckXML(truth, scratch, exchanges)
	if err != nil {
		return r, err
	}
	order, err := ReadOrder(filepath.Join(truth, "recordings"))
	if err != nil {
		return r, err
	}
	r.XML = n
	r.Violations = append(append(r.Violations, found...), order.Check(exchanges)...)
	return r, nil
}

// groundTruth finds VMware's schemas and recorded answers, which are data the project does not carry: in the folder of
// the environment variable, or beside the repository. If not, it says what is missing.
func groundTruth() (dir, missing string) {
	if _, err := exec.LookPath("xmllint"); err != nil {
		return "", "xmllint (Debian's libxml2-utils) is not installed"
	}
	for _, dir := range []string{
		os.Getenv("VCD_GROUNDTRUTH"),
		"../../../shared/groundtruth",
		"../../../../shared/groundtruth",
	} {
		absolute, err := filepath.Abs(dir)
		if err != nil || dir == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(absolute, "check-xml")); err == nil {
			return absolute, ""
		}
	}
	return "", "set VCD_GROUNDTRUTH to a folder with VMware's XML schemas and the script check-xml"
}
