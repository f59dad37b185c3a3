// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

func (ctl *control) getDump(r *request) (*response, error) {
	encoded, err := ctl.sim.encode()
	if err != nil {
		return nil, err
	}
	return &response{status: http.StatusOK, raw: encoded, contentType: "application/json"}, nil
}

func (ctl *control) restoreDump(r *request) (*response, error) {
	if err := ctl.sim.Restore(bytes.NewReader(r.body)); err != nil {
		return nil, err
	}
	return noContent(), nil
}

func (ctl *control) listFaults(r *request) (*response, error) {
	return jsonOK(ctl.sim.faults.List()), nil
}

func (ctl *control) addFault(r *request) (*response, error) {
	var rule Fault
	if err := decode(r, &rule); err != nil {
		return nil, err
	}
	if err := rule.Validate(); err != nil {
		return nil, err
	}
	rule.ID = ctl.sim.faults.Add(rule)
	return &response{status: http.StatusCreated, json: rule}, nil
}

func (ctl *control) clearFaults(r *request) (*response, error) {
	ctl.sim.faults.Clear()
	return noContent(), nil
}

func (ctl *control) removeFault(r *request) (*response, error) {
	id, err := strconv.Atoi(r.vars["id"])
	if err != nil || !ctl.sim.faults.Remove(id) {
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "there is no fault rule %s", r.vars["id"])
	}
	return noContent(), nil
}

func (ctl *control) resetCounters(r *request) (*response, error) {
	ctl.sim.ResetCounters()
	return noContent(), nil
}

func (ctl *control) listCells(r *request) (*response, error) {
	return jsonOK(cellStatuses(ctl.sim)), nil
}

func cellStatuses(s *Simulator) []CellStatus {
	out := make([]CellStatus, 0, len(s.cells))
	for _, c := range s.cells {
		out = append(out, c.Status())
	}
	return out
}

// A cellCommand is a change of a cell by the control API.
type cellCommand struct {
	Do           string  `json:"do"`
	Down         string  `json:"down"`
	Version      Version `json:"version"`
	NewAuthority bool    `json:"newAuthority"`
}

func (ctl *control) commandCell(r *request) (*response, error) {
	n, err := strconv.Atoi(r.vars["number"])
	if err != nil || n < 1 || n > len(ctl.sim.cells) {
		return nil, store.Refuse(http.StatusNotFound, store.CodeNotFound, "there is no cell %s", r.vars["number"])
	}
	var in cellCommand
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	c := ctl.sim.cells[n-1]
	if err := in.run(c); err != nil {
		return nil, err
	}
	return jsonOK(c.Status()), nil
}

func (in cellCommand) run(c *Cell) error {
	var down time.Duration
	if in.Down != "" {
		d, err := time.ParseDuration(in.Down)
		if err != nil {
			return store.BadRequest("down must be a duration such as 30s")
		}
		down = d
	}
	switch in.Do {
	case "upgrade":
		return c.Upgrade(in.Version)
	case "renewCertificate":
		return c.RenewCertificate(in.NewAuthority)
	}
	act, ok := map[string]func(){
		"stop":     c.Stop,
		"crash":    c.Crash,
		"start":    c.Start,
		"restart":  func() { c.Restart(down) },
		"maintain": func() { c.Maintain(true) },
		"serve":    func() { c.Maintain(false) },
	}[in.Do]
	if !ok {
		return store.BadRequest("a cell cannot %q", in.Do)
	}
	act()
	return nil
}

// A clockJSON is how the control API shows the clock.
type clockJSON struct {
	Now time.Time `json:"now"`
	// Rate is how many simulated seconds pass in a second; 0 stands still.
	Rate float64 `json:"rate"`
}

func clockStatus(s *Simulator) clockJSON {
	out := clockJSON{Now: s.cloud.clock.Now(), Rate: 1}
	if c, ok := s.cloud.clock.(*SimClock); ok {
		out.Rate = c.Rate()
	}
	return out
}

func (ctl *control) getClock(r *request) (*response, error) { return jsonOK(clockStatus(ctl.sim)), nil }

// setClock moves the clock and changes its speed.
func (ctl *control) setClock(r *request) (*response, error) {
	var in struct {
		Advance string   `json:"advance"`
		Rate    *float64 `json:"rate"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	c, ok := ctl.sim.cloud.clock.(*SimClock)
	if !ok {
		return nil, store.BadRequest("this clock cannot be moved")
	}
	var d time.Duration
	if in.Advance != "" {
		var err error
		if d, err = time.ParseDuration(in.Advance); err != nil || d < 0 {
			return nil, store.BadRequest("advance must be a duration such as 90s")
		}
	}
	if in.Rate != nil {
		if *in.Rate < 0 || *in.Rate > maxRate {
			return nil, store.BadRequest("rate must be from 0 to %d", maxRate)
		}
		c.SetRate(*in.Rate)
	}
	c.Advance(d)
	return jsonOK(clockStatus(ctl.sim)), nil
}

// maxRate is how fast a clock may go: more than a day in a second.
const maxRate = 100_000
