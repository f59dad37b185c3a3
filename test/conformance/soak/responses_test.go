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

// A responseLog records an exchange of each shape, and counts the requests that the simulator refused.
type responseLog struct {
	shapes  wire.Collector
	mu      sync.Mutex
	refused map[string]int // count by call, status and code
	bad     []string       // error responses that are not in refusals
}

// minorCode matches the code of an error in XML or JSON.
var minorCode = regexp.MustCompile(`minorErrorCode"?[=:] ?"(\w+)"`)

// refusals lists the errors that concurrent clients may cause: prefixes of the operation, and of status and code. Some
// clients do not distinguish them from other errors, so they are checked here.
var refusals = []struct{ operation, refusal string }{
	{"", "400 BUSY_ENTITY"},
	{"GET ", "403 ACCESS_TO_RESOURCE_IS_FORBIDDEN"},               // deleted objects
	{"POST /api/vApp/vapp/action/undeploy", "400 BAD_REQUEST"},    // CAPVCD undeploys vApps that are powered off
	{"POST /cloudapi/1.0.0/ipSpaces/allocate", "400 BAD_REQUEST"}, // another client took the suggested address
	{"POST /oauth/provider/token", "400 "},                        // the cloud provider tries this endpoint first
	{"PUT /cloudapi/1.0.0/entities", "412 "},                      // another client updated the entity since it was read
}

func (l *responseLog) observe(x vcdsim.Exchange) {
	l.shapes.Observe(x)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused == nil {
		l.refused = map[string]int{}
	}
	l.refused[x.Operation+": "+refusal]++
	if !known && len(l.bad) < maxReported {
		l.bad = append(l.bad, fmt.Sprintf("%s: %d %s", x.Operation, x.Status, x.Response))
	}
}

// check reports each unexpected error response, and each difference from the formats that VMware published.
func (l *responseLog) check(t *testing.T) {
	t.Helper()
	for _, text := range l.bad {
		t.Error(text)
	}
	report, err := wire.CheckPublished(t.Context(), t.TempDir(), l.shapes.Exchanges())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Errorf("%s\n%s", v, v.Body)
	}
	t.Logf("compared %d shapes of JSON exchanges and %d of XML responses with VMware's published formats %s", report.JSON, report.XML,
		report.Skipped)
}
