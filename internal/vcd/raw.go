// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// A RawCall is a call of VCD's API as it goes over the wire, for those who examine how a site answers. All else uses the
// nouns.
type RawCall struct {
	Method string
	Path   string // without the query
	Query  string // as it is sent: names and values are escaped already
	JSON   bool   // the JSON API
	// Version of the API to ask for; empty: the one that all other calls ask for.
	Version     string
	ContentType string // of the body; empty for the JSON API's own
	Body        []byte
}

// A RawAnswer is what VCD answered.
type RawAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Raw makes a call with the session's credentials and limits. Every status but success is an error, too: it wraps a
// sentinel, and a [StatusError].
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
