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

// PageSize is the largest page size that VCD allows.
const PageSize = 128

// MaxFilter limits the length of a filter, so that every proxy accepts the URL.
const MaxFilter = 4000

// QueryPage reads one page of records from the query service. Callers treat an empty result as proof, so the response
// must come from the query service, which every VCD has. Something in front of VCD may also respond with XML.
func (c *Client) QueryPage(ctx context.Context, kind, filter string, page int, sortBy string, into *types.QueryResultRecordsType) error {
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

// queryType returns the query type for this session. A provider uses the administrator's types.
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

// Both returns the provider's records if there are any, otherwise the tenant's. A response contains only one of the
// two.
func Both[T any](tenant, provider []*T) []*T {
	if len(provider) > 0 {
		return provider
	}
	return tenant
}

// QueryAll reads all records of a kind that match a filter, page by page, sorted by a field. what is the plural noun
// for the records in error messages.
func QueryAll[T any](ctx context.Context, c *Client, kind, what, filter, sortBy string, hrefOf func(*T) string,
	of func(*types.QueryResultRecordsType) (tenant, provider []*T),
) ([]*T, error) {
	return queryAll(what, fixed, hrefOf, of, func(page int, found *types.QueryResultRecordsType) error {
		return c.QueryPage(ctx, kind, filter, page, sortBy, found)
	})
}

// QueryTasks reads all records of the task log that match a filter, in the order in which the tasks started. The result
// may lack tasks that start while it reads.
func QueryTasks(ctx context.Context, c *Client, filter string) ([]*types.QueryResultTaskRecordType, error) {
	href := func(r *types.QueryResultTaskRecordType) string { return r.HREF }
	of := func(found *types.QueryResultRecordsType) (tenant, provider []*types.QueryResultTaskRecordType) {
		return found.TaskRecord, found.AdminTaskRecord
	}
	return queryAll("tasks", appending, href, of, func(page int, found *types.QueryResultRecordsType) error {
		return c.QueryPage(ctx, "task", filter, page, "startDate", found)
	})
}

func queryAll[T any](what string, grows growth, hrefOf func(*T) string,
	of func(*types.QueryResultRecordsType) (tenant, provider []*T), read func(page int, found *types.QueryResultRecordsType) error,
) ([]*T, error) {
	id := func(r *T) string { return urn.UUID(hrefOf(r)) }
	return readComplete(what, grows, id, func(page int) ([]*T, int, error) {
		var found types.QueryResultRecordsType
		err := read(page, &found)
		return Both(of(&found)), int(found.Total), err
	})
}
