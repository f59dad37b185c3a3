// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

// A Template is a vApp template whose first VM is the image of a machine.
type Template struct {
	Ref

	VM         Ref   // first VM of the template
	CPUs       int64 // CPUs of that VM
	MemoryMiB  int64
	DiskMiB    int64 // size of its first disk
	Disks      int   // number of its disks
	OS         string
	Hardware   string // virtual hardware version, such as vmx-19, if known
	NICs       int
	StorageID  string // storage profile of the template's VM, if known
	CatalogRef Ref
	Kubernetes string // Kubernetes version of the image, such as v1.36.3; empty if unknown
}

// Templates is the client for vApp templates and catalogs.
type Templates struct {
	client  *api.Client
	lookups *cache.Cache
}

// FindTemplate finds a vApp template by the names of its catalog and itself, or by its URN. The catalog may be shared
// by another organization.
func (t *Templates) FindTemplate(ctx context.Context, catalog, template string) (Template, error) {
	return cache.Lookup(ctx, t.lookups, cache.Key("template", catalog, template), func(ctx context.Context) (Template, error) {
		ref, in, err := t.locateTemplate(ctx, catalog, template)
		if err != nil {
			return Template{}, err
		}
		return t.readTemplate(ctx, ref, in)
	})
}

// A locatedTemplate is a template and its catalog. The catalog is only set if the template was found by name.
type locatedTemplate struct{ ref, catalog Ref }

func (t *Templates) locateTemplate(ctx context.Context, catalog, template string) (locatedTemplate, string, error) {
	if urn.Is(template) {
		return locatedTemplate{ref: Ref{ID: urn.Of(urn.Template, template), Name: template}}, "", nil
	}
	in := "catalog " + catalog
	filter, err := t.templateFilter(catalog, template, in)
	if err != nil {
		return locatedTemplate{}, in, err
	}
	var found types.QueryResultRecordsType
	if err := t.client.QueryPage(ctx, "vAppTemplate", filter, 1, "", &found); err != nil {
		return locatedTemplate{}, in, fmt.Errorf("looking up template %s: %w", template, err)
	}
	var hits []Ref
	catalogs := map[string]Ref{}
	for _, r := range api.Both(found.VappTemplateRecord, found.AdminVappTemplateRecord) {
		if r.CatalogName == catalog || urn.Is(catalog) {
			id := urn.Of(urn.Template, r.HREF)
			hits = append(hits, Ref{ID: id, Name: r.Name})
			catalogs[id] = Ref{ID: urn.Of(urn.Catalog, r.Catalog), Name: r.CatalogName}
		}
	}
	ref, err := only("template", template, in, hits)
	if err != nil && len(hits) == 0 {
		err = t.blameCatalog(ctx, catalog, err)
	}
	return locatedTemplate{ref: ref, catalog: catalogs[ref.ID]}, in, err
}

func (t *Templates) templateFilter(catalog, template, in string) (string, error) {
	if err := fiql.CheckName("template", template, in); err != nil {
		return "", err
	}
	by, err := t.catalogTerm(catalog)
	if err != nil {
		return "", err
	}
	return fiql.AllOf(fiql.Is("name", template), by), nil
}

// catalogTerm returns the term for the templates of a catalog, by its name or URN.
func (t *Templates) catalogTerm(catalog string) (fiql.Term, error) {
	if urn.Is(catalog) {
		return fiql.Is("catalog", catalog), nil
	}
	return fiql.Is("catalogName", catalog), fiql.CheckName("catalog", catalog, "")
}

// FindCatalog finds a catalog of the organization, or one shared with it, by name or URN. If several have the name, it
// returns any of them, because templates are searched for in all of them.
func (t *Templates) FindCatalog(ctx context.Context, nameOrURN string) (Ref, error) {
	return cache.Lookup(ctx, t.lookups, cache.Key("catalog", nameOrURN), func(ctx context.Context) (Ref, error) {
		in := "organization " + t.client.Org
		if err := fiql.CheckName("catalog", nameOrURN, in); err != nil {
			return Ref{}, err
		}
		by := fiql.Is("name", nameOrURN)
		if urn.Is(nameOrURN) {
			by = fiql.Is("id", nameOrURN)
		}
		var found types.QueryResultRecordsType
		if err := t.client.QueryPage(ctx, "catalog", fiql.AllOf(by), 1, "", &found); err != nil {
			return Ref{}, fmt.Errorf("looking up catalog %s: %w", nameOrURN, err)
		}
		for _, r := range api.Both(found.CatalogRecord, found.AdminCatalogRecord) {
			ref := Ref{ID: urn.Of(urn.Catalog, r.HREF), Name: r.Name}
			if ref.Name == nameOrURN || ref.ID == nameOrURN {
				return ref, nil
			}
		}
		return Ref{}, &LookupError{Kind: "catalog", Name: nameOrURN, In: in, Err: ErrNotFound}
	})
}

// blameCatalog returns an error about the catalog if it does not exist, otherwise notFound.
func (t *Templates) blameCatalog(ctx context.Context, catalog string, notFound error) error {
	if urn.Is(catalog) {
		return notFound
	}
	_, err := t.FindCatalog(ctx, catalog)
	if missing, ok := errors.AsType[*LookupError](err); ok {
		return missing
	}
	return notFound
}

// templateDocument contains the required parts of a template. The SDK's type omits fields of its VMs that are needed to
// create a machine.
type templateDocument struct {
	Name   string     `xml:"name,attr"`
	ID     string     `xml:"id,attr"`
	Status int        `xml:"status,attr"`
	VMs    []types.Vm `xml:"Children>Vm"`
}

// readTemplate reads a template. It fails if no machine can be created from the template.
func (t *Templates) readTemplate(ctx context.Context, at locatedTemplate, in string) (Template, error) {
	var doc templateDocument
	if err := t.client.GetXML(ctx, urn.Path(urn.Template, at.ref.ID), &doc); err != nil {
		return Template{}, missing("template", at.ref.Name, in, err)
	}
	refuse := func(reason string) (Template, error) {
		return Template{}, &LookupError{Kind: "template", Name: doc.Name, In: in, Reason: reason, Err: ErrInvalid}
	}
	switch {
	case len(doc.VMs) == 0:
		return refuse("has no VM: upload it again, or use another template")
	case Status(doc.Status) != StatusPoweredOff && Status(doc.Status) != StatusResolved:
		return refuse(fmt.Sprintf("is not ready: it is %s", Status(doc.Status)))
	}
	vm := vmFrom(&doc.VMs[0])
	found := Template{
		Ref:        Ref{ID: at.ref.ID, Name: doc.Name},
		VM:         vm.Ref,
		CPUs:       vm.CPUs,
		MemoryMiB:  vm.MemoryMiB,
		NICs:       len(vm.NICs),
		StorageID:  vm.StorageProfile.ID,
		CatalogRef: at.catalog,
	}
	if spec := doc.VMs[0].VmSpecSection; spec != nil {
		found.OS = spec.OsType
		if spec.HardwareVersion != nil {
			found.Hardware = spec.HardwareVersion.Value
		}
	}
	found.Kubernetes = kubernetesOf(doc.Name, doc.VMs[0].ProductSection)
	if len(vm.Disks) > 0 {
		found.DiskMiB = vm.Disks[0].SizeMiB
		found.Disks = len(vm.Disks)
	}
	return found, nil
}

// kubernetesProperty is the property in the product section of an image to which image-builder writes the Kubernetes
// version.
const kubernetesProperty = "KUBERNETES_SEMVER"

// kubernetesIn matches the version in the name of a template, such as ubuntu-2404-kube-v1.36.3.
var kubernetesIn = regexp.MustCompile(`(?i)(?:kube|kubernetes|k8s)[-_ ]?v?([0-9]+\.[0-9]+\.[0-9]+)`)

// kubernetesOf returns the Kubernetes version of an image, or the empty string if neither its properties nor its name
// contain it.
func kubernetesOf(name string, section *types.ProductSection) string {
	if section != nil {
		for _, p := range section.Property {
			if p == nil || p.Key != kubernetesProperty {
				continue
			}
			if p.Value != nil && p.Value.Value != "" {
				return p.Value.Value
			}
			return p.DefaultValue
		}
	}
	if found := kubernetesIn.FindStringSubmatch(name); found != nil {
		return "v" + found[1]
	}
	return ""
}

// SameKubernetes reports whether two Kubernetes versions are equal, ignoring the suffixes of builders, such as
// +vmware.1.
func SameKubernetes(a, b string) bool {
	trim := func(version string) string {
		version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "+")
		return version
	}
	return trim(a) == trim(b)
}

// missing returns a LookupError if an object, given by URN, does not exist or is not visible to the user.
func missing(kind, nameOrURN, in string, err error) error {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) {
		return &LookupError{Kind: kind, Name: nameOrURN, In: in, Err: ErrNotFound}
	}
	return fmt.Errorf("looking up %s %s: %w", kind, nameOrURN, err)
}
