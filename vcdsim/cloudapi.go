package vcdsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
)

const (
	defaultPage = 25
	maxPage     = 128
)

// page answers a cloudapi list: filtered, sorted and cut as the request asks. Each item is a map as it is answered.
func (r *request) page(items []any) (*response, error) { return r.pageIgnoring(items, nil) }

// pageOf answers with a page of documents.
func (r *request) pageOf(documents []*document) (*response, error) {
	items := make([]any, len(documents))
	for i, d := range documents {
		items[i] = d.body
	}
	return r.page(items)
}

// pageIgnoring answers a list whose handler has already decided what some attributes of the filter ask.
func (r *request) pageIgnoring(items []any, decided []string) (*response, error) {
	items, err := r.filtered(items, decided)
	if err != nil {
		return nil, err
	}
	size := min(r.query.number("pageSize", defaultPage), maxPage)
	page := r.query.number("page", 1)
	pages := (len(items) + size - 1) / size
	from := min((page-1)*size, len(items))
	values := items[from:min(from+size, len(items))]
	if values == nil {
		values = []any{}
	}
	res := jsonOK(map[string]any{
		"resultTotal": len(items), "pageCount": pages, "page": page, "pageSize": size, "associations": nil, "values": values,
	})
	if page < pages {
		res.header = map[string]string{"Link": fmt.Sprintf(`<%s>;rel="nextPage";type="application/json";model="Page"`, r.nextPage(page+1))}
	}
	return res, nil
}

// filtered are the items that the filter leaves, as they are to be sorted.
func (r *request) filtered(items []any, decided []string) ([]any, error) {
	filter, err := fiql.Parse(r.query.get("filter"))
	if err != nil {
		return nil, badRequest("The filter %q is invalid: %s", r.query.get("filter"), err)
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
	return r.base() + r.URL.Path + "?" + q.Encode()
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

func at(item any, path []string) (string, bool) {
	for _, p := range path {
		m, ok := item.(map[string]any)
		if !ok {
			return "", false
		}
		if item, ok = m[p]; !ok {
			return "", false
		}
	}
	return fmt.Sprint(item), true
}

func (r *request) sort(items []any) {
	key, sign := r.query.get("sortAsc"), 1
	if key == "" {
		key, sign = r.query.get("sortDesc"), -1
	}
	if key == "" {
		return
	}
	slices.SortStableFunc(items, func(a, b any) int {
		x, _ := at(a, strings.Split(key, "."))
		y, _ := at(b, strings.Split(key, "."))
		return sign * strings.Compare(x, y)
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the caller went away
}
