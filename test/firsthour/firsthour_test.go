// SPDX-License-Identifier: Apache-2.0

package firsthour

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// The limits on an idle machine, and the timeouts on a busy one.
const (
	idleReported, idleFixed   = 10 * time.Second, 30 * time.Second
	limitReported, limitFixed = 60 * time.Second, 120 * time.Second
)

// A row contains the measurements of one mistake.
type row struct {
	mistake, object, text string
	reported, fixed       float64 // seconds
}

func TestMistakesOfTheFirstHour(t *testing.T) {
	var mu sync.Mutex
	var rows []row
	t.Run("mistakes", func(t *testing.T) {
		for _, m := range mistakes() {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				r := runTrial(t, m)
				mu.Lock()
				defer mu.Unlock()
				rows = append(rows, r)
			})
		}
	})
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.mistake, b.mistake) })
	t.Log(table(rows))
	if *idle {
		for _, r := range rows {
			NewWithT(t).Expect(r.reported).To(BeNumerically("<=", idleReported.Seconds()), r.mistake)
			NewWithT(t).Expect(r.fixed).To(BeNumerically("<=", idleFixed.Seconds()), r.mistake)
		}
	}
}

// runTrial makes a mistake, waits until the object reports it, fixes it, and waits until all objects are ready.
func runTrial(t *testing.T, m mistake) row {
	t.Helper()
	w := newTrial(t)
	if m.setup != nil {
		m.setup(w)
	}
	start := time.Now()
	w.apply()
	if m.later != nil {
		w.Eventually(func() string { return w.ready(w.machine) }, limitFixed, "100ms").Should(HavePrefix("True"))
		start = time.Now()
		m.later(w)
	}
	var subject conditioned = w.cluster
	if m.inMachine {
		subject = w.machine
	}

	reason := MatchRegexp("^(False|Unknown) " + m.reason + ":")
	w.Eventually(func() string { return w.ready(subject) }, limitReported, "100ms").Should(reason)
	r := row{mistake: m.name, object: fmt.Sprintf("%T", subject), reported: seconds(start), text: oneLine(w.ready(subject))}
	for _, words := range m.messages {
		w.Expect(r.text).To(ContainSubstring(words))
	}
	w.Eventually(func() []string { return w.warnings(subject) }, limitReported, "100ms").
		Should(ContainElement(HavePrefix(m.reason + ": ")))

	start = time.Now()
	m.fix(w)
	if m.inMachine || w.machine != nil {
		w.Eventually(func() string { return w.ready(w.machine) }, limitFixed, "100ms").Should(HavePrefix("True"))
	}
	w.Eventually(func() string { return w.ready(w.cluster) }, limitFixed, "100ms").Should(HavePrefix("True"))
	r.fixed = seconds(start)
	w.remove()
	return r
}

// table formats the measurements.
func table(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-46s %8s %8s  condition\n", "mistake", "reported", "fixed")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-46s %7.1fs %7.1fs  %s %s\n", r.mistake, r.reported, r.fixed,
			strings.TrimPrefix(r.object, "*v1beta4."), r.text)
	}
	return b.String()
}
