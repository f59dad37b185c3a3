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

// CPIModule is the module of VMware's cloud provider, which contains the OpenAPI document.
const CPIModule = "github.com/vmware/cloud-provider-for-cloud-director"

// A Report is the result of comparing exchanges with everything that VMware published.
type Report struct {
	Violations []Violation
	JSON, XML  int    // number of checked shapes
	Skipped    string // reason why XML was not checked
}

// CheckPublished validates exchanges against VMware's OpenAPI document, and against its XML schemas and recorded
// responses if they are available.
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

// groundTruth returns the directory with VMware's schemas and recorded responses, which this project does not
// distribute. It is the directory in the environment variable, or one beside the repository. If the directory or
// xmllint does not exist, dir is empty and missing describes what is missing.
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
