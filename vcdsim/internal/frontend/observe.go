// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"bytes"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// An Exchange is a request with its answer, as they went over the wire. A request that a fault rule answered, or whose
// connection it dropped, is none.
type Exchange struct {
	Operation   string `json:"operation"` // as Counters names it
	Method      string `json:"method"`
	URI         string `json:"uri"` // path and query, as they were sent
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
