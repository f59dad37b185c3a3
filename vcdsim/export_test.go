// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/catalogs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/route"
)

// A Finder finds the operation of a request, without sending it.
type Finder func(method, address string) (operation string, found bool)

// Routes returns all routes of VCD for tests: patterns that are read without variables, and a finder.
func Routes() (plain []string, find Finder) {
	var table route.Table[struct{}]
	add := func(method, pattern string, _ api.Handler, _ time.Duration) {
		table.Add(method, pattern, struct{}{})
		if method == http.MethodGet && !strings.Contains(pattern, "{") {
			plain = append(plain, pattern)
		}
	}
	access.OpenRoutes(add)
	catalogs.UploadRoutes(add)
	for _, group := range routeGroups() {
		group(add)
	}
	return plain, func(method, address string) (string, bool) {
		u, err := url.Parse(address)
		if err != nil {
			return "", false
		}
		match, result := table.Find(method, u.EscapedPath())
		return match.Operation, result == route.Found
	}
}
