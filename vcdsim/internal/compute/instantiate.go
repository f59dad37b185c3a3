// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A vmSource is a VM of a template from which a request creates a VM.
type vmSource struct {
	template *store.Template
	vm       *store.TemplateVM
	name     string // name of the new VM if the request does not specify one
}

// vmSources returns the VM of a template, or all VMs of a template, to which a Source element refers. The name in an
// element that refers to a VM is that of the new VM. The name in other elements is that of the template.
func vmSources(r *api.Request, source *xmltree.Node) ([]vmSource, error) {
	id := fiql.ID(source.Attr("href"))
	sh, tpl, one := r.Cloud.Store.TemplateVM(id)
	if one == nil {
		sh, tpl = r.Cloud.Store.Template(id)
	}
	if tpl == nil {
		return nil, store.Forbidden("VAPP_TEMPLATE_INSTANTIATE", store.Bare(source.Attr("href")))
	}
	if !access.Reads(r, sh) {
		return nil, store.Forbidden("VAPP_TEMPLATE_INSTANTIATE", id)
	}
	if tpl.Status != int(store.PoweredOff) {
		return nil, store.BadRequest("The vApp template %q is not in a state to be instantiated.", tpl.Name)
	}
	if len(tpl.VMs) == 0 {
		return nil, store.BadRequest("The vApp template %q does not contain any VMs.", tpl.Name)
	}
	if one != nil {
		return []vmSource{{tpl, one, api.OrElse(source.Attr("name"), one.Name)}}, nil
	}
	var out []vmSource
	for i := range tpl.VMs {
		out = append(out, vmSource{tpl, &tpl.VMs[i], tpl.VMs[i].Name})
	}
	return out, nil
}

// instantiateVMs returns the VMs of a vApp that is created from a template. A SourcedItem of the request contains
// parameters of one of them.
func instantiateVMs(r *api.Request, vdc *store.VDC, v *store.VApp, tree *xmltree.Node) ([]*store.VM, error) {
	sources, err := vmSources(r, tree.At("Source"))
	if err != nil {
		return nil, err
	}
	items := map[string]*xmltree.Node{}
	for _, s := range sources {
		items[s.vm.ID] = xmltree.New("SourcedItem")
	}
	for _, item := range tree.All("SourcedItem") {
		id := fiql.ID(item.At("Source").Attr("href"))
		if items[id] == nil {
			return nil, store.BadRequest("%q is not a VM of the vApp template %q.", id, sources[0].template.Name)
		}
		items[id] = item
	}
	var out []*store.VM
	for _, s := range sources {
		vm, err := newVM(r, vdc, v, s, items[s.vm.ID])
		if err != nil {
			return nil, err
		}
		out = append(out, vm)
	}
	return out, checkNewVMs(r.Cloud, vdc, v, out)
}
