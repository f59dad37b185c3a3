// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestTheManagerDoesNotLinkOtherClouds lists the packages in the manager. Only the cloud controller manager links
// clients of other clouds.
func TestTheManagerDoesNotLinkOtherClouds(t *testing.T) {
	g := NewWithT(t)
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Dir = ".."

	out, err := list.Output()

	g.Expect(err).NotTo(HaveOccurred())
	packages := strings.Fields(string(out))
	g.Expect(packages).To(ContainElement(HaveSuffix("/internal/vcd")))
	for _, other := range []string{"/internal/cloudstack", "/cpi/cloudstack", "/cpi/vsphere", "github.com/vmware/govmomi"} {
		g.Expect(packages).NotTo(ContainElement(ContainSubstring(other)))
	}
}
