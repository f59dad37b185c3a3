// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// With is a handler for what a request is about.
func With[T any](find func(*Request) (T, error), handle func(*Request, T) (*Response, error)) Handler {
	return func(r *Request) (*Response, error) {
		found, err := find(r)
		if err != nil {
			return nil, err
		}
		return handle(r, found)
	}
}

// With2 is a handler for two things that a request is about, such as an object and the organization it is in.
func With2[T, U any](find func(*Request) (T, U, error), handle func(*Request, T, U) (*Response, error)) Handler {
	return func(r *Request) (*Response, error) {
		first, second, err := find(r)
		if err != nil {
			return nil, err
		}
		return handle(r, first, second)
	}
}

// Parsed finds what a write is about and parses the body as XML.
func Parsed[T any](find func(*Request) (T, error)) func(*Request) (T, *xmltree.Node, error) {
	return func(r *Request) (found T, tree *xmltree.Node, err error) {
		if found, err = find(r); err != nil {
			return found, nil, err
		}
		tree, err = r.Tree()
		return found, tree, err
	}
}

// XML answers 200 with a document.
func XML(n *xmltree.Node) *Response { return &Response{Status: http.StatusOK, XML: n} }

// JSON answers 200 with a value.
func JSON(v any) *Response { return &Response{Status: http.StatusOK, JSON: v} }

// NoContent answers 204.
func NoContent() *Response { return &Response{Status: http.StatusNoContent} }

// CreatedAt makes an answer one for a new object at an address.
func (res *Response) CreatedAt(location string) *Response {
	res.Status = http.StatusCreated
	res.Header = map[string]string{"Location": location}
	return res
}

// CloudAPI reports whether a request is to the JSON API, or to its logins.
func (r *Request) CloudAPI() bool {
	return strings.HasPrefix(r.URL.Path, "/cloudapi/") || strings.HasPrefix(r.URL.Path, "/oauth/")
}

// ExecutionTime returns the milliseconds since a request started, as a header has them.
func ExecutionTime(started time.Time) string {
	return strconv.FormatInt(time.Since(started).Milliseconds(), 10)
}
