// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"bytes"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// An Exchange is a request with its response, as sent over the wire. Requests that a fault rule answers or whose
// connection it drops are not exchanges.
type Exchange struct {
	Operation   string `json:"operation"` // as named by Counters
	Method      string `json:"method"`
	URI         string `json:"uri"` // path and query, as sent
	Request     []byte `json:"request,omitempty"`
	Status      int    `json:"status"`
	ContentType string `json:"contentType,omitempty"`
	Response    []byte `json:"response,omitempty"`
}

// observe passes an exchange to the configured observer.
func (fe *Frontend) observe(r *api.Request, res *api.Response, header http.Header, body []byte) {
	if fe.Observer == nil {
		return
	}
	fe.Observer(Exchange{
		Operation:   r.Operation,
		Method:      r.Method,
		URI:         r.URL.RequestURI(),
		Request:     bytes.Clone(r.Content),
		Status:      res.Status,
		ContentType: header.Get("Content-Type"),
		Response:    bytes.Clone(body),
	})
}
