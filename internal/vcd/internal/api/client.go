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

// A Call is one call of VCD's API. Its query is raw, because VCD wants the operators of filters bare.
type Call struct {
	Method      string
	Path        string
	query       string
	JSON        bool   // the JSON API
	Content     any    // nil: none; []byte: encoded already
	ContentType string // of content for the XML API
	IfMatch     string // ETag of the version that may be replaced; empty for any
}

// encode returns the body of the request and its type.
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

// A Sender makes calls with credentials.
type Sender interface {
	Send(ctx context.Context, what transport.Request) (transport.Answer, error)
}

// A Scope says where calls are made.
type Scope struct {
	Base     string // of the site, https://host[:port]
	Org      string // that the session works in
	Provider bool   // logged in to the System organization
}

// A Client makes the calls of a session, in the organization that it works in.
type Client struct {
	Scope

	// Organization is the one that a provider works in; nil for a tenant, whose session has only one.
	Organization *Organization

	sender Sender
}

// New returns a client. A provider's look-up of its organization is remembered.
func New(as Sender, in Scope, lookups *cache.Cache) *Client {
	c := &Client{Scope: in, sender: as}
	if in.Provider {
		c.Organization = &Organization{
			name:    in.Org,
			plain:   &Client{Scope: in, sender: as},
			lookups: lookups,
		}
	}
	if in.Provider && !login.IsSystem(in.Org) {
		c.sender = c.Organization
	}
	return c
}

// Do makes a call.
func (c *Client) Do(ctx context.Context, what Call) (transport.Answer, error) {
	body, contentType, err := what.encode()
	if err != nil {
		return transport.Answer{}, err
	}
	header := http.Header{}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	if what.IfMatch != "" {
		header.Set("If-Match", what.IfMatch)
	}
	return c.sender.Send(ctx, transport.Request{
		Method: what.Method,
		Path:   what.Path,
		Query:  what.query,
		JSON:   what.JSON,
		Header: header,
		Body:   body,
	})
}

// Send makes a call as it is, with nothing encoded.
func (c *Client) Send(ctx context.Context, what transport.Request) (transport.Answer, error) {
	return c.sender.Send(ctx, what)
}

// GetXML reads an object of the XML API.
func (c *Client) GetXML(ctx context.Context, path string, into any) error {
	got, err := c.Do(ctx, Call{Method: http.MethodGet, Path: path})
	if err != nil {
		return err
	}
	return wire.DecodeXML(got.Body, into)
}

// GetJSON reads an object of the JSON API.
func (c *Client) GetJSON(ctx context.Context, path, query string, into any) error {
	got, err := c.Do(ctx, Call{Method: http.MethodGet, Path: path, query: query, JSON: true})
	if err != nil {
		return err
	}
	return wire.DecodeJSON(got.Body, into)
}

// Read reads an object of the JSON API and converts it.
func Read[W, T any](ctx context.Context, c *Client, what, id, path string, convert func(*W) T) (T, error) {
	var doc W
	if err := c.GetJSON(ctx, path, "", &doc); err != nil {
		var none T
		return none, failure.Wrap(err, "reading "+what, id)
	}
	return convert(&doc), nil
}

// Object reads an object of the JSON API to change it.
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

// Href returns the address of an object as VCD writes it in references and filters.
func (c *Client) Href(kind, id string) string { return c.Base + urn.Path(kind, id) }

// PolicyHRef returns the address of a compute policy, which only exists in the JSON API.
func (c *Client) PolicyHRef(id string) string {
	return c.Base + "/cloudapi/2.0.0/vdcComputePolicies/" + id
}

// Params writes a query string in the given order: names and values alternate, values are written as they are.
func Params(pairs ...string) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			parts = append(parts, pairs[i]+"="+pairs[i+1])
		}
	}
	return strings.Join(parts, "&")
}
