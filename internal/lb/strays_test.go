// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestAClusterWithAnotherIDGetsNoSecondLoadBalancer(t *testing.T) {
	g := NewWithT(t)
	m := newModel()
	d := ourService()
	g.Expect(m.converge(&d, -1)).To(HaveField("Done()", true))
	before := d.Owner.Cluster
	stand := len(m.left(d.Owner))
	again := ourService()
	again.Owner.Cluster = "copy"

	plan := m.next(again)
	g.Expect(plan.Refusals).To(ConsistOf(And(HaveField("Reason", ClusterIDMismatch),
		HaveField("Message", ContainSubstring(`"`+before+`"`)))))
	g.Expect(plan.Steps).To(BeEmpty())

	again.Absent = true
	g.Expect(m.converge(&again, -1)).To(HaveField("Notices", ConsistOf(HaveField("Reason", ClusterIDMismatch))))
	g.Expect(m.left(d.Owner)).To(HaveLen(stand), "what is the other cluster's stays, also when the Service goes")

	g.Expect(m.next(d).Refusals).To(BeEmpty(), "with its id all is as before")
	d.Absent = true
	_, err := m.converge(&d, -1)
	g.Expect(err).NotTo(HaveOccurred())
	again.Absent = false
	g.Expect(m.converge(&again, -1)).To(HaveField("Done()", true), "and without what stood it is made")
}

func TestALoadBalancerWithBothIDsIsKept(t *testing.T) {
	g := NewWithT(t)
	m := newModel()
	d := ourService()
	g.Expect(m.converge(&d, -1)).To(HaveField("Done()", true))
	old := m.pools[0]
	stray := d.Owner
	stray.Cluster = "former"
	old.ID = "stray"
	old.Name = "stray"
	old.Description = Marker{Owner: stray}.String()
	m.pools = append(m.pools, old)

	plan := m.next(d)

	g.Expect(plan.Refusals).To(BeEmpty())
	g.Expect(plan.Notices).To(ConsistOf(HaveField("Message", ContainSubstring(`"former": "stray"`))))
	g.Expect(plan.Done()).To(BeTrue())
}
