// SPDX-License-Identifier: Apache-2.0

// Package wire compares the traffic of the simulator with the formats that VMware published: the OpenAPI document of
// cloudapi, the XML schemas of the legacy API, and the order of elements in recorded responses. It depends only on the
// exchanges of the simulator.
package wire

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

// A Violation is a difference between an exchange and the published format.
type Violation struct {
	Operation string
	Status    int
	Where     string // request, response, route; for XML: document or order
	What      string
	Body      string // beginning of the invalid body
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %d: %s: %s", v.Operation, v.Status, v.Where, v.What)
}

// A Collector stores one exchange of each shape. It is safe for concurrent use.
type Collector struct {
	mu   sync.Mutex
	seen map[string]vcdsim.Exchange
}

// Observe stores an exchange unless one of the same shape is already stored.
func (c *Collector) Observe(x vcdsim.Exchange) {
	name := record.Shape(x)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]vcdsim.Exchange{}
	}
	if _, ok := c.seen[name]; !ok {
		c.seen[name] = x
	}
}

// Exchanges returns the stored exchanges, sorted by operation.
func (c *Collector) Exchanges() []vcdsim.Exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]vcdsim.Exchange, 0, len(c.seen))
	for _, x := range c.seen {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b vcdsim.Exchange) int {
		return cmp.Or(strings.Compare(a.Operation, b.Operation), cmp.Compare(a.Status, b.Status),
			strings.Compare(a.URI, b.URI))
	})
	return out
}

// distinct removes duplicate violations.
func distinct(all []Violation) []Violation {
	seen := map[string]bool{}
	var out []Violation
	for _, v := range all {
		if !seen[v.String()] {
			seen[v.String()] = true
			out = append(out, v)
		}
	}
	return out
}

func excerpt(body []byte) string {
	const maxLength = 1500
	if len(body) > maxLength {
		return string(body[:maxLength]) + "…"
	}
	return string(body)
}
