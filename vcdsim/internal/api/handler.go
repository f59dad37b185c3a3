// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// With returns a handler that finds the object of a request and passes it to handle.
func With[T any](find func(*Request) (T, error), handle func(*Request, T) (*Response, error)) Handler {
	return func(r *Request) (*Response, error) {
		found, err := find(r)
		if err != nil {
			return nil, err
		}
		return handle(r, found)
	}
}

// WithCloud is like With for a handler that needs only the simulated state.
func WithCloud[T any](find func(*Request) (T, error), handle func(*cloud.Cloud, T) (*Response, error)) Handler {
	return With(find, func(r *Request, found T) (*Response, error) { return handle(r.Cloud, found) })
}

// WithSite is like With for a handler that needs only the base of hrefs.
func WithSite[T any](find func(*Request) (T, error), handle func(wire.Site, T) (*Response, error)) Handler {
	return With(find, func(r *Request, found T) (*Response, error) { return handle(r.Site, found) })
}

// With2 is like With for requests with two objects, such as an object and its organization.
func With2[T, U any](find func(*Request) (T, U, error), handle func(*Request, T, U) (*Response, error)) Handler {
	return func(r *Request) (*Response, error) {
		first, second, err := find(r)
		if err != nil {
			return nil, err
		}
		return handle(r, first, second)
	}
}

// Parsed returns a finder that also parses the body as XML.
func Parsed[T any](find func(*Request) (T, error)) func(*Request) (T, *xmltree.Node, error) {
	return func(r *Request) (found T, tree *xmltree.Node, err error) {
		if found, err = find(r); err != nil {
			return found, nil, err
		}
		tree, err = r.Tree()
		return found, tree, err
	}
}

// XML responds with 200 and an XML document.
func XML(n *xmltree.Node) *Response { return &Response{Status: http.StatusOK, XML: n} }

// JSON responds with 200 and a value.
func JSON(v any) *Response { return &Response{Status: http.StatusOK, JSON: v} }

// NoContent responds with 204.
func NoContent() *Response { return &Response{Status: http.StatusNoContent} }

// CreatedAt changes the response to 201 with the location of a new object.
func (res *Response) CreatedAt(location string) *Response {
	res.Status = http.StatusCreated
	res.Header = map[string]string{"Location": location}
	return res
}

// CloudAPI reports whether a request is for the JSON API or its logins.
func (r *Request) CloudAPI() bool {
	return strings.HasPrefix(r.URL.Path, "/cloudapi/") || strings.HasPrefix(r.URL.Path, "/oauth/")
}

// ExecutionTime returns the time since a request started, in milliseconds, as a header value.
func ExecutionTime(started time.Time) string {
	return strconv.FormatInt(time.Since(started).Milliseconds(), 10)
}
