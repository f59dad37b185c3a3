// SPDX-License-Identifier: Apache-2.0

package query

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// vmRecords returns the rows of VMs, sorted by ID, followed by the rows of the VMs of templates.
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

// A vmRow creates the record of a VM.
type vmRow struct {
	table *vmTable
	vm    *store.VM
	vapp  *store.VApp
}

// A vmTable holds the state that all rows of a query share.
type vmTable struct {
	r      *api.Request
	column string       // name of the last attribute
	last   *vmAttribute // the attribute with that name
}

// attribute returns the attribute with the given name. It caches the last one, as a filter requests the same attribute
// for each row.
func (t *vmTable) attribute(name string) *vmAttribute {
	if t.column != name {
		t.column = name
		t.last = vmAttributeByName(name)
	}
	return t.last
}

// orgAttr returns the organization of a row. It returns the zero value unless the caller is a provider.
func orgAttr(r *api.Request, id string) xmltree.Attr {
	if !r.Session.Provider() {
		return xmltree.Attr{}
	}
	return xmltree.A("org", r.Site.Href("org", id))
}

// peek computes one attribute. References are bare IDs, by which filters compare them.
func (w *vmRow) peek(name string) (value string, found bool) {
	switch name {
	case "id", "href": // sorted by href, VMs precede the VMs of templates
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
