package vcd

import (
	"context"
	"fmt"

	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// Templates are the vApp templates of catalogs.
type Templates struct{ *client }

// FindTemplate finds a vApp template by the names of catalog and template, or by the template's URN. The catalog may be
// one that another organisation shares.
func (t *Templates) FindTemplate(ctx context.Context, catalog, template string) (Template, error) {
	return lookup(ctx, t.lookups, key("template", catalog, template), func(ctx context.Context) (Template, error) {
		ref, in, err := t.locateTemplate(ctx, catalog, template)
		if err != nil {
			return Template{}, err
		}
		return t.readTemplate(ctx, ref, in)
	})
}

// A located template is one whose catalog is known, if it was found by name.
type locatedTemplate struct{ ref, catalog Ref }

func (t *Templates) locateTemplate(ctx context.Context, catalog, template string) (locatedTemplate, string, error) {
	if isURN(template) {
		return locatedTemplate{ref: Ref{ID: urnOf(kindTemplate, template), Name: template}}, "", nil
	}
	in := "catalog " + catalog
	filter, err := t.templateFilter(catalog, template, in)
	if err != nil {
		return locatedTemplate{}, in, err
	}
	var found types.QueryResultRecordsType
	if err := t.queryPage(ctx, "vAppTemplate", filter, 1, "", &found); err != nil {
		return locatedTemplate{}, in, fmt.Errorf("looking up template %s: %w", template, err)
	}
	var hits []Ref
	catalogs := map[string]Ref{}
	for _, r := range both(found.VappTemplateRecord, found.AdminVappTemplateRecord) {
		if r.CatalogName == catalog || isURN(catalog) {
			id := urnOf(kindTemplate, r.HREF)
			hits = append(hits, Ref{ID: id, Name: r.Name})
			catalogs[id] = Ref{ID: urnOf(kindCatalog, r.Catalog), Name: r.CatalogName}
		}
	}
	ref, err := only("template", template, in, hits)
	if err != nil && len(hits) == 0 && !isURN(catalog) {
		err = t.blameCatalog(ctx, catalog, err)
	}
	return locatedTemplate{ref: ref, catalog: catalogs[ref.ID]}, in, err
}

func (t *Templates) templateFilter(catalog, template, in string) (string, error) {
	if err := checkName("template", template, in); err != nil {
		return "", err
	}
	by := term{"catalogName", catalog}
	if isURN(catalog) {
		by = term{"catalog", catalog}
	} else if err := checkName("catalog", catalog, ""); err != nil {
		return "", err
	}
	return allOf(term{"name", template}, by), nil
}

// blameCatalog returns an error about the catalog if there is none of that name, else notFound.
func (t *Templates) blameCatalog(ctx context.Context, catalog string, notFound error) error {
	var found types.QueryResultRecordsType
	if err := t.queryPage(ctx, "catalog", allOf(term{"name", catalog}), 1, "", &found); err != nil {
		return notFound
	}
	for _, r := range both(found.CatalogRecord, found.AdminCatalogRecord) {
		if r.Name == catalog {
			return notFound
		}
	}
	return &LookupError{Kind: "catalog", Name: catalog, In: "organization " + t.config.Org, Err: ErrNotFound}
}

// templateDocument is what is read of a template: of its VMs, the SDK's type leaves out what a machine is made of.
type templateDocument struct {
	Name   string     `xml:"name,attr"`
	ID     string     `xml:"id,attr"`
	Status int        `xml:"status,attr"`
	VMs    []types.Vm `xml:"Children>Vm"`
}

// readTemplate reads a template and refuses those no machine can be made from.
func (t *Templates) readTemplate(ctx context.Context, at locatedTemplate, in string) (Template, error) {
	var doc templateDocument
	if err := t.getXML(ctx, pathOf(kindTemplate, at.ref.ID), &doc); err != nil {
		return Template{}, missing("template", at.ref.Name, in, err)
	}
	refuse := func(reason string) (Template, error) {
		return Template{}, &LookupError{Kind: "template", Name: doc.Name, In: in, Reason: reason, Err: ErrInvalid}
	}
	switch {
	case len(doc.VMs) == 0:
		return refuse("has no VM: upload it again, or choose another")
	case Status(doc.Status) != StatusPoweredOff && Status(doc.Status) != StatusResolved:
		return refuse(fmt.Sprintf("is not ready: it is %s", Status(doc.Status)))
	}
	vm := vmFrom(&doc.VMs[0])
	found := Template{
		Ref: Ref{ID: at.ref.ID, Name: doc.Name}, VM: vm.Ref, CPUs: vm.CPUs, MemoryMiB: vm.MemoryMiB,
		NICs: len(vm.NICs), StorageID: vm.StorageProfile.ID, CatalogRef: at.catalog,
	}
	if spec := doc.VMs[0].VmSpecSection; spec != nil {
		found.OS = spec.OsType
	}
	if len(vm.Disks) > 0 {
		found.DiskMiB = vm.Disks[0].SizeMiB
	}
	return found, nil
}
