// SPDX-License-Identifier: Apache-2.0

// Package wire writes the common parts of VCD's documents: addresses of entities, links and references to them, media
// types, namespaces and errors. It does not know requests, sessions or the simulated objects.
package wire

import (
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A Site is the base of all addresses in a response: a scheme and a host.
type Site string

// Base returns the site as a string.
func (s Site) Base() string { return string(s) }

// paths are the path prefixes of entities by kind.
var paths = map[string]string{
	"vapp":              "/api/vApp/vapp-",
	"vm":                "/api/vApp/vm-",
	"vapptemplate":      "/api/vAppTemplate/vappTemplate-",
	"providervdc":       "/api/admin/providervdc/",
	"templatevm":        "/api/vAppTemplate/vm-",
	"catalogitem":       "/api/catalogItem/",
	"vdcstorageProfile": "/api/vdcStorageProfile/",

	"entity":               "/cloudapi/1.0.0/entities/urn:vcloud:entity:",
	"gateway":              "/cloudapi/1.0.0/edgeGateways/urn:vcloud:gateway:",
	"ipSpace":              "/cloudapi/1.0.0/ipSpaces/urn:vcloud:ipSpace:",
	"ipSpaceOrgAssignment": "/cloudapi/1.0.0/ipSpaces/orgAssignments/urn:vcloud:ipSpaceOrgAssignment:",
	"ipSpaceUplink":        "/cloudapi/1.0.0/ipSpaceUplinks/urn:vcloud:ipSpaceUplink:",
	"serviceAccount":       "/cloudapi/1.0.0/serviceAccounts/urn:vcloud:serviceAccount:",
	"serviceEngineGroup":   "/cloudapi/1.0.0/loadBalancer/serviceEngineGroups/urn:vcloud:serviceEngineGroup:",
	"vdcGroup":             "/cloudapi/1.0.0/vdcGroups/urn:vcloud:vdcGroup:",
}

// mimes are the media type names that differ from the kind.
var mimes = map[string]string{
	"vapp":              "vApp",
	"templatevm":        "vm",
	"vapptemplate":      "vAppTemplate",
	"catalogitem":       "catalogItem",
	"vdcstorageProfile": "vdcStorageProfile",
	"network":           "orgVdcNetwork",
}

// Mime returns the media type of a kind of entity.
func Mime(kind string) string {
	if m, ok := mimes[kind]; ok {
		kind = m
	}
	return "application/vnd.vmware.vcloud." + kind + "+xml"
}

// Href returns the address of an entity.
func (s Site) Href(kind, id string) string {
	if p, ok := paths[kind]; ok {
		return s.Base() + p + id
	}
	return s.Base() + "/api/" + kind + "/" + id
}

// At returns the address of an entity, considering its Path.
func (s Site) At(e store.Entity) string {
	if e.Path != "" {
		return s.Base() + e.Path
	}
	return s.Href(e.Kind, e.ID)
}

// Link returns a Link element. path is relative to the site.
func (s Site) Link(rel, path, mediaType string, name ...string) *xmltree.Node {
	n := xmltree.New("Link", xmltree.A("rel", rel), xmltree.A("href", s.Base()+path))
	if len(name) > 0 {
		n.Add(xmltree.A("name", name[0]))
	}
	n.Add(xmltree.Opt("type", mediaType))
	return n
}

// Ref returns a reference element to an entity.
func (s Site) Ref(element string, e store.Entity) *xmltree.Node {
	href := s.At(e)
	mediaType := Mime(e.Kind)
	if strings.HasPrefix(href, s.Base()+"/cloudapi/") {
		mediaType = "application/json"
	}
	return xmltree.New(element, xmltree.A("href", href), xmltree.A("id", store.URN(e.Kind, e.ID)),
		xmltree.A("name", e.Name), xmltree.A("type", mediaType))
}

// Entity returns a root element with the common attributes of entities.
func (s Site) Entity(element, kind, id, name string, attrs ...xmltree.Attr) *xmltree.Node {
	return xmltree.New(element, Namespaces(), attrs, xmltree.A("name", name), xmltree.A("id", store.URN(kind, id)),
		xmltree.A("href", s.Href(kind, id)), xmltree.A("type", Mime(kind)))
}

// URN returns the URN of the entity at an address of the site.
func (s Site) URN(href string) (string, bool) {
	path, ok := strings.CutPrefix(href, s.Base())
	if !ok {
		return "", false
	}
	for kind, prefix := range paths {
		if id, found := strings.CutPrefix(path, prefix); found {
			return store.URN(kind, id), true
		}
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 3 || parts[0] != "api" { // for example /api/vdc/<id> and /api/admin/user/<id>
		return "", false
	}
	return store.URN(parts[len(parts)-2], parts[len(parts)-1]), true
}

// Element returns an element. If it is the root of a document, it declares the namespaces.
func Element(name string, root bool) *xmltree.Node {
	n := xmltree.New(name)
	if root {
		n.Add(Namespaces())
	}
	return n
}
