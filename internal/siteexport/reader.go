// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Limits of lists.
const (
	pageSize = 128
	maxItems = 1024 // largest number of items that are read from a list
)

// A reader reads a site. It only sends GET requests.
type reader struct {
	session *vcd.Session
	// notes are sentences about data that could not be read or are omitted.
	notes []string
}

// note adds a sentence, unless it was already added.
func (r *reader) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// noteIfHidden replaces an error with a note if the user may not read something or the site does not support it.
func (r *reader) noteIfHidden(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, vcd.ErrForbidden):
		r.note("%s: not readable for the user; the defaults of the simulator apply", what)
		return nil
	case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrInvalid):
		r.note("%s: not available on the site; the defaults of the simulator apply", what)
		return nil
	}
	return fmt.Errorf("reading %s: %w", what, err)
}

// readJSON reads a document from the JSON API.
func (r *reader) readJSON(ctx context.Context, path string, query url.Values, into any) error {
	got, err := r.session.Raw(ctx, vcd.RawCall{
		Method: http.MethodGet,
		Path:   path,
		Query:  encoded(query),
		JSON:   true,
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(got.Body, into); err != nil {
		return fmt.Errorf("reading the response of %s: %w", path, err)
	}
	return nil
}

// readXML reads a document from the XML API.
func (r *reader) readXML(ctx context.Context, path string, query url.Values, into any) error {
	got, err := r.session.Raw(ctx, vcd.RawCall{
		Method: http.MethodGet,
		Path:   path,
		Query:  encoded(query),
	})
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(got.Body, into); err != nil {
		return fmt.Errorf("reading the response of %s: %w", path, err)
	}
	return nil
}

// encoded encodes a query for VCD, which expects %20 for a space.
func encoded(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }

// readList reads the pages of a list from the JSON API.
func readList[T any](ctx context.Context, r *reader, what, path string, query url.Values) ([]T, error) {
	return readPages(r, what, func(page string) ([]T, int, error) {
		var found struct {
			Total  int `json:"resultTotal"`
			Values []T `json:"values"`
		}
		params := url.Values{"page": {page}, "pageSize": {strconv.Itoa(pageSize)}}
		for name, values := range query {
			params[name] = values
		}
		err := r.readJSON(ctx, path, params, &found)
		return found.Values, found.Total, err
	})
}

// A record is a row in the result of a query.
type record struct {
	Attrs []xml.Attr `xml:",any,attr"`
}

// of returns the value of an attribute of the record, or the empty string.
func (r record) of(name string) string {
	for _, a := range r.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// readQuery reads the pages of a query, sorted by name.
func (r *reader) readQuery(ctx context.Context, what, kind string) ([]record, error) {
	records, err := readPages(r, what, func(page string) ([]record, int, error) {
		var found struct {
			Total   int      `xml:"total,attr"`
			Records []record `xml:",any"`
		}
		err := r.readXML(ctx, "/api/query", url.Values{
			"type":     {kind},
			"format":   {"records"},
			"page":     {page},
			"pageSize": {strconv.Itoa(pageSize)},
			"sortAsc":  {"name"},
		}, &found)
		// The elements include links in addition to the records.
		found.Records = slices.DeleteFunc(found.Records, func(x record) bool { return x.of("rel") != "" })
		return found.Records, found.Total, err
	})
	return inOrder(records, func(x record) string { return x.of("name") }), err
}

// readPages reads pages until all items are read or maxItems is reached.
func readPages[T any](r *reader, what string, read func(page string) ([]T, int, error)) ([]T, error) {
	var all []T
	for page := 1; len(all) < maxItems; page++ {
		items, total, err := read(strconv.Itoa(page))
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if len(items) == 0 || len(all) >= total {
			return all, nil
		}
	}
	r.note("%s: the file contains only the first %d", what, maxItems)
	return all[:maxItems], nil
}

// A ref is a reference in the JSON API.
type ref struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

var uuid = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// uuidOf returns the UUID in a URN or URL, or the empty string.
func uuidOf(id string) string { return strings.ToLower(uuid.FindString(id)) }

// A wireRange is a range of addresses in either of the two forms of the JSON API.
type wireRange struct {
	Start      string `json:"startAddress"`
	End        string `json:"endAddress"`
	SpaceStart string `json:"startIpAddress"`
	SpaceEnd   string `json:"endIpAddress"`
}

type wireRanges struct {
	Values []wireRange `json:"values"`
}

func (w wireRanges) ranges() []Range { return rangesOf(w.Values) }

// rangesOf converts ranges. It skips those that are invalid or cannot be moved.
func rangesOf(all []wireRange) []Range {
	var ranges []Range
	for _, x := range all {
		from := addressOf(x.Start + x.SpaceStart)
		to := addressOf(x.End + x.SpaceEnd)
		r := Range{From: from, To: to}
		if from.IsValid() && from.BitLen() == to.BitLen() && !to.Less(from) && movable(covering(r)) {
			ranges = append(ranges, r)
		}
	}
	return ranges
}

// addressOf parses an address and removes its zone. It returns the zero value if the text is not an address.
func addressOf(text string) netip.Addr {
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// subnetOf returns the address of a gateway with the prefix length of its subnet. It returns the zero value if the
// prefix is invalid or cannot be moved.
func subnetOf(gateway string, length int) netip.Prefix {
	p := netip.PrefixFrom(addressOf(gateway), length)
	if !p.IsValid() || !movable(p) {
		return netip.Prefix{}
	}
	return p
}

// within returns the ranges that are in a subnet.
func within(subnet netip.Prefix, ranges []Range) []Range {
	return slices.DeleteFunc(ranges, func(x Range) bool { return !subnet.Contains(x.From) || !subnet.Contains(x.To) })
}
