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

// MaxContent is how much of a file is kept.
const MaxContent = 64 << 20

// A Request is one call while it is answered; handlers run under the simulator's lock.
type Request struct {
	*http.Request

	Cloud     *cloud.Cloud
	Site      wire.Site   // what hrefs begin with
	Cell      *cells.Cell // that answers; nil if none can
	Started   time.Time
	ID        string // request id
	Vars      map[string]string
	Operation string
	Version   string
	Session   *store.Session // nil on open routes
	Content   []byte
	Size      int64 // of the body; of large files only the beginning is kept
	Query     Values
}

// A Response is what a handler answers: XML, JSON or neither.
type Response struct {
	Status      int
	XML         *xmltree.Node
	JSON        any
	Raw         []byte // of the control API, or a download
	ContentType string
	Header      map[string]string
}

// Handler answers a request, or refuses it by an error.
type Handler func(*Request) (*Response, error)

// AddRoute adds a route: its handler, and how long an answer takes in the recorded profile.
type AddRoute func(method, pattern string, h Handler, latency time.Duration)

// Token is the access token of a request, in either header a client may send.
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

// Tenant is the organization a request works in: the caller's own, or for providers the one the header names.
func (r *Request) Tenant() string {
	if id := store.Bare(r.Header.Get("X-Vmware-Vcloud-Tenant-Context")); id != "" && r.Session.Provider() {
		return id
	}
	return r.Session.OrgID
}

// ByProvider refuses callers that are not providers.
func (r *Request) ByProvider(operation string) error {
	if !r.Session.Provider() {
		return store.Forbidden(operation, r.URL.Path)
	}
	return nil
}
