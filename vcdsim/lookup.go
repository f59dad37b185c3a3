// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"strings"
	"time"
)

func (s *store) org(id string) *Org {
	for i := range s.Model.Orgs {
		if s.Model.Orgs[i].ID == id {
			return &s.Model.Orgs[i]
		}
	}
	return nil
}

func (s *store) orgByName(name string) *Org {
	for i := range s.Model.Orgs {
		if strings.EqualFold(s.Model.Orgs[i].Name, name) {
			return &s.Model.Orgs[i]
		}
	}
	return nil
}

// vdcName is the name of a VDC, empty if it was deleted by an Editor.
func (s *store) vdcName(id string) string {
	if _, v := s.vdc(id); v != nil {
		return v.Name
	}
	return ""
}

// vdc finds a VDC and its organization; both are nil if there is none.
func (s *store) vdc(id string) (*Org, *VDC) {
	for o := range s.Model.Orgs {
		org := &s.Model.Orgs[o]
		for v := range org.VDCs {
			if org.VDCs[v].ID == id {
				return org, &org.VDCs[v]
			}
		}
	}
	return nil, nil
}

// network finds an org VDC network with where it is.
func (s *store) network(id string) (*Org, *VDC, *Network) {
	for o := range s.Model.Orgs {
		org := &s.Model.Orgs[o]
		for v := range org.VDCs {
			for n := range org.VDCs[v].Networks {
				if org.VDCs[v].Networks[n].ID == id {
					return org, &org.VDCs[v], &org.VDCs[v].Networks[n]
				}
			}
		}
	}
	return nil, nil, nil
}

// profile finds a storage profile with where it is.
func (s *store) profile(id string) (*Org, *VDC, *StorageProfile) {
	for o := range s.Model.Orgs {
		org := &s.Model.Orgs[o]
		for v := range org.VDCs {
			for p := range org.VDCs[v].StorageProfiles {
				if org.VDCs[v].StorageProfiles[p].ID == id {
					return org, &org.VDCs[v], &org.VDCs[v].StorageProfiles[p]
				}
			}
		}
	}
	return nil, nil, nil
}

func (s *store) profileName(id string) string {
	if _, _, p := s.profile(id); p != nil {
		return p.Name
	}
	return ""
}

// defaultProfile is the storage profile used when a request names none.
func (v *VDC) defaultProfile() string {
	for _, p := range v.StorageProfiles {
		if p.Default {
			return p.ID
		}
	}
	if len(v.StorageProfiles) > 0 {
		return v.StorageProfiles[0].ID
	}
	return ""
}

func (s *store) policy(id string) *ComputePolicy {
	for i := range s.Model.Policies {
		if s.Model.Policies[i].ID == id {
			return &s.Model.Policies[i]
		}
	}
	return nil
}

func (s *store) policyByName(name string) *ComputePolicy {
	for i := range s.Model.Policies {
		if s.Model.Policies[i].Name == name {
			return &s.Model.Policies[i]
		}
	}
	return nil
}

// defaultSizing is the sizing policy a VDC gives VMs that ask for none.
func (s *store) defaultSizing(v *VDC) string {
	for _, name := range v.Policies {
		if p := s.policyByName(name); p != nil && !p.Placement {
			return p.ID
		}
	}
	return ""
}

// An orgCatalog is a catalog with its organization.
type orgCatalog struct {
	org     *Org
	catalog *Catalog
}

func (s *store) catalogs() []orgCatalog {
	var out []orgCatalog
	for o := range s.Model.Orgs {
		org := &s.Model.Orgs[o]
		for c := range org.Catalogs {
			out = append(out, orgCatalog{org, &org.Catalogs[c]})
		}
	}
	return out
}

func (s *store) catalog(id string) (orgCatalog, bool) {
	for _, sh := range s.catalogs() {
		if sh.catalog.ID == id {
			return sh, true
		}
	}
	return orgCatalog{}, false
}

// template finds a template by its id or its catalog item's.
func (s *store) template(id string) (orgCatalog, *Template) {
	for _, sh := range s.catalogs() {
		for t := range sh.catalog.Templates {
			if tpl := &sh.catalog.Templates[t]; tpl.ID == id || tpl.ItemID == id {
				return sh, tpl
			}
		}
	}
	return orgCatalog{}, nil
}

// templateVM finds a VM of a template.
func (s *store) templateVM(id string) (orgCatalog, *Template, *TemplateVM) {
	for _, sh := range s.catalogs() {
		for t := range sh.catalog.Templates {
			tpl := &sh.catalog.Templates[t]
			for v := range tpl.VMs {
				if tpl.VMs[v].ID == id {
					return sh, tpl, &tpl.VMs[v]
				}
			}
		}
	}
	return orgCatalog{}, nil, nil
}

// An orgCatalogItem is a catalog item with its template or media.
type orgCatalogItem struct {
	orgCatalog

	id          string
	of          Entity
	vdc         *VDC
	status      string
	description string
	created     time.Time
}

// items are the items of a catalog, templates first.
func (sh orgCatalog) items() []orgCatalogItem {
	var out []orgCatalogItem
	for i := range sh.catalog.Templates {
		t := &sh.catalog.Templates[i]
		e := Entity{Kind: "vapptemplate", ID: t.ID, Name: t.Name}
		out = append(out, orgCatalogItem{sh, t.ItemID, e, sh.vdcOf(t), templateStatus(t), t.Description, created()})
	}
	for i := range sh.catalog.Media {
		m := &sh.catalog.Media[i]
		out = append(out, orgCatalogItem{
			sh,
			m.ItemID,
			m.entity(),
			sh.vdcOf(&Template{VDC: m.VDC}),
			mediaStatus(m),
			m.Description,
			m.created(),
		})
	}
	return out
}

// item finds a catalog item.
func (s *store) item(id string) (orgCatalogItem, bool) {
	for _, sh := range s.catalogs() {
		for _, i := range sh.items() {
			if i.id == id {
				return i, true
			}
		}
	}
	return orgCatalogItem{}, false
}

// vdcOf is the VDC that stores a template.
func (sh orgCatalog) vdcOf(t *Template) *VDC {
	for i := range sh.org.VDCs {
		if t.VDC == "" || sh.org.VDCs[i].Name == t.VDC {
			return &sh.org.VDCs[i]
		}
	}
	return &VDC{}
}
