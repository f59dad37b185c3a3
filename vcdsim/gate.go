package vcdsim

import (
	"context"
	"net/http"
)

// A Moment is when a Gate is asked about a request.
type Moment int

// The moments of a request.
const (
	Arrived Moment = iota // nothing is done yet
	Worked                // all is done, but not answered; Request.Status says how it went
)

// A Gate is asked about every request but those of the control API, at both moments, without the simulator's lock and from
// the request's own goroutine: the request waits until it returns. Where it says false, the connection is closed without
// an answer. ctx ends when the client goes away.
type Gate func(ctx context.Context, m Moment, r Request) bool

// SetGate puts a gate before the simulator, nil removes it. Requests that are held stay where they are.
func (s *Simulator) SetGate(g Gate) { s.gate.Store(&g) }

// enter lets the gate hold a request at a moment, and closes the connection if it says so.
func (s *Simulator) enter(m Moment, r *request, status int) {
	g := s.gate.Load()
	if g == nil || *g == nil || (*g)(r.Context(), m, s.entry(r, status)) {
		return
	}
	if m == Arrived {
		s.journal.add(s.entry(r, 0))
	}
	panic(http.ErrAbortHandler)
}

// entry is what the request log says of a request.
func (s *Simulator) entry(r *request, status int) Request {
	e := Request{Time: s.clock.Now(), Method: r.Method, Path: r.URL.RequestURI(), Operation: r.op, Status: status}
	if r.cell != nil {
		e.Cell = r.cell.number
	}
	if r.session != nil {
		e.User = r.session.User
	}
	return e
}
