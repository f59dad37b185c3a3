// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A violation is something that must not happen.
type violation struct {
	At      time.Duration // simulated time
	Cluster string        // empty if it concerns the whole run
	Text    string
	Calls   []string // the last calls to the site
}

// A judge collects violations, each once.
type judge struct {
	seed uint64
	out  io.Writer

	mu    sync.Mutex
	found []violation
}

// maxViolations bounds the printed violations: the first ones explain the others.
const maxViolations = 50

// report records a violation and prints it, unless it is known.
func (j *judge) report(v violation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := slices.ContainsFunc(j.found, func(f violation) bool { return f.Cluster == v.Cluster && f.Text == v.Text })
	if known {
		return
	}
	j.found = append(j.found, v)
	if len(j.found) > maxViolations {
		return
	}
	_, _ = fmt.Fprintf(j.out, "VIOLATION seed %d, %s, cluster %s: %s\n", j.seed, hours(v.At), or(v.Cluster, "(all)"),
		v.Text)
	for _, call := range v.Calls {
		_, _ = fmt.Fprintln(j.out, "    ", call)
	}
}

// count returns the number of violations.
func (j *judge) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.found)
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// lastCalls returns the last calls to a site that are about an object, given by a part of the path, and otherwise the
// last changes.
func lastCalls(requests []vcdsim.Request, about string) []string {
	const most = 12
	var ours, changes []string
	for _, r := range requests {
		line := fmt.Sprintf("%s %s %s: %d (%s, cell %d)", r.Time.Format("15:04:05"), r.Method, r.Path, r.Status, r.User,
			r.Cell)
		if about != "" && strings.Contains(r.Path, about) {
			ours = append(ours, line)
		}
		if r.Changes() {
			changes = append(changes, line)
		}
	}
	if len(ours) == 0 {
		ours = changes
	}
	return ours[max(0, len(ours)-most):]
}
