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

// A Report is the result of comparing exchanges with the formats that VMware published.
type Report struct {
	Violations []Violation
	JSON, XML  int    // numbers of checked shapes
	Skipped    string // reason why XML was not checked
}

// CheckPublished validates exchanges against VMware's OpenAPI document and, if they are available, its XML schemas and
// recorded responses. scratch is a directory for temporary files.
func CheckPublished(ctx context.Context, scratch string, exchanges []vcdsim.Exchange) (Report, error) {
	var r Report
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", CPIModule).Output()
	if err != nil {
		return r, fmt.Errorf("locating module %s: %w", CPIModule, err)
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
// distribute. The environment variable VCD_GROUNDTRUTH selects it; otherwise it may be beside the repository. If the
// directory or xmllint does not exist, dir is empty and missing is a message.
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
