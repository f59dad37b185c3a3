// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Routes adds the routes of the query service.
func Routes(add api.AddRoute) {
	q := &queries{}
	add("GET", "/api/query", q.run, cloud.LatencyQuery)
	add("GET", "/api/admin/vdc/{id}/edgeGateways", api.With2(vdcs.OwnVDC, q.ofVDC("edgeGateway")), cloud.LatencyQuery)
	add("GET", "/api/admin/vdc/{id}/networks", api.With2(vdcs.OwnVDC, q.ofVDC("orgVdcNetwork")), cloud.LatencyQuery)
}

// queries serves the query service. It keeps the last list, so that a client that reads page after page of a long list
// causes one search and one collection of sort keys.
type queries struct {
	last lastList
}

// ofVDC returns a handler that lists the objects of a type in a VDC. It runs a query with a filter for the VDC.
func (q *queries) ofVDC(name string) func(*api.Request, *store.Org, *store.VDC) (*api.Response, error) {
	return func(r *api.Request, _ *store.Org, v *store.VDC) (*api.Response, error) {
		filter := "vdc==" + r.Site.Href("vdc", v.ID)
		if more := r.Query.Get("filter"); more != "" {
			filter += ";(" + more + ")"
		}
		r.Query["type"] = name
		r.Query["filter"] = filter
		return q.run(r)
	}
}

func (q *queries) run(r *api.Request) (*api.Response, error) {
	name := r.Query.Get("type")
	if name == "" {
		return queryList(r.Site, r.Session), nil
	}
	qt, err := queryTypeOf(r, name)
	if err != nil {
		return nil, err
	}
	if _, err := queryFormat(r.Query, name); err != nil {
		return nil, err
	}
	l, err := q.last.listOf(r, qt)
	if err != nil {
		return nil, err
	}
	return pageOf(r, name, qt, l)
}

// queryTypeOf returns the type with the given name. Its element is the one of the caller's rows.
func queryTypeOf(r *api.Request, name string) (queryType, error) {
	base, admin := adminTypes[name]
	if admin && !r.Session.Provider() {
		return queryType{}, store.Forbidden("QUERY_ADMIN", name)
	}
	qt, ok := queryTypes[api.OrElse(base, name)]
	if !ok {
		r.Cloud.Unknown(r.Operation)
		return queryType{}, store.BadRequest("The query type %q is not supported.", name)
	}
	if admin {
		qt.element = api.OrElse(qt.admin, qt.element)
	}
	return qt, nil
}

// matchingRows returns the rows that match the filter.
func matchingRows(r *api.Request, qt queryType) ([]row, error) {
	filter, err := fiql.Parse(r.Query.Get("filter"))
	if err != nil {
		return nil, store.BadRequest("Invalid filter expression: %s", err)
	}
	if err := qt.checkAttributes(filter); err != nil {
		return nil, err
	}
	matches := fiql.Compile(filter, func(t fiql.Term) func(row) bool { return filterTest(hrefTerm(r, t)) })
	return slices.DeleteFunc(qt.rows(r), func(of row) bool { return !matches(of) }), nil
}

// hrefTerm returns t, or a term that matches nothing. It returns the latter for an address on a host other than the
// public one, if the simulator assumes that VCD compares addresses as text.
func hrefTerm(r *api.Request, t fiql.Term) fiql.Term {
	if r.Cloud.Assume.HrefFilterIsText && strings.Contains(t.Value, "://") && !strings.HasPrefix(t.Value, r.Site.Base()+"/") {
		t.Value += "#"
	}
	return t
}

// checkAttributes refuses a filter on an attribute that the type does not have, as VCD does.
func (qt queryType) checkAttributes(filter *fiql.Expr) error {
	attributes := append(strings.Fields(qt.attributes), "id", "href")
	for _, t := range filter.Terms() {
		if !strings.HasPrefix(t.Attr, "metadata") && !slices.Contains(attributes, t.Attr) {
			return store.BadRequest("Invalid query filter: %q is not a searchable attribute of the query type.", t.Attr)
		}
	}
	return nil
}

// queryPage returns the requested page size and page number.
func queryPage(assume *cloud.Assumptions, query api.Values) (size, page int, err error) {
	size = query.Number("pageSize", api.DefaultPage)
	page = query.Number("page", 1)
	if size > api.MaxPage && !assume.QueryPageSizeIsCut {
		return 0, 0, store.BadRequest("The page size %d is more than %d.", size, api.MaxPage)
	}
	return min(size, api.MaxPage), page, nil
}

// pageOf returns the requested page of a list.
func pageOf(r *api.Request, name string, qt queryType, l *list) (*api.Response, error) {
	size, page, err := queryPage(&r.Cloud.Assume, r.Query)
	if err != nil {
		return nil, err
	}
	if page > 1 && (page-1)*size >= l.len() && !r.Cloud.Assume.EmptyPageBeyondEnd {
		return nil, store.BadRequest("The page %d does not exist.", page)
	}
	format, err := queryFormat(r.Query, name)
	if err != nil {
		return nil, err
	}
	from := min((page-1)*size, l.len())
	to := min(from+size, l.len())
	n := xmltree.New(containerElement(name, format), wire.Namespaces(), xmltree.A("total", l.len()), xmltree.A("pageSize", size),
		xmltree.A("page", page),
		xmltree.A("name", name), xmltree.A("type", formatType(format)),
		xmltree.A("href", r.Site.Base()+pageURI(r.Query, page, format)))
	n.Add(queryAlternates(r.Site, r.Query, name, format, page))
	other := func(rel string, page int) {
		n.Add(r.Site.Link(rel, pageURI(r.Query, page, format), formatType(format)))
	}
	if page > 1 {
		other("firstPage", 1)
		other("previousPage", page-1)
	}
	if to < l.len() {
		other("nextPage", page+1)
		other("lastPage", (l.len()+size-1)/size)
	}
	for _, of := range l.rows(from, to) {
		n.Add(of.record().rowNode(r.Site, r.Query, name, qt.element, format))
	}
	return &api.Response{Status: http.StatusOK, XML: n}, nil
}

// pageURI returns the address of a page of the current query.
func pageURI(query api.Values, page int, format string) string {
	size := min(query.Number("pageSize", api.DefaultPage), api.MaxPage)
	uri := fmt.Sprintf("/api/query?type=%s&page=%d&pageSize=%d&format=%s", query.Get("type"), page, size, format)
	for _, k := range []string{"filter", "filterEncoded", "sortAsc", "sortDesc", "fields", "links"} {
		if v := query.Get(k); v != "" {
			uri += "&" + k + "=" + url.QueryEscape(v)
		}
	}
	return uri
}
