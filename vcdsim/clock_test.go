// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAManualClock(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	c := vcdsim.NewManualClock(start)
	var rang []time.Duration
	note := func() { rang = append(rang, c.Now().Sub(start)) }
	c.AfterFunc(3*time.Second, note)
	c.AfterFunc(time.Second, func() {
		note()
		c.AfterFunc(time.Second, note)
	})
	cancel := c.AfterFunc(2*time.Second, note)
	cancel()
	cancel()

	c.Advance(500 * time.Millisecond)
	g.Expect(rang).To(BeEmpty())
	c.Advance(2 * time.Second)
	g.Expect(rang).To(Equal([]time.Duration{time.Second, 2 * time.Second}),
		"including timers set on the way, each at its time")
	c.Advance(time.Hour)
	g.Expect(rang).To(HaveLen(3))
	g.Expect(c.Now().Sub(start)).To(Equal(time.Hour + 2500*time.Millisecond))
}

func TestATickingClock(t *testing.T) {
	g := NewWithT(t)
	c := vcdsim.NewClock(1000)
	rang := make(chan time.Time, 2)
	start := c.Now()
	c.AfterFunc(time.Hour, func() { rang <- c.Now() })
	c.AfterFunc(10*time.Second, func() { rang <- c.Now() })
	var at time.Time
	g.Eventually(rang).Should(Receive(&at))
	g.Expect(at.Sub(start)).To(BeNumerically(">=", 10*time.Second))
	c.Advance(time.Hour)
	g.Expect(rang).To(Receive(&at))
	g.Expect(at.Sub(start)).To(BeNumerically(">=", time.Hour))
}
