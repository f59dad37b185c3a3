// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/login"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A call is one call of VCD's API. Its query is raw, because VCD wants the operators of filters bare.
type call struct {
	method      string
	path        string
	query       string
	json        bool   // the JSON API
	content     any    // nil: none; []byte: encoded already
	contentType string // of content for the XML API
	ifMatch     string // ETag of the version that may be replaced; empty for any
}

// encode returns the body of the request and its type.
func (c call) encode() (body []byte, contentType string, err error) {
	if raw, ok := c.content.([]byte); ok || c.content == nil {
		return raw, c.contentType, nil
	}
	if c.json {
		body, err = wire.EncodeJSON(c.content)
		return body, transport.JSONType, err
	}
	body, err = wire.EncodeXML(c.content)
	return body, c.contentType, err
}

// A sender makes calls with credentials.
type sender interface {
	Send(ctx context.Context, what transport.Request) (transport.Answer, error)
}

// A client makes the calls of a session, in the organization that it works in.
type client struct {
	sender   sender
	base     string // of the site, https://host[:port]
	org      string // that the session works in
	provider bool   // logged in to the System organization
	lookups  *cache.Cache
}

// do makes a call.
func (c *client) do(ctx context.Context, what call) (transport.Answer, error) {
	body, contentType, err := what.encode()
	if err != nil {
		return transport.Answer{}, err
	}
	header := http.Header{}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	if what.ifMatch != "" {
		header.Set("If-Match", what.ifMatch)
	}
	if err := c.setTenant(ctx, what, header); err != nil {
		return transport.Answer{}, err
	}
	return c.sender.Send(ctx, transport.Request{
		Method: what.method,
		Path:   what.path,
		Query:  what.query,
		JSON:   what.json,
		Header: header,
		Body:   body,
	})
}

// setTenant names the organization that a provider's session works in; a tenant's session has only one.
func (c *client) setTenant(ctx context.Context, what call, header http.Header) error {
	if !c.provider || login.IsSystem(c.org) || what.path == transport.QueryPath &&
		strings.HasPrefix(what.query, "type=organization&") {
		return nil
	}
	org, err := c.orgID(ctx)
	if err != nil {
		return err
	}
	header.Set("X-Vmware-Vcloud-Tenant-Context", urn.UUID(org))
	return nil
}

// orgID finds the URN of the organization that a provider's session works in. Without it no call can be made: that it
// is missing, or hidden, is no evidence about what the call was for.
func (c *client) orgID(ctx context.Context) (string, error) {
	return cache.Lookup(ctx, c.lookups, "org", func(ctx context.Context) (string, error) {
		if err := fiql.CheckName("organization", c.org, ""); err != nil {
			return "", failure.Invalid(err.Error())
		}
		var found types.QueryResultRecordsType
		err := c.queryPage(ctx, "organization", fiql.AllOf(fiql.Is("name", c.org)), 1, "", &found)
		if err != nil && !errors.Is(err, failure.ErrForbidden) {
			return "", fmt.Errorf("looking up organization %s: %w", c.org, err)
		}
		for _, record := range found.OrgRecord {
			if record.Name == c.org {
				return urn.Of(urn.Org, record.HREF), nil
			}
		}
		return "", failure.Invalid("organization " + c.org + " does not exist or may not be seen by this user")
	})
}

// getXML reads an object of the XML API.
func (c *client) getXML(ctx context.Context, path string, into any) error {
	got, err := c.do(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	return wire.DecodeXML(got.Body, into)
}

// getJSON reads an object of the JSON API.
func (c *client) getJSON(ctx context.Context, path, query string, into any) error {
	got, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query, json: true})
	if err != nil {
		return err
	}
	return wire.DecodeJSON(got.Body, into)
}

// read reads an object of the JSON API and converts it.
func read[W, T any](ctx context.Context, c *client, what, id, path string, convert func(*W) T) (T, error) {
	var doc W
	if err := c.getJSON(ctx, path, "", &doc); err != nil {
		var none T
		return none, failure.Wrap(err, "reading "+what, id)
	}
	return convert(&doc), nil
}

func (c *client) object(ctx context.Context, path string) (wire.Object, error) {
	var o wire.Object
	if err := c.getJSON(ctx, path, "", &o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, wire.ErrNotJSON
	}
	return o, nil
}

// href returns the address of an object as VCD writes it in references and filters.
func (c *client) href(kind, id string) string { return c.base + urn.Path(kind, id) }

// policyHRef returns the address of a compute policy, which only exists in the JSON API.
func (c *client) policyHRef(id string) string {
	return c.base + "/cloudapi/2.0.0/vdcComputePolicies/" + id
}

// params writes a query string in the given order: names and values alternate, values are written as they are.
func params(pairs ...string) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			parts = append(parts, pairs[i]+"="+pairs[i+1])
		}
	}
	return strings.Join(parts, "&")
}
