// SPDX-License-Identifier: Apache-2.0

package query

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// vmRecords are the rows of VMs, by id, then those of templates' VMs.
func vmRecords(r *api.Request) []*record {
	out := make([]*record, 0, len(r.Cloud.Store.Order))
	rows := make([]vmRow, len(r.Cloud.Store.Order))
	records := make([]record, len(rows))
	table := &vmTable{r: r}
	viewer := access.ViewerOf(r)
	for i, vm := range r.Cloud.Store.Order {
		vapp := r.Cloud.Store.VApps[vm.VAppID]
		if !viewer.Sees(vapp) {
			continue
		}
		rows[i] = vmRow{table: table, vm: vm, vapp: vapp}
		records[i] = record{metadata: vm.Metadata, row: &rows[i]}
		out = append(out, &records[i])
	}
	return append(out, templateVMRecords(r)...)
}

// A vmRow is a VM's record to be made.
type vmRow struct {
	table *vmTable
	vm    *store.VM
	vapp  *store.VApp
}

// A vmTable is what all rows of a query share.
type vmTable struct {
	r      *api.Request
	column string       // that was peeked at last
	last   *vmAttribute // of that name
}

// attribute finds an attribute by its name: a filter asks for the same one in row after row.
func (t *vmTable) attribute(name string) *vmAttribute {
	if t.column != name {
		t.column = name
		t.last = vmAttributeNamed(name)
	}
	return t.last
}

// orgOf is the organization of a row, which only providers see.
func orgOf(r *api.Request, id string) xmltree.Attr {
	if !r.Session.Provider() {
		return xmltree.Attr{}
	}
	return xmltree.A("org", r.Site.Href("org", id))
}

// peek computes one attribute alone; references, which filters compare by their ids, are bare ids.
func (w *vmRow) peek(name string) (value string, found bool) {
	switch name {
	case "id", "href": // in the order of hrefs, VMs come before templates' VMs
		return w.vm.ID, true
	case "container":
		return w.vapp.ID, true
	case "vdc":
		return w.vapp.VDCID, true
	}
	a := w.table.attribute(name)
	if a == nil {
		return "", false
	}
	value = a.value(w)
	return value, value != "" || !a.optional
}

func (w *vmRow) fill(rec *record) {
	attrs := make([]xmltree.Attr, 0, len(vmAttributes))
	for _, a := range vmAttributes {
		if value := a.value(w); value != "" || !a.optional {
			attrs = append(attrs, xmltree.Attr{Name: a.name, Value: value})
		}
	}
	rec.attrs = attrs
	rec.links = recordLinks(w.table.r.Site, "vm", w.vm.ID)
}
