// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"time"
)

// An OrgCatalog is a catalog with its organization.
type OrgCatalog struct {
	Org     *Org
	Catalog *Catalog
}

// Items returns the items of a catalog, templates first.
func (sh OrgCatalog) Items() []OrgCatalogItem {
	var out []OrgCatalogItem
	for i := range sh.Catalog.Templates {
		t := &sh.Catalog.Templates[i]
		e := Entity{Kind: "vapptemplate", ID: t.ID, Name: t.Name}
		out = append(out, OrgCatalogItem{sh, t.ItemID, e, sh.VDCOf(t), TemplateStatus(t), t.Description, t.CreatedAt()})
	}
	for i := range sh.Catalog.Media {
		m := &sh.Catalog.Media[i]
		out = append(out, OrgCatalogItem{
			sh,
			m.ItemID,
			m.Entity(),
			sh.VDCOf(&Template{VDC: m.VDC}),
			MediaStatus(m),
			m.Description,
			m.CreatedAt(),
		})
	}
	return out
}

// VDCOf returns the VDC that stores a template.
func (sh OrgCatalog) VDCOf(t *Template) *VDC {
	for i := range sh.Org.VDCs {
		if t.VDC == "" || sh.Org.VDCs[i].Name == t.VDC {
			return &sh.Org.VDCs[i]
		}
	}
	return &VDC{}
}

// An OrgCatalogItem is a catalog item with its template or media.
type OrgCatalogItem struct {
	OrgCatalog

	ID          string
	Of          Entity
	VDC         *VDC
	Status      string
	Description string
	Created     time.Time
}

// A Media is an image in a catalog, usually an ISO.
type Media struct {
	ID          string
	ItemID      string
	Name        string
	Description string
	VDC         string // name of the VDC that stores it; empty means the first
	ImageType   string // iso or floppy; empty means iso
	Size        int64  // bytes
	Status      Status // 0 during the upload; in a model for New 0 means 1, resolved
	Created     time.Time
	Upload      string // ID of the transfer with its content
}

// Entity returns the reference for tasks and responses.
func (m *Media) Entity() Entity { return Entity{Kind: "media", ID: m.ID, Name: m.Name} }

// CreatedAt returns the creation time of the media.
func (m *Media) CreatedAt() time.Time {
	if m.Created.IsZero() {
		return Beginning()
	}
	return m.Created
}

// Beginning returns the creation time of everything in the model.
func Beginning() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// MediaStatus returns the status of a media in the query service.
func MediaStatus(m *Media) string {
	if m.Status == Resolved {
		return "RESOLVED"
	}
	return m.Status.Text()
}

// CreatedAt returns the time when the template was added to its catalog.
func (t *Template) CreatedAt() time.Time {
	if t.Created.IsZero() {
		return Beginning()
	}
	return t.Created
}

// TemplateStatus returns the status of a template in the query service.
func TemplateStatus(t *Template) string {
	if t.Status == int(PoweredOff) {
		return "RESOLVED"
	}
	return Status(t.Status).Text()
}

// CreatedAt returns the creation time of the catalog.
func (c *Catalog) CreatedAt() time.Time {
	if c.Created.IsZero() {
		return Beginning()
	}
	return c.Created
}

// Catalogs returns the catalogs of all organizations.
func (s *Store) Catalogs() []OrgCatalog {
	var out []OrgCatalog
	for o := range s.Model.Orgs {
		org := &s.Model.Orgs[o]
		for c := range org.Catalogs {
			out = append(out, OrgCatalog{org, &org.Catalogs[c]})
		}
	}
	return out
}

// Catalog returns the catalog with an ID. The second result reports whether it exists.
func (s *Store) Catalog(id string) (OrgCatalog, bool) {
	for _, sh := range s.Catalogs() {
		if sh.Catalog.ID == id {
			return sh, true
		}
	}
	return OrgCatalog{}, false
}

// Template returns the template with an ID, which may be the ID of its catalog item.
func (s *Store) Template(id string) (OrgCatalog, *Template) {
	for _, sh := range s.Catalogs() {
		for t := range sh.Catalog.Templates {
			if tpl := &sh.Catalog.Templates[t]; tpl.ID == id || tpl.ItemID == id {
				return sh, tpl
			}
		}
	}
	return OrgCatalog{}, nil
}

// TemplateVM returns the VM of a template with an ID.
func (s *Store) TemplateVM(id string) (OrgCatalog, *Template, *TemplateVM) {
	for _, sh := range s.Catalogs() {
		for t := range sh.Catalog.Templates {
			tpl := &sh.Catalog.Templates[t]
			for v := range tpl.VMs {
				if tpl.VMs[v].ID == id {
					return sh, tpl, &tpl.VMs[v]
				}
			}
		}
	}
	return OrgCatalog{}, nil, nil
}

// Item returns the catalog item with an ID. The second result reports whether it exists.
func (s *Store) Item(id string) (OrgCatalogItem, bool) {
	for _, sh := range s.Catalogs() {
		for _, i := range sh.Items() {
			if i.ID == id {
				return i, true
			}
		}
	}
	return OrgCatalogItem{}, false
}

// Media returns the media with an ID, which may be the ID of its catalog item.
func (s *Store) Media(id string) (OrgCatalog, *Media) {
	for _, sh := range s.Catalogs() {
		for i := range sh.Catalog.Media {
			if m := &sh.Catalog.Media[i]; m.ID == id || m.ItemID == id {
				return sh, m
			}
		}
	}
	return OrgCatalog{}, nil
}

// InitialProperties returns the product section of a VM in a template.
func (vm *TemplateVM) InitialProperties() map[string]Property {
	out := map[string]Property{}
	for key, value := range vm.Properties {
		out[key] = Property{Type: "string", Default: value, Value: value}
	}
	return out
}

// InitialExtraConfig returns the extra configuration of a VM that is created from a VM of a template.
func (vm *TemplateVM) InitialExtraConfig() map[string]string {
	out := map[string]string{}
	maps.Copy(out, vm.ExtraConfig)
	return out
}

// Entity returns the reference for tasks and responses.
func (t *Template) Entity() Entity { return Entity{Kind: "vapptemplate", ID: t.ID, Name: t.Name} }
