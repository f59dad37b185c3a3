// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestReconcilesAreCountedByTheirResult(t *testing.T) {
	outcomes := []struct {
		name string
		out  Result
		err  error
		want string
	}{
		{"a waiting phase", Wait(time.Second, "R", "m"), nil, "waiting"},
		{"a phase that needs action by a user", Stop("R", "m"), nil, "problem"},
		{"a phase with an unknown result", Unsure(time.Second, "R", "m"), nil, "unknown"},
		{"a failing phase", Done, errors.New("no"), "error"},
	}
	for _, tt := range outcomes {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			counter := Passes.WithLabelValues("VCDMachine", "Counted", tt.want)
			before := testutil.ToFloat64(counter)
			phases := []Phase[int]{{
				Condition: "Counted",
				Run:       func(context.Context, int) (Result, error) { return tt.out, tt.err },
			}}

			run(t.Context(), &infrav1.VCDMachine{}, 0, phases, events.NewFakeRecorder(9))

			g.Expect(testutil.ToFloat64(counter)).To(Equal(before + 1))
		})
	}
}
