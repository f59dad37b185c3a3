// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// PageSize is the largest that VCD allows.
const PageSize = 128

// MaxFilter bounds the length of one filter, so that URLs stay short enough for every proxy.
const MaxFilter = 4000

// QueryPage asks the query service for one page of records. That it finds nothing is proof of something, so it must be
// the service that says so: there is no VCD without one, and a page of something in front of VCD may well be XML.
func (c *Client) QueryPage(ctx context.Context, kind, filter string, page int, sortBy string,
	into *types.QueryResultRecordsType,
) error {
	got, err := c.Do(ctx, Call{
		Method: http.MethodGet,
		Path:   transport.QueryPath,
		query: Params(
			"type", c.queryType(kind), "format", "records", "page", strconv.Itoa(page), "pageSize", strconv.Itoa(PageSize),
			"sortAsc", sortBy, "filterEncoded", "true", "filter", filter,
		),
	})
	switch {
	case errors.Is(err, failure.ErrNotFound):
		return failure.Unavailable("the server has no VCD query service: " + err.Error())
	case err != nil:
		return err
	case wire.Root(got.Body) != "QueryResultRecords":
		return failure.Unavailable("the response is not a VCD list")
	}
	return wire.DecodeXML(got.Body, into)
}

// queryType returns the name of a query for this session: a provider asks for the administrator's view.
func (c *Client) queryType(kind string) string {
	if !c.Provider {
		return kind
	}
	admin := map[string]string{
		"vm":                   "adminVM",
		"vApp":                 "adminVApp",
		"orgVdc":               "adminOrgVdc",
		"vAppTemplate":         "adminVAppTemplate",
		"task":                 "adminTask",
		"disk":                 "adminDisk",
		"catalog":              "adminCatalog",
		"orgVdcStorageProfile": "adminOrgVdcStorageProfile",
	}
	if name, ok := admin[kind]; ok {
		return name
	}
	return kind
}

// Both joins the records that tenants and providers get.
func Both[T any](tenant, provider []*T) []*T {
	if len(provider) > 0 {
		return provider
	}
	return tenant
}

// QueryAll asks the query service for all records of a kind that a filter matches, page by page in the order of a
// field; what they are is for messages.
func QueryAll[T any](ctx context.Context, c *Client, kind, what, filter, sortBy string, hrefOf func(*T) string,
	of func(*types.QueryResultRecordsType) (tenant, provider []*T),
) ([]*T, error) {
	id := func(r *T) string { return urn.UUID(hrefOf(r)) }
	return complete(what, id, func(page int) ([]*T, int, error) {
		var found types.QueryResultRecordsType
		err := c.QueryPage(ctx, kind, filter, page, sortBy, &found)
		return Both(of(&found)), int(found.Total), err
	})
}
