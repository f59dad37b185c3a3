// SPDX-License-Identifier: Apache-2.0

package hypervisor_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
)

func TestACheckLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	dir := stateDir(t)
	err := hypervisor.Check(dir)
	if missing := (*hypervisor.MissingError)(nil); errors.As(err, &missing) {
		g.Expect(missing.Error()).To(HavePrefix("booting VMs requires "))
	} else {
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(hypervisor.Left(dir)).To(BeEmpty())
}
