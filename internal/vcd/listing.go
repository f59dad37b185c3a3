package vcd

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
)

// maxPages bounds how many pages of one list are read: a server that always offers another one stops us here.
const maxPages = 400

// A listing is a list of the JSON API.
type listing struct {
	path  string
	what  string // for people
	terms []term // of our own words and ids, which every filter can carry
	sort  string // field by which pages are cut; empty where VCD knows none
}

func (l listing) query(page int) string {
	filter := ""
	if len(l.terms) > 0 {
		filter = jsonFilter(l.terms...)
	}
	return params("page", strconv.Itoa(page), "pageSize", strconv.Itoa(pageSize), "sortAsc", l.sort, "filter", filter)
}

// listAll reads all pages of a list. What comes and goes between two pages would be seen twice or never: such an answer is
// thrown away, asked for once more, and then given up.
func listAll[T any](ctx context.Context, c *client, l listing, id func(T) string) ([]T, error) {
	for range 2 {
		items, complete, err := listOnce(ctx, c, l, id)
		if err != nil || complete {
			return items, err
		}
	}
	return nil, &connectionError{ErrUnavailable, "the list of " + l.what + " changed while it was read"}
}

// listAs is listAll for what is shown otherwise than VCD writes it.
func listAs[T, U any](ctx context.Context, c *client, l listing, id func(T) string, show func(*T) U) ([]U, error) {
	items, err := listAll(ctx, c, l, id)
	if err != nil {
		return nil, err
	}
	shown := make([]U, len(items))
	for i := range items {
		shown[i] = show(&items[i])
	}
	return shown, nil
}

func listOnce[T any](ctx context.Context, c *client, l listing, id func(T) string) ([]T, bool, error) {
	var items []T
	seen := map[string]bool{}
	total := 0
	for page := 1; page <= maxPages; page++ {
		var found struct {
			ResultTotal *int `json:"resultTotal"`
			Values      []T  `json:"values"`
		}
		if err := c.getJSON(ctx, l.path, l.query(page), &found); err != nil {
			return nil, false, err
		}
		if found.ResultTotal == nil {
			return nil, false, &connectionError{ErrUnavailable, "the list of " + l.what + " does not say how long it is"}
		}
		if page == 1 {
			total = *found.ResultTotal
		}
		if !unseen(seen, found.Values, id) {
			return nil, false, nil
		}
		items = append(items, found.Values...)
		switch {
		case *found.ResultTotal != total || len(items) > total:
			return nil, false, nil
		case len(items) == total:
			return items, true, nil
		case len(found.Values) == 0:
			return nil, false, nil
		}
	}
	return nil, false, nil
}

// unseen notes items, and says whether none was there before.
func unseen[T any](seen map[string]bool, items []T, id func(T) string) bool {
	for _, item := range items {
		if seen[id(item)] {
			return false
		}
		seen[id(item)] = true
	}
	return true
}

// nextCursor finds where a list goes on that has cursors instead of pages.
var nextCursor = regexp.MustCompile(`<([^<>]*)>\s*;[^,]*rel="?nextPage"?`)

// listByCursor reads a list that does not say how long it is, as far as its cursors lead.
func listByCursor[T any](ctx context.Context, c *client, l listing, id func(T) string) ([]T, error) {
	for range 2 {
		items, complete, err := listByCursorOnce(ctx, c, l, id)
		if err != nil || complete {
			return items, err
		}
	}
	return nil, &connectionError{ErrUnavailable, "the list of " + l.what + " changed while it was read"}
}

func listByCursorOnce[T any](ctx context.Context, c *client, l listing, id func(T) string) ([]T, bool, error) {
	var items []T
	seen := map[string]bool{}
	cursor := ""
	for range maxPages {
		query := params("pageSize", strconv.Itoa(pageSize), "cursor", url.QueryEscape(cursor))
		got, err := c.do(ctx, call{method: http.MethodGet, path: l.path, query: query, json: true})
		if err != nil {
			return nil, false, err
		}
		var found struct {
			Values []T `json:"values"`
		}
		if err := decodeJSON(got.body, &found); err != nil {
			return nil, false, err
		}
		if !unseen(seen, found.Values, id) {
			return nil, false, nil
		}
		items = append(items, found.Values...)
		if cursor = cursorIn(got.header); cursor == "" {
			return items, true, nil
		}
	}
	return nil, false, nil
}

// cursorIn takes the cursor of the next page out of the links of an answer; empty if this was the last one. Of the link, only
// the cursor is used: it decides nothing about where the next call goes.
func cursorIn(header http.Header) string {
	for _, link := range header.Values("Link") {
		match := nextCursor.FindStringSubmatch(link)
		if match == nil {
			continue
		}
		if next, err := url.Parse(match[1]); err == nil {
			return next.Query().Get("cursor")
		}
	}
	return ""
}
