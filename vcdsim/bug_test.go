// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/frontend"
)

func TestBugsAreReported(t *testing.T) {
	g := NewWithT(t)
	log := gbytes.NewBuffer()
	sim, err := vcdsim.New(vcdsim.Config{
		Model:   vcdsim.K8sTenant(),
		Log:     slog.New(slog.NewTextHandler(log, nil)),
		Observe: func(frontend.Exchange) { panic("no such row") },
	})
	g.Expect(err).NotTo(HaveOccurred())
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/versions", nil)

	g.Expect(func() { sim.ServeHTTP(httptest.NewRecorder(), request) }).To(PanicWith(http.ErrAbortHandler))

	g.Expect(log).To(gbytes.Say("Bug in the simulator.*/api/versions.*no such row.*stack="))
}
