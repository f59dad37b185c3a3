// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"bytes"
	"net/http"
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
func (fe *frontend) observe(r *request, res *response, header http.Header, body []byte) {
	if fe.observer == nil {
		return
	}
	fe.observer(Exchange{
		Operation:   r.op,
		Method:      r.Method,
		URI:         r.URL.RequestURI(),
		Request:     bytes.Clone(r.body),
		Status:      res.status,
		ContentType: header.Get("Content-Type"),
		Response:    bytes.Clone(body),
	})
}
