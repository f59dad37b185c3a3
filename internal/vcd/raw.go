// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// A RawCall is a request to VCD's API as it is sent, for callers that examine the responses of a site. All other
// callers use the clients of a [Session].
type RawCall struct {
	Method string
	Path   string // without the query
	Query  string // as it is sent, with escaped names and values
	JSON   bool   // uses the JSON API instead of the XML API
	// Version is the API version to request; empty means the version of all other requests.
	Version     string
	ContentType string // of the body; empty: the default of the JSON API
	Body        []byte
}

// A RawAnswer is a response of VCD.
type RawAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Raw sends a request with the credentials and limits of the session. A response with any status but success is also
// returned as an error, which wraps a sentinel and a [StatusError].
func (s *Session) Raw(ctx context.Context, call RawCall) (RawAnswer, error) {
	header := http.Header{}
	switch {
	case call.ContentType != "":
		header.Set("Content-Type", call.ContentType)
	case call.JSON && len(call.Body) > 0:
		header.Set("Content-Type", transport.JSONType)
	}
	got, err := s.client.Send(ctx, transport.Request{
		Method:  call.Method,
		Path:    call.Path,
		Query:   call.Query,
		JSON:    call.JSON,
		Header:  header,
		Body:    call.Body,
		Version: call.Version,
	})
	return RawAnswer(got), err
}
