// SPDX-License-Identifier: Apache-2.0

package query

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// vmRows returns the rows of VMs, sorted by ID, followed by the rows of the VMs of templates.
func vmRows(r *api.Request) []row {
	order := r.Cloud.Store.Order
	vms := make([]vmRow, 0, len(order))
	out := make([]row, 0, len(order))
	viewer := access.ViewerOf(r)
	for _, placed := range order {
		if !viewer.Sees(placed.VApp) {
			continue
		}
		vms = append(vms, vmRow{r: r, vm: placed.VM, vapp: placed.VApp})
		out = append(out, &vms[len(vms)-1])
	}
	for _, rec := range templateVMRecords(r) {
		out = append(out, rec)
	}
	return out
}

// A vmRow computes the row of a VM on demand, so that a query over many VMs creates only the rows of its page.
type vmRow struct {
	r    *api.Request
	vm   *store.VM
	vapp *store.VApp
}

// orgAttr returns the organization of a row. It returns the zero value unless the caller is a provider.
func orgAttr(r *api.Request, id string) xmltree.Attr {
	if !r.Session.Provider() {
		return xmltree.Attr{}
	}
	return xmltree.A("org", r.Site.Href("org", id))
}

func (w *vmRow) get(c column) (value string, found bool) {
	switch {
	case c.ofVM == nil:
		return "", false
	case c.ofVM.id != nil:
		return c.ofVM.id(w), true
	}
	value = c.ofVM.value(w)
	return value, value != "" || !c.ofVM.optional
}

func (w *vmRow) labels() map[string]store.Metadata { return w.vm.Metadata }

func (w *vmRow) record() *record {
	attrs := make([]xmltree.Attr, 0, len(vmAttributes))
	for _, a := range vmAttributes {
		if value := a.value(w); value != "" || !a.optional {
			attrs = append(attrs, xmltree.Attr{Name: a.name, Value: value})
		}
	}
	return &record{
		attrs:    attrs,
		metadata: w.vm.Metadata,
		links:    recordLinks(w.r.Site, "vm", w.vm.ID),
	}
}
