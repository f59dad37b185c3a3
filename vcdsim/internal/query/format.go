// SPDX-License-Identifier: Apache-2.0

package query

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Formats of the query service: attributes with references as addresses, attributes with references as URNs, or only a
// reference to each object.
const (
	formatRecords    = "records"
	formatIDRecords  = "idrecords"
	formatReferences = "references"
)

var queryFormats = []string{formatRecords, formatIDRecords, formatReferences}

func formatType(format string) string {
	return "application/vnd.vmware.vcloud.query." + format + "+xml"
}

// referencePrefixes maps query types to the prefix of their elements in the format references. A type that is not in
// the map does not support this format.
var referencePrefixes = map[string]string{
	"vm":                        "VM",
	"adminVM":                   "VM",
	"vApp":                      "VApp",
	"adminVApp":                 "VApp",
	"orgVdc":                    "OrgVdc",
	"adminOrgVdc":               "AdminVdc",
	"orgVdcNetwork":             "OrgVdcNetwork",
	"orgVdcStorageProfile":      "OrgVdcStorageProfile",
	"adminOrgVdcStorageProfile": "AdminOrgVdcStorageProfile",
	"catalog":                   "Catalog",
	"adminCatalog":              "Catalog",
	"catalogItem":               "CatalogItem",
	"adminCatalogItem":          "CatalogItem",
	"vAppTemplate":              "VAppTemplate",
	"adminVAppTemplate":         "VAppTemplate",
	"task":                      "Task",
	"adminTask":                 "Task",
	"disk":                      "Disk",
	"adminDisk":                 "AdminDisk",
	"organization":              "Org",
	"org":                       "Org",
	"providerVdc":               "VMWProviderVdc",
	"providerVdcStorageProfile": "ProviderVdcStorageProfile",
	"edgeGateway":               "EdgeGateway",
	"networkPool":               "NetworkPool",
	"vAppNetwork":               "VAppNetwork",
	"adminVAppNetwork":          "VAppNetwork",
	"media":                     "Media",
	"adminMedia":                "Media",
}

// queryFormat returns the format of the response to a query of a type.
func queryFormat(query api.Values, name string) (string, error) {
	format := api.OrElse(query.Get("format"), formatRecords)
	if !slices.Contains(queryFormats, format) {
		return "", store.BadRequest("The query format %q is invalid.", format)
	}
	if format == formatReferences && referencePrefixes[name] == "" {
		return "", store.BadRequest("The query type %q does not support the format %q.", name, format)
	}
	return format, nil
}

// containerElement returns the name of the element that contains a page of rows.
func containerElement(name, format string) string {
	if format == formatReferences {
		return referencePrefixes[name] + "References"
	}
	return "QueryResultRecords"
}

// rowNode returns a row in a format.
func (rec *record) rowNode(site wire.Site, query api.Values, name, element, format string) *xmltree.Node {
	if format == formatReferences {
		return rec.reference(referencePrefixes[name] + "Reference")
	}
	fields := strings.FieldsFunc(query.Get("fields"), func(c rune) bool { return c == ',' })
	n := rec.node(element, fields, query.Get("links") == "true")
	if format == formatIDRecords {
		n.Attrs = attrsByID(site, n.Attrs)
	}
	return n
}

// reference returns only a reference to the object.
func (rec *record) reference(element string) *xmltree.Node {
	n := xmltree.New(element)
	for _, name := range []string{"type", "name", "href"} {
		if value, ok := rec.attr(name); ok {
			n.Add(xmltree.A(name, value))
		}
	}
	return n
}

// attrsByID replaces the addresses in a row with URNs, and renames the attribute href to id.
func attrsByID(site wire.Site, attrs []xmltree.Attr) []xmltree.Attr {
	out := slices.Clone(attrs)
	for i := range out {
		urn, ok := site.URN(out[i].Value)
		if !ok {
			continue
		}
		out[i].Value = urn
		if out[i].Name == "href" {
			out[i].Name = "id"
		}
	}
	return out
}

// queryAlternates returns links to the same page in the other formats.
func queryAlternates(site wire.Site, query api.Values, name, format string, page int) []*xmltree.Node {
	var out []*xmltree.Node
	for _, other := range queryFormats {
		if other != format && (other != formatReferences || referencePrefixes[name] != "") {
			out = append(out, site.Link("alternate", pageURI(query, page, other), formatType(other)))
		}
	}
	return out
}

// queryList returns the available queries: each type in each of its formats.
func queryList(site wire.Site, session *store.Session) *api.Response {
	n := xmltree.New("QueryList", wire.Namespaces(), xmltree.A("href", site.Base()+"/api/query"),
		xmltree.A("type", "application/vnd.vmware.vcloud.query.queryList+xml"))
	for _, name := range queryNames(session) {
		for _, format := range queryFormats {
			if format != formatReferences || referencePrefixes[name] != "" {
				n.Add(site.Link("down", "/api/query?type="+name+"&format="+format, formatType(format), name))
			}
		}
	}
	return &api.Response{Status: http.StatusOK, XML: n}
}

// queryNames returns the query types that are available to the caller, sorted.
func queryNames(session *store.Session) []string {
	var out []string
	for name := range queryTypes {
		out = append(out, name)
	}
	if session.Provider() {
		for name := range adminTypes {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
