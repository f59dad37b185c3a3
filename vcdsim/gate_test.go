// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/frontend"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/journal"
)

func TestAGateIsCalledBeforeAndAfterTheOperation(t *testing.T) {
	c := start(t, manual)
	type question struct {
		moment    frontend.Moment
		operation string
		status    int
		vApps     int
	}
	var calls []question
	closed := map[frontend.Moment]bool{}
	c.sim.SetGate(func(_ context.Context, m frontend.Moment, r journal.Request) bool {
		calls = append(calls, question{m, r.Operation, r.Status, len(c.sim.State().VApps)})
		return !closed[m]
	})
	path := c.vdc() + "/action/composeVApp"
	calls = nil

	closed[frontend.Arrived] = true
	_, err := c.http.Do(c.request(http.MethodPost, path, c.compose("held", ""))) //nolint:bodyclose // there is none
	c.Expect(err).To(HaveOccurred())
	c.Expect(calls).To(Equal([]question{{frontend.Arrived, "POST /api/vdc/action/composeVApp", 0, 0}}))
	last := c.sim.Requests()[len(c.sim.Requests())-1]
	c.Expect(last.Status).To(BeZero(), "requests without a response are logged as well")

	closed[frontend.Arrived] = false
	closed[frontend.Worked] = true
	calls = nil
	_, err = c.http.Do(c.request(http.MethodPost, path, c.compose("held", ""))) //nolint:bodyclose // there is none
	c.Expect(err).To(HaveOccurred())
	c.Expect(calls).To(Equal([]question{
		{frontend.Arrived, "POST /api/vdc/action/composeVApp", 0, 0},
		{frontend.Worked, "POST /api/vdc/action/composeVApp", 201, 1},
	}))

	c.sim.SetGate(nil)
	calls = nil
	c.Expect(c.get("/api/org").status).To(Equal(http.StatusOK))
	c.Expect(calls).To(BeEmpty())
}
