// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/login"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A Call is a request to VCD's API. Its query is raw because VCD expects the operators of filters unescaped.
type Call struct {
	Method      string
	Path        string
	query       string
	JSON        bool   // uses the JSON API instead of the XML API
	Content     any    // nil: no body; []byte: sent as it is
	ContentType string // of Content; for the XML API only
	IfMatch     string // ETag of the version to replace; empty: any version
}

// encode returns the body of the request and its media type.
func (c Call) encode() (body []byte, contentType string, err error) {
	if raw, ok := c.Content.([]byte); ok || c.Content == nil {
		return raw, c.ContentType, nil
	}
	if c.JSON {
		body, err = wire.EncodeJSON(c.Content)
		return body, transport.JSONType, err
	}
	body, err = wire.EncodeXML(c.Content)
	return body, c.ContentType, err
}

// A Sender sends requests with credentials.
type Sender interface {
	Send(ctx context.Context, r transport.Request) (transport.Answer, error)
}

// A Scope is the site and organization that requests go to.
type Scope struct {
	Base     string // base URL of the site, https://host[:port]
	Org      string // name of the organization that the session works in
	Provider bool   // the session belongs to the System organization
}

// A Client sends the requests of a session, in the organization that the session works in.
type Client struct {
	Scope

	// Organization is the organization that a provider session works in. It is nil for a tenant, whose session has only
	// one.
	Organization *Organization

	sender Sender
}

// New returns a client. For a provider session, lookups caches the ID of its organization.
func New(sender Sender, scope Scope, lookups *cache.Cache) *Client {
	c := &Client{Scope: scope, sender: sender}
	if scope.Provider {
		c.Organization = &Organization{
			name:    scope.Org,
			plain:   &Client{Scope: scope, sender: sender},
			lookups: lookups,
		}
	}
	if scope.Provider && !login.IsSystem(scope.Org) {
		c.sender = c.Organization
	}
	return c
}

// Do encodes and sends a request.
func (c *Client) Do(ctx context.Context, call Call) (transport.Answer, error) {
	body, contentType, err := call.encode()
	if err != nil {
		return transport.Answer{}, err
	}
	header := http.Header{}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	if call.IfMatch != "" {
		header.Set("If-Match", call.IfMatch)
	}
	return c.sender.Send(ctx, transport.Request{
		Method: call.Method,
		Path:   call.Path,
		Query:  call.query,
		JSON:   call.JSON,
		Header: header,
		Body:   body,
	})
}

// Send sends a request as it is, without encoding it.
func (c *Client) Send(ctx context.Context, r transport.Request) (transport.Answer, error) {
	return c.sender.Send(ctx, r)
}

// GetXML reads an object from the XML API.
func (c *Client) GetXML(ctx context.Context, path string, into any) error {
	got, err := c.Do(ctx, Call{Method: http.MethodGet, Path: path})
	if err != nil {
		return err
	}
	return wire.DecodeXML(got.Body, into)
}

// GetJSON reads an object from the JSON API.
func (c *Client) GetJSON(ctx context.Context, path, query string, into any) error {
	got, err := c.Do(ctx, Call{Method: http.MethodGet, Path: path, query: query, JSON: true})
	if err != nil {
		return err
	}
	return wire.DecodeJSON(got.Body, into)
}

// Read reads an object from the JSON API and converts it.
func Read[W, T any](ctx context.Context, c *Client, what, id, path string, convert func(*W) T) (T, error) {
	var doc W
	if err := c.GetJSON(ctx, path, "", &doc); err != nil {
		var none T
		return none, failure.Wrap(err, "reading "+what, id)
	}
	return convert(&doc), nil
}

// Object reads an object from the JSON API in a form that preserves unknown fields when it is written back.
func (c *Client) Object(ctx context.Context, path string) (wire.Object, error) {
	var o wire.Object
	if err := c.GetJSON(ctx, path, "", &o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, wire.ErrNotJSON
	}
	return o, nil
}

// Href returns the URL of an object as VCD writes it in references and filters.
func (c *Client) Href(kind, id string) string { return c.Base + urn.Path(kind, id) }

// PolicyHRef returns the URL of a compute policy, which only exists in the JSON API.
func (c *Client) PolicyHRef(id string) string {
	return c.Base + "/cloudapi/2.0.0/vdcComputePolicies/" + id
}

// Params returns a query string of alternating names and values, in the given order. It omits empty values and does not
// escape the others.
func Params(pairs ...string) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			parts = append(parts, pairs[i]+"="+pairs[i+1])
		}
	}
	return strings.Join(parts, "&")
}
