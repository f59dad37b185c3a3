// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestASiteWithAnotherPublicAddressIsSearchedByID(t *testing.T) {
	to := newTarget(t, func(c *vcdsim.Config) { c.PublicURL = "https://vcd.example.com" })
	simOnly(t, to)
	g := NewWithT(t)
	ctx := t.Context()
	s := to.session(t)
	p := to.plan(t, s, "node-0")
	vApp, task, err := s.VApps.ComposeVApp(ctx, p.vdc,
		vcd.VAppSpec{Name: "public", Networks: []vcd.Ref{p.network.Ref}, VMs: []vcd.VMSpec{p.spec}})
	await(t, s, task, err)
	s.Refresh()

	found, err := s.VApps.FindVApp(ctx, p.vdc, "public")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.ID).To(Equal(vApp.ID))
	g.Expect(s.Inventory.VMs(ctx, p.vdc, "public", 0)).To(ConsistOf(HaveField("Name", "node-0")))
	g.Expect(s.Inventory.SearchVMs(ctx, []vcd.VDC{p.vdc}, vcd.Search{Names: []string{"node-0"}})).To(HaveLen(1))
	g.Expect(s.Tasks.History(ctx, vApp.ID)).NotTo(BeEmpty())
	g.Expect(p.vdc.StorageProfiles).NotTo(BeEmpty())
	template, err := s.Templates.FindTemplate(ctx, p.spec.Template.CatalogRef.ID, to.template)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(template.ID).To(Equal(p.spec.Template.ID))
}
