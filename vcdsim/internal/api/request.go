// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// MaxContent is the maximum size of the part of a file that is kept, in bytes.
const MaxContent = 64 << 20

// A Request is a request while it is served. Handlers run under the simulator's lock.
type Request struct {
	*http.Request

	Cloud     *cloud.Cloud
	Site      wire.Site   // base of hrefs
	Cell      *cells.Cell // the serving cell; nil if none is available
	Started   time.Time
	ID        string // request ID
	Vars      map[string]string
	Operation string
	Version   string
	Session   *store.Session // nil on open routes
	Content   []byte
	Size      int64 // of the body; only the beginning of large files is kept
	Query     Values
}

// A Response is the result of a handler: XML, JSON or neither.
type Response struct {
	Status      int
	XML         *xmltree.Node
	JSON        any
	Raw         []byte // for the control API and downloads
	ContentType string
	Header      map[string]string
}

// Handler serves a request. An error is a refusal.
type Handler func(*Request) (*Response, error)

// AddRoute adds a route with its handler and the latency of its responses in the recorded profile.
type AddRoute func(method, pattern string, h Handler, latency time.Duration)

// Token returns the access token of a request, from any of the headers that a client may send.
func (r *Request) Token() string {
	token := r.Header.Get("X-Vmware-Vcloud-Access-Token")
	if token == "" {
		token = r.Header.Get("X-Vcloud-Authorization")
	}
	for _, h := range r.Header.Values("Authorization") {
		if scheme, value, ok := strings.Cut(h, " "); ok && strings.EqualFold(scheme, "bearer") {
			token = value
		}
	}
	return token
}

// Tenant returns the ID of the organization that a request is for: the caller's own, or for providers the one in the
// header.
func (r *Request) Tenant() string {
	if id := store.Bare(r.Header.Get("X-Vmware-Vcloud-Tenant-Context")); id != "" && r.Session.Provider() {
		return id
	}
	return r.Session.OrgID
}

// ByProvider returns an error if the caller is not a provider.
func (r *Request) ByProvider(operation string) error {
	if !r.Session.Provider() {
		return store.Forbidden(operation, r.URL.Path)
	}
	return nil
}
