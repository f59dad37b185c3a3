// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// values are the parameters of a query string. The standard parser drops a pair that holds a `;`, and filters are full
// of them.
type values map[string]string

func parseQuery(raw string) values {
	out := values{}
	for _, pair := range strings.Split(raw, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key == "" {
			continue
		}
		if u, err := url.QueryUnescape(key); err == nil {
			key = u
		}
		if u, err := url.QueryUnescape(value); err == nil {
			value = u
		}
		out[key] = value
	}
	return out
}

func (v values) get(key string) string { return v[key] }

// maxNumber is the highest number a parameter can mean: pages times their size stay numbers.
const maxNumber = 1 << 30

// number returns a positive parameter, or the fallback.
func (v values) number(key string, fallback int) int {
	if n, err := strconv.Atoi(v[key]); err == nil && n > 0 {
		return min(n, maxNumber)
	}
	return fallback
}

// maxBody is how large a request may be; the files of a transfer may be of any size.
const maxBody = 16 << 20

// read takes the body in. Of one that is too large only the beginning is kept; all bytes of a file are counted.
func (r *request) read() error {
	kept := int64(maxBody)
	rest := io.LimitReader(r.Body, 1)
	if r.transfers() {
		kept = maxContent
		rest = r.Body
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, kept))
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	more, err := io.Copy(io.Discard, rest)
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	r.body = body
	r.size = int64(len(body)) + more
	return nil
}

// whole refuses a body that is too large to be kept, except for files.
func (r *request) whole() error {
	if r.transfers() || r.size == int64(len(r.body)) {
		return nil
	}
	return store.Refuse(http.StatusRequestEntityTooLarge, store.CodeBadRequest, "A request has at most %d bytes.", maxBody)
}

// transfers reports whether the body is a file.
func (r *request) transfers() bool { return strings.HasPrefix(r.URL.Path, "/transfer/") }

func executionTime(started time.Time) string {
	return strconv.FormatInt(time.Since(started).Milliseconds(), 10)
}

func (r *request) cloudAPI() bool {
	return strings.HasPrefix(r.URL.Path, "/cloudapi/") || strings.HasPrefix(r.URL.Path, "/oauth/")
}

// tree parses the body as XML.
func (r *request) tree() (*xmltree.Node, error) {
	n, err := xmltree.Parse(r.body)
	if err != nil {
		return nil, store.BadRequest("Bad request - Unexpected JAXB Exception - %s", err)
	}
	return n, nil
}

// document parses the body as JSON. It refuses null, which would make a map nil.
func (r *request) document(into any) error {
	if string(bytes.TrimSpace(r.body)) == "null" {
		return store.BadRequest("The request body must not be null.")
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		return store.BadRequest("The request body is not valid JSON: %s", err)
	}
	return nil
}

// with is a handler for what a request is about.
func with[T any](find func(*request) (T, error), handle func(*request, T) (*response, error)) handler {
	return func(r *request) (*response, error) {
		found, err := find(r)
		if err != nil {
			return nil, err
		}
		return handle(r, found)
	}
}

// with2 is a handler for two things that a request is about, such as an object and the organization it is in.
func with2[T, U any](find func(*request) (T, U, error), handle func(*request, T, U) (*response, error)) handler {
	return func(r *request) (*response, error) {
		first, second, err := find(r)
		if err != nil {
			return nil, err
		}
		return handle(r, first, second)
	}
}

// parsed finds what a write is about and parses the body as XML.
func parsed[T any](find func(*request) (T, error)) func(*request) (T, *xmltree.Node, error) {
	return func(r *request) (found T, tree *xmltree.Node, err error) {
		if found, err = find(r); err != nil {
			return found, nil, err
		}
		tree, err = r.tree()
		return found, tree, err
	}
}

func noContent() *response { return &response{status: http.StatusNoContent} }

// createdAt makes an answer one for a new object at an address.
func (res *response) createdAt(location string) *response {
	res.status = http.StatusCreated
	res.header = map[string]string{"Location": location}
	return res
}

func xmlOK(n *xmltree.Node) *response { return &response{status: http.StatusOK, xml: n} }

func jsonOK(v any) *response { return &response{status: http.StatusOK, json: v} }
