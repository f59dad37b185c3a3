package vcdsim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// controlRoutes are the simulator's own API under /_sim/. It needs no session; it is there for whoever can reach the
// listener, which is the loopback address unless told otherwise.
func (s *Simulator) controlRoutes() {
	for pattern, h := range map[string]handler{
		"GET /_sim/state":     func(r *request) (*response, error) { return jsonOK(controlState(r.sim.State())), nil },
		"GET /_sim/counters":  func(r *request) (*response, error) { return jsonOK(r.sim.Counters()), nil },
		"GET /_sim/requests":  func(r *request) (*response, error) { return jsonOK(r.sim.Requests()), nil },
		"GET /_sim/unhandled": func(r *request) (*response, error) { return jsonOK(r.sim.Unhandled()), nil },
		"GET /_sim/ca":        func(r *request) (*response, error) { return jsonOK(string(r.sim.CA())), nil },
		"GET /_sim/faults":    func(r *request) (*response, error) { return jsonOK(r.sim.faults.List()), nil },
		"GET /_sim/clock":     func(r *request) (*response, error) { return jsonOK(r.sim.clock.Now()), nil },
		"GET /_sim/dump":      (*request).getDump,
		"POST /_sim/restore":  (*request).restoreDump,
		"POST /_sim/faults":   (*request).addFault,
		"POST /_sim/clock":    (*request).advanceClock,
		"DELETE /_sim/faults": func(r *request) (*response, error) {
			r.sim.faults.Clear()
			return &response{status: http.StatusNoContent}, nil
		},
		"DELETE /_sim/counters": func(r *request) (*response, error) {
			r.sim.ResetCounters()
			return &response{status: http.StatusNoContent}, nil
		},
	} {
		method, path, _ := strings.Cut(pattern, " ")
		s.routes.Add(method, path, endpoint{handle: h, open: true, control: true})
	}
}

// maxControlBody bounds what the control API reads: dumps of large worlds.
const maxControlBody = 1 << 30

// serveControl answers without the lock: the methods it calls take it themselves.
func (s *Simulator) serveControl(w http.ResponseWriter, r *request, e endpoint) {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBody))
	var raw json.RawMessage
	if r.Method == http.MethodPost {
		if err := dec.Decode(&raw); err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
	}
	r.body = raw
	res, err := e.handle(r)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	writeJSON(w, res.status, res.json)
}

func (r *request) addFault() (*response, error) {
	var rule Fault
	if err := r.document(&rule); err != nil {
		return nil, err
	}
	r.sim.faults.Add(rule)
	return &response{status: http.StatusCreated, json: rule}, nil
}

func (r *request) getDump() (*response, error) {
	d, err := r.sim.freeze()
	if err != nil {
		return nil, err
	}
	return jsonOK(d), nil
}

func (r *request) restoreDump() (*response, error) {
	if err := r.sim.Restore(bytes.NewReader(r.body)); err != nil {
		return nil, err
	}
	return &response{status: http.StatusNoContent}, nil
}

// advanceClock moves the clock: {"advance": "1h"}.
func (r *request) advanceClock() (*response, error) {
	var in struct{ Advance string }
	if err := r.document(&in); err != nil {
		return nil, err
	}
	d, err := time.ParseDuration(in.Advance)
	if err != nil || d < 0 {
		return nil, badRequest("advance must be a duration such as 90s")
	}
	c, ok := r.sim.clock.(interface{ Advance(d time.Duration) })
	if !ok {
		return nil, badRequest("this clock cannot be moved")
	}
	c.Advance(d)
	return jsonOK(r.sim.clock.Now()), nil
}

// A stateJSON is the state as the control API shows it.
type stateJSON struct {
	VApps    []VApp
	VMs      []VM
	Disks    []Disk
	Tasks    []taskJSON
	Sessions int
}

type taskJSON struct {
	ID, Operation, Owner string
	Status               TaskStatus
	Started, Ended       time.Time
	Error                string `json:",omitempty"`
}

// controlState is the state without credentials: no passwords, no tokens.
func controlState(s State) stateJSON {
	out := stateJSON{VApps: s.VApps, VMs: s.VMs, Disks: s.Disks, Sessions: len(s.Sessions)}
	for _, t := range s.Tasks {
		j := taskJSON{ID: t.ID, Operation: t.OperationName, Owner: t.Owner.Name, Status: t.Status, Started: t.Started, Ended: t.Ended}
		if t.Error != nil {
			j.Error = t.Error.Message
		}
		out.Tasks = append(out.Tasks, j)
	}
	return out
}
