// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// readProducts reads a list of product sections into properties by key.
func readProducts(tree *xmltree.Node) (map[string]store.Property, error) {
	out := map[string]store.Property{}
	for _, section := range tree.All("ProductSection") {
		for _, p := range section.All("Property") {
			key := p.Attr("key")
			if key == "" {
				return nil, store.BadRequest("Bad request - a Property has no key.")
			}
			out[key] = readProperty(p)
		}
	}
	return out, nil
}

func readProperty(p *xmltree.Node) store.Property {
	out := store.Property{
		Value:            p.Attr("value"),
		Default:          p.Attr("value"),
		Type:             api.OrElse(p.Attr("type"), "string"),
		Label:            p.Str("Label"),
		Description:      p.Str("Description"),
		UserConfigurable: p.Attr("userConfigurable") == "true",
	}
	if v := p.At("Value"); v != nil {
		out.Value = v.Attr("value")
	}
	return out
}

func vmProducts(r *api.Request, vm *store.VM) *api.Response {
	return api.XML(ovf.ProductSections(r.Site, "/api/vApp/vm-"+vm.ID, vm.Properties))
}

func putVMProducts(r *api.Request) (*api.Response, error) {
	return changeVM(r, func(_ *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) (err error) {
		c.Properties = true
		vm.Properties, err = readProducts(tree)
		return err
	})
}

func getVAppProducts(site wire.Site, v *store.VApp) (*api.Response, error) {
	return api.XML(ovf.ProductSections(site, "/api/vApp/vapp-"+v.ID, v.Properties)), nil
}

func putVAppProducts(r *api.Request, v *store.VApp, tree *xmltree.Node) (*api.Response, error) {
	properties, err := readProducts(tree)
	if err != nil {
		return nil, err
	}
	return r.Start(store.Work{Op: cloud.OpProducts, VApp: v.ID, Properties: properties}, v.Entity(), []string{v.ID}), nil
}
