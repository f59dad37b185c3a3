// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"context"
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/journal"
)

// A Moment is a point in the handling of a request at which a Gate is called.
type Moment int

// The moments of a request.
const (
	Arrived Moment = iota // before the handler
	Worked                // after the handler, before the response; Request.Status is set
)

// A Gate is called for every request except those of the control API, at both moments. It runs without the simulator's
// lock, in the goroutine of the request, which waits until the gate returns. If it returns false, the connection is
// closed without a response. ctx ends when the client disconnects.
type Gate func(ctx context.Context, m Moment, r journal.Request) bool

// SetGate sets the gate; nil removes it.
func (fe *Frontend) SetGate(g Gate) { fe.gate.Store(&g) }

// enter calls the gate for a request, and closes the connection if the gate returns false.
func (fe *Frontend) enter(m Moment, r *api.Request, status int) {
	g := fe.gate.Load()
	if g == nil || *g == nil || (*g)(r.Context(), m, fe.entry(r, status)) {
		return
	}
	if m == Arrived {
		fe.Journal.Add(fe.entry(r, 0))
	}
	panic(http.ErrAbortHandler)
}

// entry returns the request log entry of a request.
func (fe *Frontend) entry(r *api.Request, status int) journal.Request {
	e := journal.Request{Time: fe.Cloud.Clock.Now(), Method: r.Method, Path: r.URL.RequestURI(), Operation: r.Operation, Status: status}
	if r.Cell != nil {
		e.Cell = r.Cell.Number
	}
	if r.Session != nil {
		e.User = r.Session.User
	}
	return e
}
