// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// readProducts reads a list of product sections.
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

// ProductSection shows properties, when there are any.
func ProductSection(properties map[string]store.Property) *xmltree.Node {
	if len(properties) == 0 {
		return nil
	}
	n := xmltree.New("ovf:ProductSection", xmltree.A("ovf:required", false),
		xmltree.T("ovf:Info", "Information about the installed software"))
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		p := properties[key]
		n.Add(xmltree.New("ovf:Property", xmltree.A("ovf:key", key), xmltree.A("ovf:type", p.Type),
			xmltree.A("ovf:userConfigurable", p.UserConfigurable),
			xmltree.A("ovf:value", p.Default), xmltree.OptT("ovf:Label", p.Label),
			xmltree.OptT("ovf:Description", p.Description),
			xmltree.New("ovf:Value", xmltree.A("ovf:value", p.Value))))
	}
	return n
}

// PropertyValues are the properties as the guest reads them.
func PropertyValues(properties map[string]store.Property) map[string]string {
	out := make(map[string]string, len(properties))
	for key, p := range properties {
		out[key] = p.Value
	}
	return out
}

// ProductSections is the list of product sections of what is at a path.
func ProductSections(site wire.Site, path string, properties map[string]store.Property) *xmltree.Node {
	path += "/productSections/"
	return xmltree.New("ProductSectionList", wire.Namespaces(), xmltree.A("href", site.Base()+path),
		xmltree.A("type", wire.Mime("productSections")),
		site.Link("edit", path, wire.Mime("productSections")), ProductSection(properties))
}

func vmProducts(r *api.Request, vm *store.VM) *api.Response {
	return api.XML(ProductSections(r.Site, "/api/vApp/vm-"+vm.ID, vm.Properties))
}

func putVMProducts(r *api.Request) (*api.Response, error) {
	return changeVM(r, func(_ *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) (err error) {
		c.Properties = true
		vm.Properties, err = readProducts(tree)
		return err
	})
}

func getVAppProducts(r *api.Request, v *store.VApp) (*api.Response, error) {
	return api.XML(ProductSections(r.Site, "/api/vApp/vapp-"+v.ID, v.Properties)), nil
}

func putVAppProducts(r *api.Request, v *store.VApp, tree *xmltree.Node) (*api.Response, error) {
	properties, err := readProducts(tree)
	if err != nil {
		return nil, err
	}
	return r.Start(store.Work{Op: cloud.OpProducts, VApp: v.ID, Properties: properties}, v.Entity(), []string{v.ID}), nil
}

func commitProducts(s *cloud.Cloud, t *store.Task) error {
	v := s.Store.VApps[t.Work.VApp]
	if v == nil {
		return cloud.Gone("vApp", t.Work.VApp)
	}
	v.Properties = t.Work.Properties
	return nil
}
