// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/conformance/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// maxReported is the maximum number of reported findings per kind.
const maxReported = 20

// answers records the responses of the simulator: an exchange of each shape, and the refusals.
type answers struct {
	shapes  wire.Collector
	mu      sync.Mutex
	refused map[string]int // count by call, status and code
	bad     []string       // responses that blame the server, or that no client should cause
}

// minorCode finds the code of an error, in XML and JSON.
var minorCode = regexp.MustCompile(`minorErrorCode"?[=:] ?"(\w+)"`)

// refusals are the refusals that clients cause while others work: operation, status and code, which may be empty to
// match any. Some clients do not distinguish them from other errors, so the test checks them here.
var refusals = []struct{ operation, refusal string }{
	{"", "400 BUSY_ENTITY"},
	{"GET ", "403 ACCESS_TO_RESOURCE_IS_FORBIDDEN"},               // deleted objects
	{"POST /api/vApp/vapp/action/undeploy", "400 BAD_REQUEST"},    // CAPVCD undeploys vApps that are off
	{"POST /cloudapi/1.0.0/ipSpaces/allocate", "400 BAD_REQUEST"}, // another client took the suggested address
	{"POST /oauth/provider/token", "400 "},                        // the cloud provider tries this first
	{"PUT /cloudapi/1.0.0/entities", "412 "},                      // another client wrote after the entity was read
}

func (a *answers) observe(x vcdsim.Exchange) {
	a.shapes.Observe(x)
	if x.Status < http.StatusBadRequest {
		return
	}
	code := ""
	if match := minorCode.FindSubmatch(x.Response); match != nil {
		code = string(match[1])
	}
	refusal := fmt.Sprintf("%d %s", x.Status, code)
	known := slices.ContainsFunc(refusals, func(r struct{ operation, refusal string }) bool {
		return strings.HasPrefix(x.Operation, r.operation) && strings.HasPrefix(refusal, r.refusal)
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused == nil {
		a.refused = map[string]int{}
	}
	a.refused[x.Operation+": "+refusal]++
	if !known && len(a.bad) < maxReported {
		a.bad = append(a.bad, fmt.Sprintf("%s: %d %s", x.Operation, x.Status, x.Response))
	}
}

// check fails for each response that is not listed, and for each response whose shape VMware did not publish.
func (a *answers) check(t *testing.T) {
	t.Helper()
	for _, text := range a.bad {
		t.Error(text)
	}
	report, err := wire.CheckPublished(t.Context(), t.TempDir(), a.shapes.Exchanges())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Errorf("%s\n%s", v, v.Body)
	}
	t.Logf("%d shapes of JSON exchanges and %d of XML answers held to what VMware published %s", report.JSON, report.XML,
		report.Skipped)
}
