// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestAReleaseIncludesTheProgramsOfItsUpgradeTargets(t *testing.T) {
	g := NewWithT(t)
	b := &builder{root: "../.."}
	all := releases()
	g.Expect(otherReleases(all[0])).To(Equal(all[1:]))
	g.Expect(otherReleases(all[1])).To(Equal(all[:1]))

	groups, err := b.groups(all[1])

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(groups).To(ContainElement(b.kubernetes(all[0])))
	g.Expect(groups).To(ContainElement(b.kubernetes(all[1])))
	g.Expect(groups).To(HaveEach(HaveField("Programs", Not(BeEmpty()))))
}
