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

// The figures of an idle machine, and the limits for a busy one.
const (
	goalShown, goalHealed   = 10 * time.Second, 30 * time.Second
	limitShown, limitHealed = 60 * time.Second, 120 * time.Second
)

// A row has the measurements of one mistake.
type row struct {
	mistake, object, text string
	shown, healed         float64 // seconds
}

func TestMistakesOfTheFirstHour(t *testing.T) {
	var mu sync.Mutex
	var rows []row
	t.Run("mistakes", func(t *testing.T) {
		for _, m := range mistakes() {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				r := try(t, m)
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
			NewWithT(t).Expect(r.shown).To(BeNumerically("<=", goalShown.Seconds()), r.mistake)
			NewWithT(t).Expect(r.healed).To(BeNumerically("<=", goalHealed.Seconds()), r.mistake)
		}
	}
}

// try makes a mistake, waits until the object reports it, corrects it, and waits until everything is healthy.
func try(t *testing.T, m mistake) row {
	t.Helper()
	w := newTrial(t)
	if m.make != nil {
		m.make(w)
	}
	began := time.Now()
	w.apply()
	if m.later != nil {
		w.Eventually(func() string { return w.ready(w.machine) }, limitHealed, "100ms").Should(HavePrefix("True"))
		began = time.Now()
		m.later(w)
	}
	var looked conditioned = w.cluster
	if m.inMachine {
		looked = w.machine
	}

	reason := MatchRegexp("^(False|Unknown) " + m.reason + ":")
	w.Eventually(func() string { return w.ready(looked) }, limitShown, "100ms").Should(reason)
	r := row{mistake: m.name, object: fmt.Sprintf("%T", looked), shown: seconds(began), text: oneLine(w.ready(looked))}
	for _, words := range m.says {
		w.Expect(r.text).To(ContainSubstring(words))
	}
	w.Eventually(func() []string { return w.warnings(looked) }, limitShown, "100ms").
		Should(ContainElement(HavePrefix(m.reason + ": ")))

	began = time.Now()
	m.mend(w)
	if m.inMachine || w.machine != nil {
		w.Eventually(func() string { return w.ready(w.machine) }, limitHealed, "100ms").Should(HavePrefix("True"))
	}
	w.Eventually(func() string { return w.ready(w.cluster) }, limitHealed, "100ms").Should(HavePrefix("True"))
	r.healed = seconds(began)
	w.remove()
	return r
}

// table prints the measurements.
func table(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-46s %6s %6s  what is seen\n", "mistake", "shown", "healed")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-46s %5.1fs %5.1fs  %s %s\n", r.mistake, r.shown, r.healed,
			strings.TrimPrefix(r.object, "*v1beta4."), r.text)
	}
	return b.String()
}
