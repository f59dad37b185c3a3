// SPDX-License-Identifier: Apache-2.0

package problems_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestProblemsOfCallsNameTheirCauseAndARemedy(t *testing.T) {
	for kind, remedy := range map[error]string{
		vcd.ErrUnavailable:  "spec.site",
		vcd.ErrTLS:          "spec.tls.caBundle",
		vcd.ErrUnauthorized: "Secret",
	} {
		t.Run(kind.Error(), func(t *testing.T) {
			g := NewWithT(t)
			out, err := problems.OfRequest(fmt.Errorf("https://vcd.example.com: no such host: %w", kind))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.Message).To(And(ContainSubstring("vcd.example.com: no such host"),
				ContainSubstring(remedy), Not(ContainSubstring("see the"))))
		})
	}
}
