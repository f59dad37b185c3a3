// SPDX-License-Identifier: Apache-2.0

package ovf

import (
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// ProductSection returns a ProductSection with properties. It returns nil if there are no properties.
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

// PropertyValues returns the properties as the guest reads them.
func PropertyValues(properties map[string]store.Property) map[string]string {
	out := make(map[string]string, len(properties))
	for key, p := range properties {
		out[key] = p.Value
	}
	return out
}

// ProductSections returns the editable list of product sections of the entity at a path.
func ProductSections(site wire.Site, path string, properties map[string]store.Property) *xmltree.Node {
	n := NoProductSections(site, path)
	n.Add(site.Link("edit", path+"/productSections/", wire.Mime("productSections")))
	n.Add(ProductSection(properties))
	return n
}

// NoProductSections returns the empty list of product sections of the entity at a path, which cannot have any.
func NoProductSections(site wire.Site, path string) *xmltree.Node {
	return xmltree.New("ProductSectionList", wire.Namespaces(), xmltree.A("href", site.Base()+path+"/productSections/"),
		xmltree.A("type", wire.Mime("productSections")))
}
