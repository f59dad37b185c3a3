// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// maxPages limits the number of pages read from one list, in case a server always offers another page.
const maxPages = 400

// A Listing describes a list in the JSON API.
type Listing struct {
	Path  string
	What  string      // plural noun for messages
	Of    string      // the container of the items, for messages; may be empty
	Terms []fiql.Term // only of constants and IDs, which need no escaping
	Sort  string      // field that orders the pages; empty if VCD supports none
	Size  int         // page size if VCD limits it below PageSize; 0: PageSize
	Most  int         // length up to which the list is read; 0: no limit
}

// ErrLong is the error for a list that is longer than [Listing.Most].
var ErrLong = errors.New("the list is too long")

func (l Listing) query(page int) string {
	filter := ""
	if len(l.Terms) > 0 {
		filter = fiql.JSON(l.Terms...)
	}
	return Params("page", strconv.Itoa(page), "pageSize", strconv.Itoa(cmp.Or(l.Size, PageSize)), "sortAsc", l.Sort,
		"filter", filter)
}

// An item is an element of a list. Its key is empty if the list may contain equal items.
type item interface{ Key() string }

// ListAll reads all pages of a list.
func ListAll[T item](ctx context.Context, c *Client, l Listing) ([]T, error) {
	items, err := readComplete(l.What, fixed, T.Key, func(page int) ([]T, int, error) {
		var found struct {
			ResultTotal *int `json:"resultTotal"`
			Values      []T  `json:"values"`
		}
		if err := c.GetJSON(ctx, l.Path, l.query(page), &found); err != nil {
			return nil, 0, err
		}
		switch {
		case found.ResultTotal == nil:
			return nil, 0, failure.Unavailable("the list of " + l.What + " does not include its length")
		case l.Most > 0 && *found.ResultTotal > l.Most:
			return nil, 0, ErrLong
		}
		return found.Values, *found.ResultTotal, nil
	})
	return items, failure.Wrap(err, "listing", l.What+l.Of)
}

// ListUnordered reads all pages of a list that has no order and whose items have no IDs. A later page may then repeat
// items of an earlier page and miss others, so the list is read until two consecutive reads return the same items.
func ListUnordered[T interface {
	item
	comparable
}](ctx context.Context, c *Client, l Listing) ([]T, error) {
	var before map[T]int
	for range 4 {
		items, err := ListAll[T](ctx, c, l)
		if err != nil || len(items) <= cmp.Or(l.Size, PageSize) {
			return items, err
		}
		now := map[T]int{}
		for _, item := range items {
			now[item]++
		}
		if maps.Equal(now, before) {
			return items, nil
		}
		before = now
	}
	return nil, failure.Unavailable("the list of " + l.What + l.Of + " has no stable order")
}

// ListAs is [ListAll] with a conversion of each item.
func ListAs[T item, U any](ctx context.Context, c *Client, l Listing, convert func(*T) U) ([]U, error) {
	items, err := ListAll[T](ctx, c, l)
	if err != nil {
		return nil, err
	}
	converted := make([]U, len(items))
	for i := range items {
		converted[i] = convert(&items[i])
	}
	return converted, nil
}

// A growth tells whether items may be added to a list while it is read.
type growth bool

const (
	fixed     growth = false // An added item may move others to another page.
	appending growth = true  // The list is sorted so that new items are at its end.
)

// readComplete reads all pages of a list. An item that is added or removed between two pages could be seen twice or not at
// all. Such a result is discarded, and the list is read once more. A list that is only appended to is complete when it
// contains the items that existed at the beginning.
func readComplete[T any](what string, grows growth, id func(T) string, read func(page int) (items []T, total int, err error)) ([]T, error) {
	return retryOnce(what, func() ([]T, bool, error) {
		var all []T
		first := 0
		seen := map[string]bool{}
		for page := 1; page <= maxPages; page++ {
			items, total, err := read(page)
			if err != nil {
				return nil, false, err
			}
			if page == 1 {
				first = total
			}
			all = append(all, items...)
			switch {
			case !allNew(seen, items, id), total < first, total > first && grows != appending, len(all) > total:
				return nil, false, nil
			case len(all) >= first:
				return all, true, nil
			case len(items) == 0:
				return nil, false, nil
			}
		}
		return nil, false, nil
	})
}

// retryOnce reads a list, and reads it once more if the first result is incomplete.
func retryOnce[T any](what string, read func() (items []T, complete bool, err error)) ([]T, error) {
	for range 2 {
		items, complete, err := read()
		if err != nil || complete {
			return items, err
		}
	}
	return nil, failure.Unavailable("the list of " + what + " changed while it was read")
}

// allNew records items and reports whether all of them are new.
func allNew[T any](seen map[string]bool, items []T, id func(T) string) bool {
	for _, item := range items {
		key := id(item)
		if key != "" && seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// nextCursor matches the link to the next page of a list that has cursors instead of page numbers.
var nextCursor = regexp.MustCompile(`<([^<>]*)>\s*;[^,]*rel="?nextPage"?`)

// ListByCursor reads all pages of a list that has cursors and does not state its length.
func ListByCursor[T item](ctx context.Context, c *Client, l Listing) ([]T, error) {
	items, err := retryOnce(l.What, func() ([]T, bool, error) {
		var items []T
		cursor := ""
		seen := map[string]bool{}
		for range maxPages {
			query := Params("pageSize", strconv.Itoa(PageSize), "cursor", url.QueryEscape(cursor))
			got, err := c.Do(ctx, Call{Method: http.MethodGet, Path: l.Path, query: query, JSON: true})
			if err != nil {
				return nil, false, err
			}
			var found struct {
				Values []T `json:"values"`
			}
			if err := wire.DecodeJSON(got.Body, &found); err != nil {
				return nil, false, err
			}
			if !allNew(seen, found.Values, T.Key) {
				return nil, false, nil
			}
			items = append(items, found.Values...)
			if cursor = cursorIn(got.Header); cursor == "" {
				return items, true, nil
			}
		}
		return nil, false, nil
	})
	return items, failure.Wrap(err, "listing", l.What+l.Of)
}

// cursorIn returns the cursor of the next page from the Link headers of a response, or the empty string on the last
// page. It uses only the cursor, so the link cannot redirect the next request.
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
