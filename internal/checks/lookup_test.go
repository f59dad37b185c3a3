// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
)

func TestTheRemedyOfALookupNamesTheField(t *testing.T) {
	t.Parallel()
	NewWithT(t).Expect(checks.Network.Remedy("spec.ovdcNetwork of the VCDCluster")).To(Equal(
		"correct spec.ovdcNetwork of the VCDCluster, or connect the network to the VDC"))
}
