// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestAReleaseIncludesTheProxiesOfTheOthers(t *testing.T) {
	b := &builder{root: "../.."}
	all := releases()
	for _, r := range all {
		t.Run(r.version, func(t *testing.T) {
			g := NewWithT(t)
			others := otherReleases(r)
			g.Expect(others).To(HaveLen(len(all) - 1))
			g.Expect(others).NotTo(ContainElement(r))

			groups, err := b.groups(r)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(groups).To(ContainElement(b.kubernetes(r)))
			for _, other := range others {
				g.Expect(groups).To(ContainElement(b.proxy(other)))
				g.Expect(groups).NotTo(ContainElement(b.kubernetes(other)))
			}
			g.Expect(groups).To(HaveEach(HaveField("Programs", Not(BeEmpty()))))
		})
	}
}
