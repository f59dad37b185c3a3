// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// largestPage is the largest page size of VCD's queries.
const largestPage = 128

// emptyPageBeyondEnd requests a page beyond the end of the results in any organization.
func emptyPageBeyondEnd(ctx context.Context, b *bench) (outcome, error) {
	const far = 10_000
	p, err := b.query(ctx, "orgVdc", "pageSize=25&page="+strconv.Itoa(far))
	switch {
	case err == nil && len(p.Records) > 0:
		return unknown(answeredUnknown), nil
	case err == nil || refused(err):
		return is(err == nil, howPageRead, howPageRead), nil
	}
	return outcome{}, err
}

// queryPageSizeIsCut requests a page size larger than VCD's limit.
func queryPageSizeIsCut(ctx context.Context, b *bench) (outcome, error) {
	p, err := b.query(ctx, "orgVdc", "pageSize="+strconv.Itoa(largestPage+1))
	switch {
	case err == nil && p.PageSize != largestPage:
		return unknown(answeredUnknown), nil
	case err == nil || refused(err):
		return is(err == nil, howPageSizeRead, howPageSizeRead), nil
	}
	return outcome{}, err
}

// anyHost matches the scheme and host of a URL.
var anyHost = regexp.MustCompile(`^https?://[^/]+`)

// hrefFilterIsText filters by the URL of a VDC as VCD writes it, and by the same URL with another host.
func hrefFilterIsText(ctx context.Context, b *bench) (outcome, error) {
	all, err := b.query(ctx, "orgVdcStorageProfile", "pageSize=25")
	if err != nil {
		return outcome{}, err
	}
	address := ""
	for _, r := range all.Records {
		if address = r.of("vdc"); anyHost.MatchString(address) {
			break
		}
	}
	if !anyHost.MatchString(address) {
		return unknown(answeredUnknown), nil
	}
	filtered := func(address string) (page, error) {
		return b.query(ctx, "orgVdcStorageProfile", "pageSize=25&filter=vdc=="+url.QueryEscape(address))
	}
	own, err := filtered(address)
	if err != nil {
		return outcome{}, err
	}
	other, err := filtered(anyHost.ReplaceAllString(address, "https://another-host.invalid"))
	switch {
	case refused(err) || err == nil && len(own.Records) == 0:
		return unknown(answeredUnknown), nil
	case err != nil:
		return outcome{}, err
	}
	return is(len(other.Records) == 0, howHostFilterRead, howHostFilterRead), nil
}

// usedAddressesAreFiltered lists the used addresses of the first network that has any, and then with a filter that matches
// none of them.
func usedAddressesAreFiltered(ctx context.Context, b *bench) (outcome, error) {
	const networks = "/cloudapi/1.0.0/orgVdcNetworks"
	var visible struct {
		Values []struct {
			ID string `json:"id"`
		} `json:"values"`
	}
	if err := b.calls.get(ctx, networks, "page=1&pageSize=25", &visible); err != nil {
		return outcome{}, err
	}
	for _, network := range visible.Values {
		list := networks + "/" + url.PathEscape(network.ID) + "/allocatedIpAddresses"
		all, err := b.countItems(ctx, list, "")
		switch {
		case err != nil:
			return outcome{}, err
		case all == 0:
			continue
		}
		const documentation = "192.0.2.1" // No network should use it: RFC 5737.
		found, err := b.countItems(ctx, list, "ipAddress=="+documentation)
		switch {
		case refused(err):
			return is(false, howAddressFiltered, howAddressRefused), nil
		case err != nil:
			return outcome{}, err
		}
		return is(found == 0, howAddressFiltered, howAddressNotFiltered), nil
	}
	return unknown(noUsedAddress), nil
}

// countItems returns the number of items of a list that match a filter.
func (b *bench) countItems(ctx context.Context, path, filter string) (int, error) {
	query := "page=1&pageSize=1"
	if filter != "" {
		query += "&filter=" + filter
	}
	var list struct {
		Total int `json:"resultTotal"`
	}
	err := b.calls.get(ctx, path, query, &list)
	return list.Total, err
}

// allocationsNeedType lists the allocations of an IP Space without a type and with one.
func allocationsNeedType(ctx context.Context, b *bench) (outcome, error) {
	spaces, err := b.session.IPSpaces.Public(ctx)
	if err != nil {
		return outcome{}, err
	}
	if len(spaces) == 0 {
		return unknown(noSpaces), nil
	}
	list := func(filter string) error {
		_, err := b.session.Raw(ctx, vcd.RawCall{
			Method: http.MethodGet,
			Path:   "/cloudapi/1.0.0/ipSpaces/" + url.PathEscape(spaces[0].ID) + "/allocations",
			Query:  "page=1&pageSize=1" + filter,
			JSON:   true,
		})
		return err
	}
	without := list("")
	switch with := list("&filter=type==FLOATING_IP"); {
	case refused(with):
		return unknown(controlRefused), nil
	case with != nil:
		return outcome{}, with
	case without == nil || refused(without):
		return is(without != nil, howTypeNeeded, howTypeNotNeeded), nil
	}
	return outcome{}, without
}
