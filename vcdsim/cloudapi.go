// SPDX-License-Identifier: Apache-2.0

package vcdsim

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

const (
	defaultPage = 25
	maxPage     = 128
	shortPage   = 32
)

// shortPages are the lists whose pages are shorter than others.
var shortPages = []string{"GET /cloudapi/1.0.0/orgVdcNetworks", "GET /cloudapi/1.0.0/serviceAccounts"}

// pageSize is how many items a page of cloudapi may have. More than VCD gives is refused, not cut.
func (r *request) pageSize() (int, error) {
	most := maxPage
	if slices.Contains(shortPages, r.op) {
		most = shortPage
	}
	asked := r.query.get("pageSize")
	if n, err := strconv.Atoi(asked); asked != "" && (err != nil || n < 0 || n > most) {
		return 0, store.BadRequest("The parameter pageSize is %q; it must be a number from 0 to %d.", asked, most)
	}
	return r.query.number("pageSize", defaultPage), nil
}

// page answers a cloudapi list: filtered, sorted and cut as the request asks. Each item is a map as it is answered.
func (r *request) page(items []any) (*response, error) { return r.pageIgnoring(items, nil) }

// pageOf answers with a page of documents.
func (r *request) pageOf(documents []*store.Object) (*response, error) {
	items := make([]any, len(documents))
	for i, d := range documents {
		items[i] = d.Body
	}
	return r.page(items)
}

// pageIgnoring answers a list whose handler has already decided what some attributes of the filter ask.
func (r *request) pageIgnoring(items []any, decided []string) (*response, error) {
	items, err := r.filtered(items, decided)
	if err != nil {
		return nil, err
	}
	size, err := r.pageSize()
	if err != nil {
		return nil, err
	}
	page := r.query.number("page", 1)
	pages := (len(items) + size - 1) / size
	from := min((page-1)*size, len(items))
	values := items[from:min(from+size, len(items))]
	if values == nil {
		values = []any{}
	}
	res := jsonOK(map[string]any{
		"resultTotal":  len(items),
		"pageCount":    pages,
		"page":         page,
		"pageSize":     size,
		"associations": nil,
		"values":       values,
	})
	if page < pages {
		res.header = map[string]string{"Link": fmt.Sprintf(`<%s>;rel="nextPage";type="application/json";model="Page"`,
			r.nextPage(page+1))}
	}
	return res, nil
}

// filtered are the items that the filter leaves, as they are to be sorted.
func (r *request) filtered(items []any, decided []string) ([]any, error) {
	filter, err := fiql.Parse(r.query.get("filter"))
	if err != nil {
		return nil, store.BadRequest("The filter %q is invalid: %s", r.query.get("filter"), err)
	}
	items = slices.DeleteFunc(items, func(item any) bool {
		return !filter.Match(func(t fiql.Term) bool { return slices.Contains(decided, t.Attr) || holds(t, item) })
	})
	r.sort(items)
	return items, nil
}

func (r *request) nextPage(page int) string {
	q := url.Values{}
	for k, v := range r.query {
		q.Set(k, v)
	}
	q.Set("page", strconv.Itoa(page))
	return r.site.Base() + r.URL.Path + "?" + q.Encode()
}

// holds compares a term with the field of a document at a dotted path. _context is decided by the handler.
func holds(t fiql.Term, item any) bool {
	if t.Attr == "_context" {
		return true
	}
	value, found := at(item, strings.Split(t.Attr, "."))
	if !found {
		return t.Op == "!="
	}
	return fiql.Compare(t, value)
}

// at is the value at a path, written as filters have it.
func at(item any, path []string) (string, bool) {
	value, found := valueAt(item, path)
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64), found // without an exponent, however large
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

// order compares what two documents have at a path: numbers by size, all else as text.
func order(a, b any, path []string) int {
	x, _ := valueAt(a, path)
	y, _ := valueAt(b, path)
	m, first := numeric(x)
	n, second := numeric(y)
	if first && second {
		return cmp.Compare(m, n)
	}
	s, _ := at(a, path)
	t, _ := at(b, path)
	return strings.Compare(s, t)
}

// numeric is a value as a number, if it is one: what came in is floating, what the simulator wrote is not.
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

func (r *request) sort(items []any) {
	key := r.query.get("sortAsc")
	sign := 1
	if key == "" {
		key = r.query.get("sortDesc")
		sign = -1
	}
	if key == "" {
		return
	}
	path := strings.Split(key, ".")
	slices.SortStableFunc(items, func(a, b any) int { return sign * order(a, b, path) })
}
