// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Page sizes: the default, and the maximum.
const (
	DefaultPage = 25
	MaxPage     = 128
	shortPage   = 32
)

// shortPages are the lists with a lower maximum page size.
var shortPages = []string{"GET /cloudapi/1.0.0/orgVdcNetworks", "GET /cloudapi/1.0.0/serviceAccounts"}

// pageSize returns the page size of a cloudapi request. Like VCD, it refuses sizes above the maximum.
func (r *Request) pageSize() (int, error) {
	limit := MaxPage
	if slices.Contains(shortPages, r.Operation) {
		limit = shortPage
	}
	requested := r.Query.Get("pageSize")
	if n, err := strconv.Atoi(requested); requested != "" && (err != nil || n < 0 || n > limit) {
		return 0, store.BadRequest("The parameter pageSize is %q; it must be a number from 0 to %d.", requested, limit)
	}
	return r.Query.Number("pageSize", DefaultPage), nil
}

// Page responds with a page of a cloudapi list, filtered and sorted as requested. Each item is a map that is returned
// unchanged.
func (r *Request) Page(items []any) (*Response, error) { return r.PageIgnoring(items, nil) }

// PageOf responds with a page of documents.
func (r *Request) PageOf(documents []*store.Object) (*Response, error) {
	items := make([]any, len(documents))
	for i, d := range documents {
		items[i] = d.Body
	}
	return r.Page(items)
}

// PageIgnoring responds with a page of a list. It ignores the filter terms of the attributes in decided, which the
// handler has already applied.
func (r *Request) PageIgnoring(items []any, decided []string) (*Response, error) {
	items, err := r.filtered(items, decided)
	if err != nil {
		return nil, err
	}
	size, err := r.pageSize()
	if err != nil {
		return nil, err
	}
	page := r.Query.Number("page", 1)
	pages := (len(items) + size - 1) / size
	from := min((page-1)*size, len(items))
	values := items[from:min(from+size, len(items))]
	if values == nil {
		values = []any{}
	}
	res := JSON(map[string]any{
		"resultTotal":  len(items),
		"pageCount":    pages,
		"page":         page,
		"pageSize":     size,
		"associations": nil,
		"values":       values,
	})
	if page < pages {
		res.Header = map[string]string{"Link": fmt.Sprintf(`<%s>;rel="nextPage";type="application/json";model="Page"`,
			r.nextPage(page+1))}
	}
	return res, nil
}

// filtered returns the items that match the filter, sorted as requested.
func (r *Request) filtered(items []any, decided []string) ([]any, error) {
	filter, err := fiql.Parse(r.Query.Get("filter"))
	if err != nil {
		return nil, store.BadRequest("The filter %q is invalid: %s", r.Query.Get("filter"), err)
	}
	matches := fiql.Compile(filter, func(t fiql.Term) func(any) bool { return termTest(t, decided) })
	items = slices.DeleteFunc(items, func(item any) bool { return !matches(item) })
	r.sort(items)
	return items, nil
}

func (r *Request) nextPage(page int) string {
	q := url.Values{}
	for k, v := range r.Query {
		q.Set(k, v)
	}
	q.Set("page", strconv.Itoa(page))
	return r.Site.Base() + r.URL.Path + "?" + q.Encode()
}

// termTest returns a function that reports whether the field of a document at a dotted path satisfies a term. The handler
// evaluates _context and the decided attributes.
func termTest(t fiql.Term, decided []string) func(item any) bool {
	if t.Attr == "_context" || slices.Contains(decided, t.Attr) {
		return func(any) bool { return true }
	}
	path := strings.Split(t.Attr, ".")
	holds := t.Test()
	return func(item any) bool {
		value, found := At(item, path)
		if !found {
			return t.Op == "!="
		}
		return holds(value)
	}
}

// At returns the value at a path, formatted as in filters.
func At(item any, path []string) (string, bool) {
	value, found := valueAt(item, path)
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64), found // never with an exponent
	}
	if !found {
		return "", false
	}
	return fmt.Sprint(value), true
}

func valueAt(item any, path []string) (any, bool) {
	for _, p := range path {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		if item, ok = m[p]; !ok {
			return nil, false
		}
	}
	return item, true
}

// order compares the values of two documents at a path. Numbers are compared numerically, everything else as text.
func order(a, b any, path []string) int {
	x, _ := valueAt(a, path)
	y, _ := valueAt(b, path)
	m, first := numeric(x)
	n, second := numeric(y)
	if first && second {
		return cmp.Compare(m, n)
	}
	s, _ := At(a, path)
	t, _ := At(b, path)
	return strings.Compare(s, t)
}

// numeric returns a value as a number. Numbers from requests are floats; numbers from the simulator are integers.
func numeric(value any) (float64, bool) {
	switch n := value.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func (r *Request) sort(items []any) {
	key := r.Query.Get("sortAsc")
	sign := 1
	if key == "" {
		key = r.Query.Get("sortDesc")
		sign = -1
	}
	if key == "" {
		return
	}
	path := strings.Split(key, ".")
	slices.SortStableFunc(items, func(a, b any) int { return sign * order(a, b, path) })
}

// CursorPage responds with a page of a list without a total. Filter terms of the attributes in decided are already
// applied.
func (r *Request) CursorPage(items []any, decided ...string) (*Response, error) {
	items, err := r.filtered(items, decided)
	if err != nil {
		return nil, err
	}
	from, _ := strconv.Atoi(r.Query.Get("cursor"))
	size, err := r.pageSize()
	if err != nil {
		return nil, err
	}
	from = min(max(from, 0), len(items))
	res := JSON(map[string]any{"values": append([]any{}, items[from:min(from+size, len(items))]...)})
	if from+size < len(items) {
		next := fmt.Sprintf("%s%s?cursor=%d&pageSize=%d", r.Site.Base(), r.URL.EscapedPath(), from+size, size)
		for _, k := range []string{"filter", "sortAsc", "sortDesc"} {
			if v := r.Query.Get(k); v != "" {
				next += "&" + k + "=" + url.QueryEscape(v)
			}
		}
		res.Header = map[string]string{"Link": `<` + next + `>;rel="nextPage";type="application/json";model="Page"`}
	}
	return res, nil
}

// FilterValue returns the value that a filter requires of an attribute, or "" if there is none. If there are several,
// it returns the last.
func (r *Request) FilterValue(attribute string) string {
	filter, err := fiql.Parse(r.Query.Get("filter"))
	if err != nil {
		return ""
	}
	value := ""
	for _, t := range filter.Terms() {
		if t.Attr == attribute {
			value = t.Value
		}
	}
	return value
}
