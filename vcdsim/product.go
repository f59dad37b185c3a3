// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A Property is one of a product section, which the OVF environment passes to the software in a VM or vApp.
type Property struct {
	Value, Default           string
	Type, Label, Description string
	UserConfigurable         bool
}

// readProducts reads a list of product sections.
func readProducts(tree *xmltree.Node) (map[string]Property, error) {
	out := map[string]Property{}
	for _, section := range tree.All("ProductSection") {
		for _, p := range section.All("Property") {
			key := p.Attr("key")
			if key == "" {
				return nil, badRequest("Bad request - a Property has no key.")
			}
			out[key] = readProperty(p)
		}
	}
	return out, nil
}

func readProperty(p *xmltree.Node) Property {
	out := Property{
		Value:            p.Attr("value"),
		Default:          p.Attr("value"),
		Type:             orElse(p.Attr("type"), "string"),
		Label:            p.Str("Label"),
		Description:      p.Str("Description"),
		UserConfigurable: p.Attr("userConfigurable") == "true",
	}
	if v := p.At("Value"); v != nil {
		out.Value = v.Attr("value")
	}
	return out
}

// productSection shows properties, when there are any.
func productSection(properties map[string]Property) *xmltree.Node {
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

// propertyValues are the properties as the guest reads them.
func propertyValues(properties map[string]Property) map[string]string {
	out := make(map[string]string, len(properties))
	for key, p := range properties {
		out[key] = p.Value
	}
	return out
}

// productSections is the list of product sections of what is at a path.
func productSections(r *request, path string, properties map[string]Property) *xmltree.Node {
	path += "/productSections/"
	return xmltree.New("ProductSectionList", namespaces(), xmltree.A("href", r.base()+path),
		xmltree.A("type", mime("productSections")),
		r.link("edit", path, mime("productSections")), productSection(properties))
}

func vmProducts(r *request, vm *VM) *response {
	return xmlOK(productSections(r, "/api/vApp/vm-"+vm.ID, vm.Properties))
}

func putVMProducts(r *request) (*response, error) {
	return changeVM(r, func(_ *request, vm *VM, tree *xmltree.Node, c *vmChange) (err error) {
		c.Properties = true
		vm.Properties, err = readProducts(tree)
		return err
	})
}

func getVAppProducts(r *request, v *VApp) (*response, error) {
	return xmlOK(productSections(r, "/api/vApp/vapp-"+v.ID, v.Properties)), nil
}

func putVAppProducts(r *request, v *VApp, tree *xmltree.Node) (*response, error) {
	properties, err := readProducts(tree)
	if err != nil {
		return nil, err
	}
	return r.start(Work{Op: opProducts, VApp: v.ID, Properties: properties}, v.entity(), []string{v.ID}), nil
}

func commitProducts(s *Simulator, t *Task) error {
	v := s.store.VApps[t.Work.VApp]
	if v == nil {
		return gone("vApp", t.Work.VApp)
	}
	v.Properties = t.Work.Properties
	return nil
}

// properties returns the product section of a VM in a template.
func (vm *TemplateVM) properties() map[string]Property {
	out := map[string]Property{}
	for key, value := range vm.Properties {
		out[key] = Property{Type: "string", Default: value, Value: value}
	}
	return out
}

// extraConfig returns the extra configuration of a VM that is made from one in a template.
func (vm *TemplateVM) extraConfig() map[string]string {
	out := map[string]string{}
	maps.Copy(out, vm.ExtraConfig)
	return out
}
