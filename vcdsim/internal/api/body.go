// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Values are the parameters of a query string. The standard parser drops pairs that contain a `;`, which is common in
// filters.
type Values map[string]string

// ParseQuery parses a query string. If a parameter is repeated, its last value wins.
func ParseQuery(raw string) Values {
	out := Values{}
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

// Get returns a parameter, or "" if it is missing.
func (v Values) Get(key string) string { return v[key] }

// maxNumber limits numeric parameters, so that the product of page and page size does not overflow.
const maxNumber = 1 << 30

// Number returns a positive parameter, or the fallback.
func (v Values) Number(key string, fallback int) int {
	if n, err := strconv.Atoi(v[key]); err == nil && n > 0 {
		return min(n, maxNumber)
	}
	return fallback
}

// maxBody is the maximum size of a request body, in bytes. Transferred files may have any size.
const maxBody = 16 << 20

// Read reads the body. It keeps only the beginning of a body that is too large. For files it counts all bytes.
func (r *Request) Read() error {
	kept := int64(maxBody)
	rest := io.LimitReader(r.Body, 1)
	if r.isTransfer() {
		kept = MaxContent
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
	r.Content = body
	r.Size = int64(len(body)) + more
	return nil
}

// Whole returns an error if the body was too large to be kept. Files are exempt.
func (r *Request) Whole() error {
	if r.isTransfer() || r.Size == int64(len(r.Content)) {
		return nil
	}
	return store.Refuse(http.StatusRequestEntityTooLarge, store.CodeBadRequest, "A request has at most %d bytes.", maxBody)
}

// isTransfer reports whether the body is a transferred file.
func (r *Request) isTransfer() bool { return strings.HasPrefix(r.URL.Path, "/transfer/") }

// Tree parses the body as XML.
func (r *Request) Tree() (*xmltree.Node, error) {
	n, err := xmltree.Parse(r.Content)
	if err != nil {
		return nil, store.BadRequest("Bad request - Unexpected JAXB Exception - %s", err)
	}
	return n, nil
}

// Document parses the body as JSON. It returns an error for null, because null would make a map nil.
func (r *Request) Document(into any) error {
	if string(bytes.TrimSpace(r.Content)) == "null" {
		return store.BadRequest("The request body must not be null.")
	}
	if err := json.Unmarshal(r.Content, into); err != nil {
		return store.BadRequest("The request body is not valid JSON: %s", err)
	}
	return nil
}
