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

// Bounds of what is read.
const (
	pageSize = 128
	maxItems = 1024 // of a list
)

// A reader reads a site. It makes no other requests than GET.
type reader struct {
	session *vcd.Session
	// notes are what could not be read, or is not in the file.
	notes []string
}

// note adds a sentence, once.
func (r *reader) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// unlessHidden turns the error of a user who may not read something, or of a site that does not have it, into a note.
func (r *reader) unlessHidden(what string, err error) error {
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

// readJSON reads a document of the JSON API.
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

// readXML reads a document of the XML API.
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

// encoded returns a query as VCD reads it: a space is %20.
func encoded(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }

// readList reads the pages of a list of the JSON API.
func readList[T any](ctx context.Context, r *reader, what, path string, query url.Values) ([]T, error) {
	return readPages(r, what, func(page string) ([]T, int, error) {
		var found struct {
			Total  int `json:"resultTotal"`
			Values []T `json:"values"`
		}
		asked := url.Values{"page": {page}, "pageSize": {strconv.Itoa(pageSize)}}
		for name, values := range query {
			asked[name] = values
		}
		err := r.readJSON(ctx, path, asked, &found)
		return found.Values, found.Total, err
	})
}

// A record is a line of a query.
type record struct {
	Attrs []xml.Attr `xml:",any,attr"`
}

// of returns an attribute of the record; empty if it has none of the name.
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
		// Links are elements beside the records.
		found.Records = slices.DeleteFunc(found.Records, func(x record) bool { return x.of("rel") != "" })
		return found.Records, found.Total, err
	})
	return inOrder(records, func(x record) string { return x.of("name") }), err
}

// readPages reads pages until all items are read, or the bound is reached.
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

// A ref is a reference of the JSON API.
type ref struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

var uuid = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// bare returns the UUID in a URN or address; empty if there is none.
func bare(id string) string { return strings.ToLower(uuid.FindString(id)) }

// A wireRange is a range of addresses as the JSON API has it, in either of its forms.
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

// rangesOf returns the ranges that have two ends of one family, in order, and can be moved.
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

// addressOf reads an address without its zone; the zero value is none.
func addressOf(text string) netip.Addr {
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// subnetOf returns a gateway's address with the length of its subnet; the zero value if it is none that can be moved.
func subnetOf(gateway string, length int) netip.Prefix {
	p := netip.PrefixFrom(addressOf(gateway), length)
	if !p.IsValid() || !movable(p) {
		return netip.Prefix{}
	}
	return p
}

// within keeps the ranges that are in a subnet.
func within(subnet netip.Prefix, ranges []Range) []Range {
	return slices.DeleteFunc(ranges, func(x Range) bool { return !subnet.Contains(x.From) || !subnet.Contains(x.To) })
}
